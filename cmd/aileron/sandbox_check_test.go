package main

import (
	"os"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/internal/launch"
	"github.com/ALRubinger/aileron/sandbox"
	"github.com/ALRubinger/aileron/sandbox/engine"
)

// needEngine skips where no engine runs, but for CI.
func needEngine(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: needs an engine")
	}
	e, err := sandbox.Find(t.Context(), "podman", engine.Patience{})
	switch {
	case err == nil:
		e.Close()
	case os.Getenv("CI") != "":
		t.Fatal(err)
	default:
		t.Skip(err)
	}
}

func TestSandboxCheckReportsWhatAnImageLacks(t *testing.T) {
	needEngine(t)
	c := newRunner(t)
	out := c.ok("sandbox", "check", "--sandbox=podman", "--dir", t.TempDir(), "--agent=curl")
	for _, want := range []string{"tier: base\n", "runtime: podman ", "image: localhost/aileron/sandbox-base:",
		"command: /usr/bin/curl\n", "support: ok\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("the output has no %q:\n%s", want, out)
		}
	}
	out, _, code := c.run("sandbox", "check", "--sandbox=podman", "--dir", t.TempDir(), "--agent=no-such-agent", "--json")
	if r := decode[launch.ImageReport](t, out); code != 1 || len(r.Missing) != 1 || !strings.Contains(r.Support,
		"no-such-agent") {
		t.Errorf("it ends with %d: %+v", code, r)
	}
	if _, errs, code := c.run("sandbox", "check", "--sandbox=podman", "--dir", t.TempDir(),
		"--image=localhost/aileron/none:1", "--agent=sh"); code != 1 || !strings.Contains(errs, "localhost/aileron/none:1") {
		t.Errorf("a missing image ends with %d: %s", code, errs)
	}
	for _, args := range [][]string{{"sandbox", "check"}, {"sandbox", "check", "--agent=sh", "--sandbox=off"},
		{"sandbox", "check", "sh"}} {
		if _, _, code := c.run(args...); code != 2 {
			t.Errorf("%q ends with %d, want 2", args, code)
		}
	}
}
