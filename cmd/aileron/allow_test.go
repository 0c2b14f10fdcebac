package main

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/home"
)

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
