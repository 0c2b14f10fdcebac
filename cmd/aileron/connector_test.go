package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/internal/console"
)

func TestAPersonIsAsked(t *testing.T) {
	for answer, installed := range map[string]bool{"y": true, "YES": true, "n": false, "": false, "yep": false} {
		_, errs, code := newOwner(t).converse(slices.Repeat([]string{answer}, console.MaxTries),
			"connector", "install", exampleGitHub)
		if (code == 0) != installed || !strings.Contains(errs, "[y/N]") ||
			!strings.Contains(errs, "  hosts       api.github.com\n") {
			t.Errorf("the answer %q ends with %d: %s", answer, code, errs)
		}
	}
}

// A long connector is summarised on a terminal, so that the question can be read with what it is about.
func TestALongConnectorIsSummarisedOnATerminal(t *testing.T) {
	for answers, whole := range map[string]bool{"y": false, "? y": true} {
		_, errs, code := newOwner(t).converse(strings.Fields(answers), "connector", "install", "github")
		if code != 0 || !strings.Contains(errs, "  writes      16 operations with POST, PATCH, PUT: issues.create") ||
			!strings.Contains(errs, "\n  unusual     deletes without asking you (1): issues.labels.remove\n") ||
			!strings.Contains(errs, " that are not searched for secrets (3): releases.asset,\n") ||
			!strings.Contains(errs, "grant this, of which 4 things are unusual? (? lists every operation)") ||
			strings.Contains(errs, "api.github.com/repos/{owner}/{repo}/readme") != whole {
			t.Errorf("the answers %q end with %d: %s", answers, code, errs)
		}
		for line := range strings.Lines(errs) {
			if !whole && len(line) > 81 && !strings.HasPrefix(line, "install") {
				t.Errorf("%q is longer than the terminal", line)
			}
		}
	}
	_, errs, _ := newRunner(t).run("connector", "install", "github", "--yes")
	if !strings.Contains(errs, "api.github.com/repos/{owner}/{repo}/readme") {
		t.Errorf("a script's log does not have every operation: %s", errs)
	}
}

func TestWrongCallsOfConnector(t *testing.T) {
	c := newRunner(t)
	for _, w := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"connector", "install"}, 2, "connector install takes SRC...; got none"},
		{[]string{"connector", "bogus"}, 2, `"bogus" is not a command of aileron connector`},
		{[]string{"connector", "install", "--bogus", "x"}, 2, "unknown flag"},
		{[]string{"connector", "show", "tracker"}, 1, "hint: see what there is with: aileron connector list --catalog"},
		{[]string{"connector", "show", "hub://a/b"}, 1, "not installed"},
		{[]string{"connector", "install", "/nonexistent", "--yes"}, 1, "no such file"},
		{[]string{"connector", "install", "hub://a/b@1.0.0", "--yes"}, 1, "no hub is configured"},
		{[]string{"connector", "install", "local://a/b@1.0.0", "--yes"}, 1, "are not published anywhere"},
		{[]string{"connector", "install", "svn://a/b@1.0.0", "--yes"}, 2, "does not begin with github://"},
		{[]string{"connector", "install", "github://a/b", "--yes"}, 2, "name its version"},
		{[]string{"connector", "install", "github://a/b@v1.0.0", "--yes"}, 2, "is not MAJOR.MINOR.PATCH"},
		{[]string{"connector", "check", t.TempDir()}, 1, "manifest.toml: it is missing"},
	} {
		_, errs, code := c.run(w.args...)
		if code != w.code || !strings.Contains(errs, w.want) || !isFailure(errs) {
			t.Errorf("aileron %q ends with %d: %s; want %d and a failure with %q", w.args, code, errs, w.code, w.want)
		}
	}
}
