package catalog

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/e2e/recipes"
	"github.com/ALRubinger/aileron/e2e/services"
	"github.com/ALRubinger/aileron/e2e/stub"
)

// npm, Go and apt are learnt once. The same run is refused nothing under the connector that comes of it, with all else
// denied; and one more host is.
func TestWhatIsLearntIsEnoughAndNoMore(t *testing.T) {
	t.Parallel()
	needPodman(t)
	image := recipes.Services()
	recipes.Need(t, "podman", image)
	p := newPerson(t)
	o := services.Start(t, "", image.Ref, stub.Script{})
	must.Do(t, os.WriteFile(filepath.Join(p.project, "sumdb.key"), []byte(o.SumDB), 0o600))
	harness.Copy(t, "testdata/learn.sh", p.project)
	work := func(more ...string) (out, errs string) {
		args := append([]string{"sandbox", "run", "--sandbox=podman", "--image", image.Ref, "--dir", p.project,
			"--upstream-ca", o.Roots}, more...)
		for authority, addr := range o.Addresses() {
			args = append(args, "--resolve", authority+":"+addr)
		}
		out, errs, code := p.run(append(args, "--", "bash", "learn.sh")...)
		if code != 0 || !strings.Contains(out, "all worked") {
			t.Fatalf("the clients end with %d\n%s%s", code, out, errs)
		}
		return out, errs
	}

	out, errs := work("--learn")
	session := regexp.MustCompile(`aileron learn ([0-9A-Z]{26})`).FindStringSubmatch(errs)
	if session == nil || strings.Contains(out, "host_not_allowed") {
		t.Fatalf("the session does not name itself\n%s%s", out, errs)
	}
	dir := filepath.Join(p.project, "learnt")
	for _, args := range [][]string{{"learn", session[1], "-o", dir}, {"connector", "check", dir},
		{"connector", "install", dir, "--yes"}} {
		if out, errs, code := p.run(args...); code != 0 {
			t.Fatalf("aileron %q ends with %d\n%s%s", args, code, out, errs)
		}
	}

	if out, _ = work(); !strings.Contains(out, `"reason":"host_not_allowed"`) {
		t.Errorf("one more host is not refused:\n%s", out)
	}
	out, _, _ = p.run("audit", "list", "--json", "--limit", "0", "--decision", "rejected")
	type row struct{ Method, Host, Path, Reason string }
	for _, r := range harness.Rows[row](t, out) {
		// A client may give up a connection that it opened beside another.
		if r.Host != "pypi.org" && r.Reason != "client_handshake_failed" {
			t.Errorf("%s %s%s is refused: %s", r.Method, r.Host, r.Path, r.Reason)
		}
	}
}
