// Package har tests that other people's programs read the HAR files that aileron
// writes: the validator of the format, and a browser.
package har

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/e2e/recipes"
)

var binary string // the built aileron

func TestMain(m *testing.M) {
	os.Exit(harness.Run(m, "har", map[string]string{"aileron": "../../cmd/aileron"},
		func(dir string) { binary = filepath.Join(dir, "aileron") }))
}

// node runs a script of testdata in the image of readers, without a network.
func node(t *testing.T, script string, stdin []byte, mounts ...string) (out string, code int) {
	t.Helper()
	if _, err := exec.LookPath("podman"); err != nil {
		harness.Need(t, "podman: scripts/prepare installs it")
	}
	image := recipes.HAR()
	recipes.Need(t, "podman", image)
	source := must.Get(os.ReadFile(filepath.Join("testdata", script)))(t)
	args := []string{"run", "--rm", "-i", "--network", "none"}
	for _, m := range mounts {
		args = append(args, "--volume", m)
	}
	cmd := exec.Command("podman", append(args, image.Ref, "node24", "-e", string(source))...)
	cmd.Stdin = bytes.NewReader(stdin)
	cmd.Env = harness.EngineEnv(t)
	out, errs, code := harness.Finish(t, cmd, harness.Patience)
	return out + errs, code
}

func exportHAR(t *testing.T, home string, args ...string) []byte {
	t.Helper()
	cmd := exec.Command(binary, append([]string{"--home", home, "audit", "export", "--format", "har"}, args...)...)
	out, errs, code := harness.Finish(t, cmd, harness.Patience)
	if code != 0 {
		t.Fatalf("the export ends with %d: %s", code, errs)
	}
	return []byte(out)
}

// rows are one of each kind that an export may meet, and some that no session
// writes.
func rows() []audit.Row {
	request := audit.Row{Event: audit.EventProxyStarted, SessionID: "s", Source: audit.SourceConnectTLS,
		ConnectorFQN: "github://acme/tracker", ConnectorVersion: "1.2.0", Tool: "tracker", Operation: "issues.get",
		Binding: "api_key/tracker/work", Method: "GET", Scheme: "https", Host: "api.tracker.example", Port: 443,
		Path: "/v1/a%2Fb", HTTPVersion: "HTTP/2.0", RequestID: "r1"}
	outcome := request
	outcome.Event, outcome.Decision, outcome.Status, outcome.DurationUS = audit.EventProxyProxied,
		audit.DecisionProxied, 200, 1234
	all := []audit.Row{{Event: audit.EventSessionStarted, SessionID: "s"}, request, outcome}
	for i, change := range []func(*audit.Row){
		func(r *audit.Row) { r.Event, r.Decision = audit.EventProxyProxied, audit.DecisionUpgrade },
		func(r *audit.Row) { r.Event, r.Method, r.Path = audit.EventSandboxPassthrough, "CONNECT", "" },
		func(r *audit.Row) { r.Event = audit.EventProxyUnknown },
		func(r *audit.Row) { r.Event, r.Path = audit.EventSandboxRejected, "x.example:443" },
		func(r *audit.Row) { r.Event, r.Host, r.Method = audit.EventSandboxRejected, "", "" },
		func(r *audit.Row) { r.Event, r.Host = audit.EventSandboxRejected, "a b\x00\u202e]@/?#" },
		func(r *audit.Row) { r.Event, r.Host = audit.EventSandboxRejected, "2001:db8::1" },
		func(r *audit.Row) { r.Event, r.Path = audit.EventSandboxRejected, "/\x1b%zz|^`{}\\\"<>?a=b#c\u200f" },
		func(r *audit.Row) { r.Event, r.DurationUS, r.Status = audit.EventProxyProxied, -7, -1 },
		func(r *audit.Row) { r.Event = audit.EventProxyStarted },
	} {
		r := request
		r.RequestID = "x" + string(rune('a'+i))
		change(&r)
		all = append(all, r)
	}
	return all
}

func TestTheValidatorAcceptsAnExport(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	must.Do(t, os.Chmod(home, 0o700))
	if out, code := node(t, "validate.js", exportHAR(t, home)); code != 0 || out != "valid 0\n" {
		t.Errorf("of an empty export the validator says, with %d: %s", code, out)
	}
	l := must.Get(audit.Open(filepath.Join(home, "audit.db"), audit.Options{}))(t)
	for _, r := range rows() {
		must.Get(l.Append(t.Context(), r))(t)
	}
	must.Do(t, l.Close())
	har := exportHAR(t, home)
	if out, code := node(t, "validate.js", har); code != 0 || out != "valid 11\n" {
		t.Errorf("the validator says, with %d: %s", code, out)
	}
	broken := bytes.Replace(har, []byte(`"startedDateTime":"2`), []byte(`"startedDateTime":"x`), 1)
	if out, code := node(t, "validate.js", broken); code != 3 || !strings.Contains(out, "startedDateTime") {
		t.Errorf("of a broken entry the validator says, with %d: %s", code, out)
	}
}
