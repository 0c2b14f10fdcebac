package e2e

import (
	"archive/tar"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/e2e/stub"
)

// apart is set in the environment of a test binary that runs in namespaces of its own.
const apart = "AILERON_E2E_APART"

// Docker Desktop cannot run here. What it lacks can: a daemon that does not
// see the directory of the session's sockets, with a bridge to this host.
func TestABoxThatCannotBeSealedSaysSo(t *testing.T) {
	if os.Getenv(apart) == "" {
		if _, err := exec.LookPath("dockerd"); err != nil || os.Geteuid() != 0 {
			harness.Need(t, "root and a dockerd of its own (scripts/prepare --tests)")
		}
		harness.TestApart(t, apart+"=1", syscall.CLONE_NEWNET|syscall.CLONE_NEWNS)
		return
	}
	must.Get(harness.Loopback())(t)
	u := newUser(t, stub.Script{}, "echo")
	harness.HiddenDocker(t, filepath.Join(u.home, "sessions"))
	const image = "localhost/aileron-tests/get:1"
	importImage(t, image)
	run := func(flags ...string) result {
		args := append([]string{"sandbox", "run", "--sandbox=docker", "--image", image, "--dir", u.project}, u.reach()...)
		return u.run(append(args, flags...)...)
	}

	r := run("--", "/get", "https://api.echo.example/echo", "$AILERON_API_URL/session")
	if r.code != 0 || strings.Contains(r.out, secret) {
		t.Errorf("exit %d, with the secret: %v\n%s%s", r.code, strings.Contains(r.out, secret), r.out, r.err)
	}
	contains(t, "what is said", r.err, "NOT SEALED", "--sandbox-proxy=on")
	contains(t, "the box's answers", r.out, "200 OK", "Bearer ****", `"hosts":["api.echo.example:443"]`, "env HTTPS_PROXY")
	started := u.rows("--event", "session.started")
	if fields, _ := started[len(started)-1]["fields"].(map[string]any); fields["sealed"] != false {
		t.Errorf("session.started has the fields %v, want sealed=false", fields)
	}
	if rows := u.rows("--decision", "proxied"); len(rows) != 1 || rows[0]["operation"] != "echo" {
		t.Errorf("rows: %v", rows)
	}

	r = run("--sandbox-proxy=on", "--", "/get")
	if r.code != 1 || r.out != "" {
		t.Errorf("--sandbox-proxy=on: exit %d, %q; want a refusal", r.code, r.out)
	}
	contains(t, "the refusal", r.err, "seal the sandbox", "sees neither this host's temporary directory nor",
		"--sandbox-proxy=auto")
	r = run("--sandbox-proxy=off", "--", "/get")
	if r.code != 0 || strings.Contains(r.out, "PROXY") || strings.Contains(r.out, "AILERON_TOKEN") {
		t.Errorf("--sandbox-proxy=off: exit %d\n%s%s", r.code, r.out, r.err)
	}
	contains(t, "what is said", r.err, "NOT MEDIATED")
	var reasons []string
	for _, row := range u.rows("--event", "sandbox.proxy.disabled") {
		reasons = append(reasons, row["reason"].(string))
	}
	if got := strings.Join(reasons, " "); got != "unsupported_sandbox_mode user_opt_out" {
		t.Errorf("sandbox.proxy.disabled because of %q", got)
	}
}

// importImage makes an image that holds nothing but a client.
func importImage(t *testing.T, ref string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "get")
	build := exec.Command("go", "build", "-trimpath", "-o", file, "./testdata/get")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the client: %v\n%s", err, out)
	}
	data := must.Get(os.ReadFile(file))(t)
	var layer bytes.Buffer
	tw := tar.NewWriter(&layer)
	must.Do(t, tw.WriteHeader(&tar.Header{Name: "get", Mode: 0o755, Size: int64(len(data))}))
	must.Get(tw.Write(data))(t)
	must.Do(t, tw.Close())
	cmd := exec.Command("docker", "import", "-", ref)
	cmd.Stdin = &layer
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("import the image: %v\n%s", err, out)
	}
}
