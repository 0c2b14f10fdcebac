// Package e2e runs the built binary as a user would: real clients, real
// boxes, stand-ins only for services that a test machine cannot reach.
package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/standin"
)

var binary string // the built aileron

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "e2e-")
	if err != nil {
		panic(err)
	}
	binary = filepath.Join(dir, "aileron")
	build := exec.Command("go", "build", "-trimpath", "-o", binary, "../cmd/aileron")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build aileron: %v\n%s", err, out)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

const (
	githubFQN    = "github://alrubinger/aileron-connector-github"
	anthropicFQN = "github://alrubinger/aileron-connector-anthropic"
	secret       = "ghp-stand/in+SECRET0123456789abcdefXYZ"
	passphrase   = "correct horse battery"
)

// user is one person's home, project and stand-in.
type user struct {
	t       *testing.T
	home    string
	project string
	origin  *standin.Server
}

func newUser(t *testing.T, tool string) *user {
	t.Helper()
	// Below the shortest directory there is: socket paths are bounded.
	home, err := os.MkdirTemp("", "e2e-home-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	u := &user{t: t, home: filepath.Join(home, "h"), project: filepath.Join(home, "p"), origin: standin.Start(t, secret, tool)}
	if err := os.Mkdir(u.project, 0o755); err != nil {
		t.Fatal(err)
	}
	return u
}

// bind installs an example connector and binds the secret to it.
func (u *user) bind(example, fqn string) {
	u.t.Helper()
	u.must("connector", "install", "../examples/connectors/"+example, "--yes")
	file := filepath.Join(u.t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte(secret+"\n"), 0o600); err != nil {
		u.t.Fatal(err)
	}
	u.must("binding", "setup", fqn, "--identity", "work", "--secret-file", file)
}

// reach are the flags that lead the real names to the stand-in.
func (u *user) reach() []string {
	return []string{"--resolve", "api.github.com:443:" + u.origin.Addr, "--resolve", "api.anthropic.com:443:" + u.origin.Addr, "--upstream-ca", u.origin.Roots}
}

func (u *user) command(args ...string) *exec.Cmd {
	cmd := exec.Command(binary, args...)
	cmd.Env = append(os.Environ(), "AILERON_HOME="+u.home, "AILERON_VAULT_PASSPHRASE="+passphrase)
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
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case <-ended:
	case <-time.After(8 * time.Minute): // an image may have to be built first
		_ = cmd.Process.Kill()
		<-ended
		t.Fatalf("%v did not end\n%s", cmd.Args, errs.String())
	}
	return result{out.String(), errs.String(), cmd.ProcessState.ExitCode()}
}

func (u *user) must(args ...string) result {
	u.t.Helper()
	r := u.run(args...)
	if r.code != 0 {
		u.t.Fatalf("aileron %s: exit %d\n%s%s", strings.Join(args, " "), r.code, r.out, r.err)
	}
	return r
}

// box runs a shell script in a sealed box on Podman, with curl in it.
func (u *user) box(script string, flags ...string) result {
	u.t.Helper()
	needPodman(u.t)
	args := append([]string{"sandbox", "run", "--sandbox=podman", "--dir", u.project}, u.reach()...)
	return u.run(append(append(args, flags...), "--", "sh", "-c", script)...)
}

func needPodman(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("podman"); err == nil {
		return
	}
	if os.Getenv("CI") != "" {
		t.Fatal("there is no podman, and in CI the end-to-end tests must run; scripts/prepare installs it")
	}
	t.Skip("there is no podman: scripts/prepare installs it")
}

type row = map[string]any

func (u *user) rows(flags ...string) []row {
	u.t.Helper()
	var rows []row
	dec := json.NewDecoder(strings.NewReader(u.must(append([]string{"audit", "list", "--json", "--limit", "0"}, flags...)...).out))
	for {
		var r row
		if err := dec.Decode(&r); err == io.EOF {
			return rows
		} else if err != nil {
			u.t.Fatal(err)
		}
		rows = append(rows, r)
	}
}

// leftovers are the containers of this user's sessions that podman still
// has. Other tests have boxes of their own at the same time.
func (u *user) leftovers() string {
	u.t.Helper()
	out, err := exec.CommandContext(context.Background(), "podman", "ps", "-a", "--filter", "label=aileron.session", "--format", "{{.Names}}").Output()
	if err != nil {
		u.t.Fatal(err)
	}
	var left []string
	for _, started := range u.rows("--event", "session.started") {
		for name := range strings.FieldsSeq(string(out)) {
			if id, _ := started["session_id"].(string); strings.Contains(strings.ToUpper(name), id) {
				left = append(left, name)
			}
		}
	}
	return strings.Join(left, " ")
}

func contains(t *testing.T, what, text string, wants ...string) {
	t.Helper()
	for _, w := range wants {
		if !strings.Contains(text, w) {
			t.Errorf("%s does not hold %q:\n%s", what, w, text)
		}
	}
}
