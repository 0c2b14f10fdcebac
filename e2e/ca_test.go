package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/e2e/stub"
)

// A program of this host that knows nothing of the session but the root that ca show prints reaches the hosts that the
// session's connectors declare. For any other host, aileron's own denial included, that root vouches for nothing.
func TestWhatCAShowPrintsVouchesForTheDeclaredHosts(t *testing.T) {
	t.Parallel()
	u := newUser(t, stub.Script{}, "github")
	p := u.serve()
	var shown struct {
		Names []string `json:"names"`
		PEM   string   `json:"pem"`
	}
	must.Do(t, json.Unmarshal([]byte(u.must("ca", "show", p.SessionID, "--json").out), &shown))
	if !slices.Contains(shown.Names, "api.github.com") {
		t.Errorf("the names are %q", shown.Names)
	}
	file := filepath.Join(t.TempDir(), "root.pem")
	must.Do(t, os.WriteFile(file, []byte(u.must("ca", "show", p.SessionID[:12], "--pem").out), 0o600))
	get := func(ca, url string) result {
		return finish(t, exec.Command("curl", "-sS", "--max-time", "300", "-x", p.ProxyURL, "--cacert", ca, url))
	}
	contains(t, "a declared host", get(file, "https://api.github.com/user").out, "octo-stand-in")
	contains(t, "a declared host, by the session's root", get(p.CAFile, "https://api.github.com/user").out,
		"octo-stand-in")
	contains(t, "another host", get(file, "https://evil.example/").err, "SSL certificate problem")
	contains(t, "another host, by the session's root", get(p.CAFile, "https://evil.example/").out, "host_not_allowed")

	text := u.must("ca", "show", p.SessionID)
	contains(t, "ca show", text.out, "session  "+p.SessionID, "names    ", "BEGIN CERTIFICATE")
	must.Do(t, p.cmd.Process.Signal(syscall.SIGTERM))
	must.Do(t, p.cmd.Wait())
	gone := u.run("ca", "show", p.SessionID)
	if gone.code != 1 {
		t.Errorf("of an ended session: exit %d", gone.code)
	}
	contains(t, "of an ended session", gone.err, "it is not running, and its CA ended with it", "hint: ")
	unknown := u.run("ca", "show", "01NONE")
	contains(t, "of no session", unknown.err, "there is none with that id")
}
