package sandbox_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/recipes"
	"github.com/ALRubinger/aileron/sandbox"
	"github.com/ALRubinger/aileron/sandbox/engine"
)

// testImage is the base, made once for all tests of an engine.
var testImage = sandbox.BaseImage()

// idleGateway reports that it is ready and waits: these tests are about
// containers, and the real gateway has its own.
const idleGateway = "say ready\nwait 10m\n"

// standIn is the program that plays such a gateway, built once.
var standIn = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "sandbox-test-")
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "gateway"), harness.Build(dir, map[string]string{"gateway": "./testdata/gateway"})
})

func TestMain(m *testing.M) {
	harness.Widen(6) // boxes wait for their engine
	code := m.Run()
	if path, err := standIn(); err == nil {
		_ = os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

// engines runs a test with each engine of this machine. In CI both must be there.
func engines(t *testing.T, test func(t *testing.T, e *sandbox.Engine)) {
	if testing.Short() {
		t.Skip("-short: needs an engine")
	}
	for _, kind := range []string{"podman", "docker"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			e, err := sandbox.Find(t.Context(), kind, engine.Patience{})
			if err != nil {
				if os.Getenv("CI") != "" {
					t.Fatal(err)
				}
				t.Skipf("%v; scripts/prepare --tests installs both engines, scripts/with-docker runs Docker's daemon", err)
			}
			t.Cleanup(e.Close)
			recipes.Need(t, kind, recipes.Base())
			test(t, e)
		})
	}
}

// box is a box whose gateway plays that play, and that runs command, in a project that its user may write to.
func box(t *testing.T, gateway string, command ...string) (sandbox.Box, *bytes.Buffer, *bytes.Buffer) {
	t.Helper()
	dir := t.TempDir()
	project, sockets := filepath.Join(dir, "project"), filepath.Join(dir, "sockets")
	binary, err := standIn()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{project, sockets} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(sockets, "play"), []byte(gateway), 0o644); err != nil {
		t.Fatal(err)
	}
	unique := filepath.Base(dir) + filepath.Base(filepath.Dir(dir))
	session := "test" + strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(unique))
	out, errs := &bytes.Buffer{}, &bytes.Buffer{}
	t.Cleanup(func() { noContainers(t, session) })
	return sandbox.Box{
		Spec:   sandbox.Spec{Image: testImage, Command: command, Dir: project},
		Uplink: sandbox.Uplink{Session: session, Sockets: sockets, Binary: binary, Stdout: out, Stderr: errs},
	}, out, errs
}

// noContainers asks the engines' own programs what is left of a session.
func noContainers(t *testing.T, session string) {
	t.Helper()
	for _, engine := range []string{"podman", "docker"} {
		cmd := exec.Command(engine, "ps", "-aq", "--filter", "label=aileron.session="+session)
		if left, err := cmd.Output(); err == nil && len(bytes.TrimSpace(left)) > 0 {
			t.Errorf("%s still has the containers %s", engine, left)
		}
	}
}

func TestASandboxIsSealedAndItsCodeIsTheCommands(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e *sandbox.Engine) {
		b, out, errs := box(t, idleGateway, "sh", "-c", `
			pwd; hostname; cat /etc/resolv.conf /etc/hosts /etc/aileron/deep/er/note; ls /sys/class/net; echo to stderr >&2
			grep -E 'Cap(Eff|Prm|Bnd|Amb)|NoNewPrivs|Seccomp:' /proc/self/status
			touch in-project "$HOME/in-home" && echo wrote; ls /run/aileron /aileron 2>/dev/null
			unshare -n true 2>/dev/null || echo no namespaces; exit 7`)
		b.Files = []sandbox.File{{Path: "/etc/aileron/deep/er/note", Mode: 0o644, Data: []byte("a note\n")}}
		code, err := e.Run(t.Context(), b)
		if err != nil || code != 7 {
			t.Fatalf("Run = %d, %v; want 7\n%s", code, err, errs)
		}
		for _, want := range []string{
			sandbox.Workspace + "\nbox\n", "nameserver 127.0.0.53\n",
			"\n127.0.0.1\tlocalhost box\n::1\tlocalhost ip6-localhost ip6-loopback\na note\n",
			"a note\n", "\nlo\n", "wrote\n", "no namespaces\n",
			"CapEff:\t0000000000000000", "CapBnd:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"} {
			if !strings.Contains("\n"+out.String(), want) {
				t.Errorf("the output has no %q:\n%s", want, out)
			}
		}
		if strings.Contains(out.String(), ".sock") || errs.String() != "to stderr\n" {
			t.Errorf("stdout %q, stderr %q", out, errs)
		}
		if _, err := os.Stat(filepath.Join(b.Dir, "in-project")); err != nil {
			t.Error(err)
		}
	})
}

func TestBytesPassBothWaysUnchanged(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e *sandbox.Engine) {
		b, out, errs := box(t, idleGateway, "cat")
		data := make([]byte, 3<<20)
		_, _ = rand.NewChaCha8([32]byte{1}).Read(data)
		b.Stdin = bytes.NewReader(data)
		if code, err := e.Run(t.Context(), b); err != nil || code != 0 {
			t.Fatalf("Run = %d, %v\n%s", code, err, errs)
		}
		if sha256.Sum256(out.Bytes()) != sha256.Sum256(data) {
			t.Errorf("%d bytes came back of %d, or other ones", out.Len(), len(data))
		}
	})
}

func TestACommandThatCannotRunIsExplained(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e *sandbox.Engine) {
		for command, want := range map[string]int{"no-such-command": 127, "/no/such/file": 127, "/etc/passwd": 126} {
			b, _, _ := box(t, idleGateway, command)
			code, err := e.Run(t.Context(), b)
			var bad *sandbox.CommandError
			if code != want || !errors.As(err, &bad) || bad.Code != want || !strings.Contains(err.Error(), command) {
				t.Errorf("%s: Run = %d, %v; want %d", command, code, err, want)
			}
		}
	})
}

func TestAMissingImageIsNamed(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e *sandbox.Engine) {
		none := sandbox.Image{Ref: "localhost/aileron/none:1"}
		_, err := e.EnsureImage(t.Context(), none, "auto", io.Discard)
		if err == nil || !strings.Contains(err.Error(), none.Ref) {
			t.Errorf("EnsureImage = %v", err)
		}
		none.Dockerfile = []byte("FROM " + testImage.Ref + "\n")
		_, err = e.EnsureImage(t.Context(), none, "never", io.Discard)
		if err == nil || !strings.Contains(err.Error(), "never") {
			t.Errorf("EnsureImage with never = %v", err)
		}
		b, _, _ := box(t, idleGateway, "true")
		b.Image = sandbox.Image{Ref: none.Ref}
		if code, err := e.Run(t.Context(), b); err == nil {
			t.Errorf("Run = %d, nil; want an error", code)
		}
	})
}

func TestAFailedBuildNamesTheStepsFault(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e *sandbox.Engine) {
		var progress bytes.Buffer
		dockerfile := []byte("FROM " + testImage.Ref + "\nCOPY nothing /\n")
		img := sandbox.Image{Ref: "localhost/aileron/failing:1", Dockerfile: dockerfile}
		_, err := e.EnsureImage(t.Context(), img, "auto", &progress)
		if err == nil || !strings.Contains(err.Error(), img.Ref) || !strings.Contains(err.Error(), "nothing") {
			t.Errorf("EnsureImage = %v", err)
		}
		if !strings.Contains(progress.String(), "COPY nothing") {
			t.Errorf("the progress has no step:\n%s", &progress)
		}
	})
}

func TestAGatewayThatFailsEndsItsSandbox(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e *sandbox.Engine) {
		b, _, _ := box(t, "complain no rules today\nexit 1\n", "true")
		if _, err := e.Run(t.Context(), b); err == nil || !strings.Contains(err.Error(), "no rules today") {
			t.Errorf("Run = %v; want what the gateway said", err)
		}
		b, _, _ = box(t, "say ready\nawait up\n", "sh", "-c", "echo up; sleep 600")
		up := &notice{word: "up", said: make(chan struct{})}
		b.Stdout = up
		go func() {
			<-up.said
			if err := os.WriteFile(filepath.Join(b.Sockets, "up"), nil, 0o644); err != nil {
				t.Error(err)
			}
		}()
		if _, err := e.Run(t.Context(), b); err == nil || !strings.Contains(err.Error(), "so the sandbox was ended too") {
			t.Errorf("Run = %v; want that the gateway ended", err)
		}
	})
}

func TestTheProjectsOwnerWritesToIt(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		if os.Getenv("CI") != "" {
			t.Fatal("this needs root, who may give files away")
		}
		t.Skip("only root may give files away")
	}
	engines(t, func(t *testing.T, e *sandbox.Engine) {
		for _, uid := range []int{0, 1000, 4242} {
			b, out, errs := box(t, idleGateway, "sh", "-c", `touch f "$HOME/f" && stat -c %u f`)
			if err := os.Chown(b.Dir, uid, uid); err != nil {
				t.Fatal(err)
			}
			code, err := e.Run(t.Context(), b)
			info, statErr := os.Stat(filepath.Join(b.Dir, "f"))
			if err != nil || code != 0 || statErr != nil {
				t.Errorf("owner %d: Run = %d, %v; %v\n%s%s", uid, code, err, statErr, out, errs)
			} else if got := int(info.Sys().(*syscall.Stat_t).Uid); got != uid {
				t.Errorf("the file belongs to %d, want %d", got, uid)
			}
		}
	})
}

func TestCheckReportsWhatAnImageLacks(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e *sandbox.Engine) {
		b, _, _ := box(t, idleGateway, "curl")
		if r, err := e.Check(t.Context(), b.Spec); err != nil || r.Command != "/usr/bin/curl" || len(r.Missing) > 0 {
			t.Errorf("Check(curl) = %+v, %v", r, err)
		}
		b.Command = []string{"no-such-agent"}
		r, err := e.Check(t.Context(), b.Spec)
		if err != nil || len(r.Missing) != 1 || !strings.Contains(r.Missing[0], "no-such-agent") {
			t.Errorf("Check(no-such-agent) = %+v, %v", r, err)
		}
	})
}
