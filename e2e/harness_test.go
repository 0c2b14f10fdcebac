// Package e2e runs the built binary as a user would: real clients, real
// sandboxes, stubs only for services that a test machine cannot reach.
package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/e2e/stub"
)

var binary string // the built aileron: harness.Build

func TestMain(m *testing.M) {
	os.Exit(harness.Run(m, "e2e", map[string]string{"aileron": "../cmd/aileron"},
		func(dir string) { binary = filepath.Join(dir, "aileron") }))
}

const (
	secret     = "ghp-stand/in+SECRET0123456789abcdefXYZ" // GitHub's and the echoing API's
	modelKey   = "sk-stand/in+KEY-9876543210fedcbaZYX"    // the model providers'
	passphrase = "correct horse battery"
)

// connectors are those that a test can bind, by a short name.
var connectors = map[string]harness.Connector{
	"github": {Dir: "../examples/connectors/github", FQN: "github://alrubinger/aileron-connector-github",
		Secret: secret},
	"anthropic": {Dir: "../examples/connectors/anthropic", FQN: "github://alrubinger/aileron-connector-anthropic",
		Secret: modelKey},
	"anthropic-oauth": {Dir: "../spec/catalog/anthropic-oauth",
		FQN: "github://alrubinger/aileron-connector-anthropic-oauth", Secret: modelKey},
	"ask": {Dir: "testdata/connectors/ask", FQN: "github://aileron-tests/aileron-connector-ask", Secret: secret},
	"openai": {Dir: "../examples/connectors/openai", FQN: "github://alrubinger/aileron-connector-openai",
		Secret: modelKey},
	"everything": {Dir: "testdata/connectors/everything", FQN: "github://aileron-tests/aileron-connector-everything",
		Secret: secret},
	"echo": {Dir: "testdata/connectors/echo", FQN: "github://aileron-tests/aileron-connector-echo", Secret: secret},
}

// templates are homes in which some connectors are installed and bound, by
// their names: opening a vault is slow on purpose.
var (
	templates   = map[string]string{}
	templatesMu sync.Mutex
)

// user is one person's home, project and stub.
type user struct {
	t       *testing.T
	home    string
	project string
	engine  string // podman, or docker
	origin  *stub.Server
}

// newUser is a person for whom those connectors are installed and bound.
func newUser(t *testing.T, script stub.Script, bound ...string) *user {
	t.Helper()
	script.Token, script.Key = secret, modelKey
	home := must.ShortDir(t)
	u := &user{t: t, home: filepath.Join(home, "h"), project: filepath.Join(home, "p"), engine: "podman",
		origin: stub.Start(t, script)}
	must.Do(t, os.Mkdir(u.project, 0o755))
	if len(bound) > 0 {
		u.copyHome(bound)
	}
	return u
}

// copyHome makes the home a copy of one in which these connectors are bound.
func (u *user) copyHome(bound []string) {
	u.t.Helper()
	templatesMu.Lock()
	defer templatesMu.Unlock()
	key := strings.Join(bound, " ")
	if templates[key] == "" {
		home := filepath.Join(filepath.Dir(binary), "home of "+key)
		for _, name := range bound {
			must.Do(u.t, harness.Bind(binary, home, passphrase, connectors[name]))
		}
		templates[key] = home
	}
	harness.Copy(u.t, templates[key], u.home)
	harness.ShareImages(u.t, u.home)
}

// write writes a file of the project.
func (u *user) write(name, text string) {
	u.t.Helper()
	must.Do(u.t, os.WriteFile(filepath.Join(u.project, name), []byte(text), 0o600))
}

// reach are the flags that lead the real names to the stub.
func (u *user) reach() []string {
	flags := []string{"--upstream-ca", u.origin.Roots}
	for _, name := range []string{stub.GitHub, stub.Anthropic, stub.Claude, stub.OpenAI, stub.Echo} {
		flags = append(flags, "--resolve", name+":443:"+u.origin.Addr)
	}
	return flags
}

func (u *user) command(args ...string) *exec.Cmd {
	cmd := exec.Command(binary, args...)
	cmd.Env = harness.Env(u.home, passphrase)
	return cmd
}

type result struct {
	out, err string
	code     int
}

// run runs aileron to its end, within a bound.
func (u *user) run(args ...string) result {
	u.t.Helper()
	return finish(u.t, u.command(args...))
}

func finish(t *testing.T, cmd *exec.Cmd) result {
	t.Helper()
	out, errs, code := harness.Finish(t, cmd, 8*time.Minute) // an image may have to be built first
	return result{out, errs, code}
}

func (u *user) must(args ...string) result {
	u.t.Helper()
	r := u.run(args...)
	if r.code != 0 {
		u.t.Fatalf("aileron %s: exit %d\n%s%s", strings.Join(args, " "), r.code, r.out, r.err)
	}
	return r
}

// box runs a shell script in a sealed box, with curl in it.
func (u *user) box(script string, flags ...string) result {
	u.t.Helper()
	harness.NeedEngine(u.t, u.engine)
	args := append([]string{"sandbox", "run", "--sandbox=" + u.engine, "--dir", u.project}, u.reach()...)
	return u.run(append(append(args, flags...), "--", "sh", "-c", script)...)
}

func needPodman(t *testing.T) {
	t.Helper()
	harness.NeedEngine(t, "podman")
}

type row = map[string]any

func (u *user) rows(flags ...string) []row {
	u.t.Helper()
	return harness.Rows[row](u.t, u.must(append([]string{"audit", "list", "--json", "--limit", "0"}, flags...)...).out)
}

// boxes are the containers of this user's sessions that the engine has. Other
// tests have boxes of their own at the same time.
func (u *user) boxes() []string {
	u.t.Helper()
	out := u.list("ps", "-a", "--filter", "label=aileron.session", "--format", "{{.Names}}")
	var boxes []string
	for _, started := range u.rows("--event", "session.started") {
		for name := range strings.FieldsSeq(out) {
			if id, _ := started["session_id"].(string); strings.Contains(strings.ToUpper(name), id) {
				boxes = append(boxes, name)
			}
		}
	}
	return boxes
}

// leftovers are the boxes that are still there.
func (u *user) leftovers() string { return strings.Join(u.boxes(), " ") }

// ask runs the engine's own command line.
func (u *user) ask(args ...string) string {
	u.t.Helper()
	cmd := exec.Command(u.engine, args...)
	cmd.Env = harness.EngineEnv(u.t)
	out, err := cmd.Output()
	if err != nil {
		if ee := (*exec.ExitError)(nil); errors.As(err, &ee) {
			err = fmt.Errorf("%w: %s", err, ee.Stderr)
		}
		u.t.Fatalf("%s %s: %v", u.engine, strings.Join(args, " "), err)
	}
	return string(out)
}

// list is ask for a command that changes nothing.
func (u *user) list(args ...string) string {
	u.t.Helper()
	cmd := exec.Command(u.engine, args...)
	cmd.Env = harness.EngineEnv(u.t)
	out, err := harness.List(cmd)
	if err != nil {
		if ee := (*exec.ExitError)(nil); errors.As(err, &ee) {
			err = fmt.Errorf("%w: %s", err, ee.Stderr)
		}
		u.t.Fatalf("%s %s: %v", u.engine, strings.Join(args, " "), err)
	}
	return out
}

// made reports whether the box has made that file in the project.
func (u *user) made(name string) func() bool {
	return func() bool { _, err := os.Stat(filepath.Join(u.project, name)); return err == nil }
}

func contains(t *testing.T, what, text string, wants ...string) {
	t.Helper()
	for _, w := range wants {
		if !strings.Contains(text, w) {
			t.Errorf("%s does not hold %q:\n%s", what, w, text)
		}
	}
}
