package main

import (
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/home"
)

func TestTheGatewayIsHiddenAndRefusesRoot(t *testing.T) {
	var out, said strings.Builder
	a := cli.New(&console.Console{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &said},
		&home.Dir{})
	if code := Main(t.Context(), []string{"--help"}, a); code != 0 || strings.Contains(out.String(), "gateway") {
		t.Errorf("help ends with %d and shows:\n%s", code, &out)
	}
	for _, user := range []string{"0", "-1", "root"} {
		said.Reset()
		if code := Main(t.Context(), []string{"gateway", "--user", user}, a); code != 2 || !isFailure(said.String()) {
			t.Errorf("--user %s ends with %d and says %q, want 2 and one line", user, code, &said)
		}
	}
}
