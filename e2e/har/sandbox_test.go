package har

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit/export"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/e2e/stub"
)

const (
	secret     = "ghp-stand/in+SECRET0123456789abcdefXYZ"
	passphrase = "correct horse battery"
)

// captured is a person whose sessions are captured to a file.
type captured struct {
	t                   *testing.T
	home, project, file string
	origin              *stub.Server
}

// newCaptured returns a person with a bound credential of GitHub.
func newCaptured(t *testing.T) *captured {
	t.Helper()
	home := must.ShortDir(t)
	c := &captured{t: t, home: filepath.Join(home, "h"), project: t.TempDir(), file: filepath.Join(t.TempDir(), "x.har"),
		origin: stub.Start(t, stub.Script{Token: secret})}
	err := harness.Bind(binary, c.home, passphrase, harness.Connector{Dir: "../../examples/connectors/github",
		FQN: "github://alrubinger/aileron-connector-github", Secret: secret})
	if err == nil { // a stream that is open at the end is waited for
		err = os.WriteFile(filepath.Join(c.home, "config.toml"), []byte("[limits]\ndrain_timeout = \"1s\"\n"), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// command returns a command that opens a session which is captured.
func (c *captured) command(args ...string) *exec.Cmd {
	reach := []string{"--capture", c.file, "--upstream-ca", c.origin.Roots, "--resolve", stub.GitHub + ":443:" +
		c.origin.Addr}
	cmd := exec.Command(binary, append(append([]string{args[0]}, args[1:]...), reach...)...)
	cmd.Env = harness.Env(c.home, passphrase)
	return cmd
}

// run runs aileron to its end.
func (c *captured) run(cmd *exec.Cmd) string {
	c.t.Helper()
	out, errs, code := harness.Finish(c.t, cmd, 8*time.Minute) // an image may have to be made first
	if code != 0 {
		c.t.Fatalf("%q: exit %d\n%s%s", cmd.Args, code, out, errs)
	}
	return out
}

// entries checks the file, and returns its entries and its text: it is one document of this user, the validator
// accepts it, and it has no secret.
func (c *captured) entries() ([]export.HAREntry, string) {
	c.t.Helper()
	text := must.Get(os.ReadFile(c.file))(c.t)
	info, err := os.Lstat(c.file)
	if err != nil || info.Mode() != 0o600 || info.Sys().(*syscall.Stat_t).Uid != uint32(os.Getuid()) ||
		info.Sys().(*syscall.Stat_t).Nlink != 1 {
		c.t.Errorf("the file is %v, %v", info, err)
	}
	if strings.Contains(string(text), secret[:16]) {
		c.t.Error("the secret is in the capture")
	}
	if out, code := node(c.t, "validate.js", text); code != 0 || !strings.HasPrefix(out, "valid ") {
		c.t.Errorf("the validator says, with %d: %s", code, out)
	}
	var log struct {
		Log struct{ Entries []export.HAREntry }
	}
	must.Do(c.t, json.Unmarshal(text, &log))
	return log.Log.Entries, string(text)
}

func TestASandboxIsCapturedAndDoesNotSeeIt(t *testing.T) {
	const script = `curl -sS https://api.github.com/user
		curl -sS -H 'Authorization: Bearer placeholder' https://api.github.com/user
		curl -sS https://api.github.com/user?undeclared=1
		find / -xdev -name '*.har*' 2>/dev/null; grep '\.har' /proc/mounts; ls -a`
	for _, engine := range []string{"podman", "docker"} {
		for _, detached := range []bool{false, true} {
			name := engine
			if detached {
				name += ", detached"
			}
			t.Run(name, func(t *testing.T) {
				harness.PodmanIsEnough(t, engine)
				harness.NeedEngine(t, engine)
				c := newCaptured(t)
				args := []string{"sandbox", "run", "--sandbox=" + engine, "--dir", c.project}
				if detached {
					args = append(args, "--detach")
				}
				cmd := c.command(args...)
				cmd.Args = append(cmd.Args, "--", "sh", "-c", script)
				cmd.Dir = filepath.Dir(c.file)
				out := c.run(cmd)
				if detached {
					id := strings.TrimSpace(out)
					list := func() string { return c.run(c.aileron("session", "show", id)) }
					harness.Poll(harness.Patience, 100*time.Millisecond, func() bool { return !strings.Contains(list(), "running") })
					out = c.run(c.aileron("session", "logs", id))
				}
				if strings.Contains(out, ".har") || strings.Count(out, "octo-stand-in") != 2 {
					t.Errorf("the sandbox says %s", out)
				}
				got, text := c.entries()
				if len(got) != 3 || strings.Count(text, "[credential bearer/aileron-connector-github/work]") != 2 ||
					strings.Contains(text, "placeholder") || got[2].Response.Status != 403 ||
					got[2].Request.URL != "https://api.github.com/user?undeclared=1" ||
					!strings.Contains(string(got[0].Response.Content.Text), "octo-stand-in") {
					t.Errorf("%d entries: %.2000s", len(got), text)
				}
				if names, _ := filepath.Glob(filepath.Join(filepath.Dir(c.file), ".*")); len(names) > 0 {
					t.Errorf("left behind: %q", names)
				}
				started := harness.AuditRows(t, c.home, audit.Filter{Event: audit.EventSessionStarted})
				if len(started) != 1 || started[0].Fields["capture"] != c.file {
					t.Errorf("session.started is %+v", started)
				}
			})
		}
	}
}

// aileron returns a command of another kind.
func (c *captured) aileron(args ...string) *exec.Cmd {
	cmd := exec.Command(binary, args...)
	cmd.Env = harness.Env(c.home, passphrase)
	return cmd
}
