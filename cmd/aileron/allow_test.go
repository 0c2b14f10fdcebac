package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/allow"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/home"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/local"
)

// A sandbox chooses the path of its request: what a person allows is that path and no pattern.
func TestThePathOfARowDoesNotBecomeAPattern(t *testing.T) {
	row := audit.Row{Scheme: "https", Method: "GET", Host: "api.example", Port: 443, Path: "/v1/{rest...}",
		Reason: "host_not_allowed"}
	if _, err := (&allow.AllowOptions{}).ForRow(row, nil); err == nil || !strings.Contains(err.Error(),
		"the path has braces") {
		t.Errorf("got %v", err)
	}
	row.Path = "/v1/items"
	made, err := (&allow.AllowOptions{}).ForRow(row, nil)
	if err != nil || len(made.Operations) != 1 || made.Operations[0].Path != "/v1/items" || made.Credential != nil {
		t.Errorf("%+v, %v", made, err)
	}
}

// What is allowed of one host carries one credential, or none.
func TestWhatIsAllowedWithoutACredentialCarriesNone(t *testing.T) {
	c, err := local.Connector{Host: "api.example", Version: allow.FirstVersion, Scope: "Read",
		Credential: &spec.Injection{Kind: "api_key", In: "header", Name: "X-Api-Key", Format: "{secret}"},
		Operations: []local.Operation{{Method: "GET", Path: "/v1/items"}}}.Load()
	if err != nil {
		t.Fatal(err)
	}
	row := audit.Row{Scheme: "https", Method: "GET", Host: "api.example", Port: 443, Path: "/v1/users",
		Reason: "operation_not_matched", ConnectorFQN: string(c.FQN)}
	made, err := (&allow.AllowOptions{NoCredential: true}).ForRow(row, []*spec.Connector{c})
	if err == nil || !strings.Contains(err.Error(), "local://allowed/api.example injects one") {
		t.Errorf("got %+v, %v", made, err)
	}
}

// What is allowed already is not asked for again.
func TestAHostThatIsAllowedIsNotAskedForAgain(t *testing.T) {
	c := newRunner(t)
	c.ok("allow", "docs.example.org", "--yes")
	controller, terminal, err := pty.Open()
	if err != nil {
		t.Skip("there are no terminals here: ", err)
	}
	defer controller.Close()
	defer terminal.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // it would wait for an answer
	defer cancel()
	var out, errs bytes.Buffer
	a := cli.New(&console.Console{Stdin: terminal, Stdout: &out, Stderr: &errs},
		&home.Dir{})
	code := Main(ctx, []string{"--home", c.Flag, "allow", "docs.example.org"}, a)
	const want = "aileron: docs.example.org is allowed already; take that back with: " +
		"aileron connector remove local://allowed/docs.example.org\n"
	if code != 0 || out.Len() > 0 || errs.String() != want {
		t.Errorf("it ends with %d and prints %q and %q, want %q", code, out.String(), errs.String(), want)
	}
}
