package sandbox_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/term"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
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

// images is what the boxes of all tests know of their images, as those of one home do.
var images string

func TestMain(m *testing.M) {
	harness.Widen(6) // boxes wait for their engine
	var err error
	if images, err = os.MkdirTemp("", "sandbox-images-"); err != nil {
		panic(err)
	}
	code := m.Run()
	if path, err := standIn(); err == nil {
		_ = os.RemoveAll(filepath.Dir(path))
	}
	for _, e := range found {
		e.Close()
	}
	_ = os.RemoveAll(images)
	os.Exit(code)
}

// found are the engines that tests have found, by their kind: each is found once, because Podman is a service that is
// started for it.
var (
	found   = map[string]*engine.Engine{}
	finding sync.Mutex
)

func find(kind string) (*engine.Engine, error) {
	finding.Lock()
	defer finding.Unlock()
	if e, ok := found[kind]; ok {
		return e, nil
	}
	e, err := engine.Patience{}.Find(context.Background(), kind) // it is used by other tests too
	if err == nil {
		found[kind] = e
	}
	return e, err
}

// engines runs a test with each engine of this machine. In CI both must be there.
func engines(t *testing.T, test func(t *testing.T, e *sandbox.Engine)) {
	if testing.Short() {
		t.Skip("-short: needs an engine")
	}
	for _, kind := range []string{"podman", "docker"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			if kind == "docker" {
				harness.Turn(t)
			}
			e, err := find(kind)
			if err != nil {
				if os.Getenv("CI") != "" {
					t.Fatal(err)
				}
				t.Skipf("%v; scripts/prepare --tests installs both engines, scripts/with-docker runs Docker's daemon", err)
			}
			recipes.Need(t, kind, recipes.Base())
			test(t, &sandbox.Engine{Engine: e})
		})
	}
}

// box is a box whose gateway plays that play, and that runs command, in a project that its user may write to.
func box(t *testing.T, gateway string, command ...string) (sandbox.Box, *bytes.Buffer, *bytes.Buffer) {
	t.Helper()
	dir := t.TempDir()
	project, sockets := filepath.Join(dir, "project"), filepath.Join(dir, "sockets")
	binary := must.Get(standIn())(t)
	for _, d := range []string{project, sockets} {
		must.Do(t, os.Mkdir(d, 0o755))
	}
	must.Do(t, os.WriteFile(filepath.Join(sockets, "play"), []byte(gateway), 0o644))
	unique := filepath.Base(dir) + filepath.Base(filepath.Dir(dir))
	session := "test" + strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(unique))
	out, errs := &bytes.Buffer{}, &bytes.Buffer{}
	t.Cleanup(func() { noContainers(t, session) })
	return sandbox.Box{
		Spec:   sandbox.Spec{Image: testImage, Command: command, Dir: project, Cache: images},
		Uplink: sandbox.Uplink{Session: session, Sockets: sockets, Binary: binary, Stdout: out, Stderr: errs},
	}, out, errs
}

// noContainers asks the engines that a test is about what is left of a session.
func noContainers(t *testing.T, session string) {
	t.Helper()
	for kind, other := range map[string]string{"podman": "/docker", "docker": "/podman"} {
		if strings.Contains(t.Name(), other) {
			continue
		}
		e, err := find(kind)
		if err != nil {
			continue
		}
		// The test has ended. To list them fails where another test's are removed just now.
		left, err := (&sandbox.Engine{Engine: e}).Count(context.Background(), session)
		if err == nil && left > 0 {
			t.Errorf("%s still has %d containers of %s", kind, left, session)
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

// Who compares the project before and after a sandbox does so beside its start and its removal.
func TestTheProjectIsUnchangedBeforeExposingAndAfterEnded(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e *sandbox.Engine) {
		b, _, errs := box(t, idleGateway, "sh", "-c",
			"(trap '' TERM HUP; while :; do echo x >> grows; done) & until [ -s grows ]; do sleep 0.01; done")
		grows := filepath.Join(b.Dir, "grows")
		exposed, left := false, int64(0)
		b.Exposing = func() {
			_, err := os.Stat(grows)
			exposed = os.IsNotExist(err)
		}
		b.Ended = func() {
			if left == 0 {
				left = must.Get(os.Stat(grows))(t).Size()
			}
		}
		if code, err := e.Run(t.Context(), b); err != nil || code != 0 {
			t.Fatalf("Run = %d, %v\n%s", code, err, errs)
		}
		if now := must.Get(os.Stat(grows))(t).Size(); !exposed || left == 0 || left != now {
			t.Errorf("unchanged before: %v; %d bytes at its end, %d after Run", exposed, left, now)
		}
	})
}

// One that ends later: TestAKilledGatewayEndsTheBox in e2e/faults.
func TestAGatewayThatFailsEndsItsSandbox(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e *sandbox.Engine) {
		b, _, _ := box(t, "complain no rules today\nexit 1\n", "true")
		if _, err := e.Run(t.Context(), b); err == nil || !strings.Contains(err.Error(), "no rules today") {
			t.Errorf("Run = %v; want what the gateway said", err)
		}
	})
}

// The command's container is made while the gateway gets ready, and nothing of the image runs in it before.
func TestNothingOfAnImageRunsBeforeTheGatewayIsReady(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e *sandbox.Engine) {
		b, _, _ := box(t, "wait 3s\ncomplain no names\nexit 3\n", "touch", "ran")
		code, err := e.Run(t.Context(), b)
		if err == nil || !strings.Contains(err.Error(), "did not get ready: no names") {
			t.Errorf("Run = %d, %v; want that the gateway did not get ready", code, err)
		}
		if _, err := os.Stat(filepath.Join(b.Dir, "ran")); !os.IsNotExist(err) {
			t.Errorf("the command ran: %v", err)
		}
	})
}

// What a caller does when nothing comes from the sandbox any more is done beside the removal: before it, and before the
// last output was taken.
func TestACallerIsToldThatTheSandboxIsCutOff(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e *sandbox.Engine) {
		b, _, errs := box(t, idleGateway, "sh", "-c", "head -c 300000 /dev/zero")
		cut := make(chan struct{})
		b.Cut = func() { close(cut) }
		got := &lateReader{until: cut}
		b.Stdout = got
		if code, err := e.Run(t.Context(), b); err != nil || code != 0 {
			t.Fatalf("Run = %d, %v\n%s", code, err, errs)
		}
		if got.n != 300000 || got.late {
			t.Errorf("%d bytes arrived, want 300000; the reader was not told: %v", got.n, got.late)
		}
	})
}

// lateReader takes its last half only when until is closed.
type lateReader struct {
	n     int
	until <-chan struct{}
	late  bool
}

func (r *lateReader) Write(p []byte) (int, error) {
	if r.n += len(p); r.n > 150000 {
		select {
		case <-r.until:
		case <-time.After(20 * time.Second):
			r.late = true
		}
	}
	return len(p), nil
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
			must.Do(t, os.Chown(b.Dir, uid, uid))
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

// notice is a stream that reports when a word has been written.
type notice struct {
	mu   sync.Mutex
	text strings.Builder
	word string
	once sync.Once
	said chan struct{}
}

func (n *notice) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.text.Write(p)
	if strings.Contains(n.text.String(), n.word) {
		n.once.Do(func() { close(n.said) })
	}
	return len(p), nil
}

func TestSignalsAndCancellationEndASandbox(t *testing.T) {
	t.Parallel()
	const loop = "echo up; while :; do sleep 0.1; done"
	stop := func(cancel func(), _ chan<- os.Signal) { cancel() }
	send := func(signals ...syscall.Signal) func(func(), chan<- os.Signal) {
		return func(_ func(), to chan<- os.Signal) {
			for _, sig := range signals {
				to <- sig
			}
		}
	}
	engines(t, func(t *testing.T, e *sandbox.Engine) {
		for name, c := range map[string]struct {
			command string
			end     func(cancel func(), signals chan<- os.Signal)
			want    int
		}{
			"a handled signal": {"trap 'exit 42' USR1; " + loop, send(syscall.SIGUSR1), 42},
			"a second signal":  {"trap '' TERM; " + loop, send(syscall.SIGTERM, syscall.SIGTERM), 137},
			"a cancelled box":  {"trap 'exit 43' TERM; " + loop, stop, 43},
			"a deaf box":       {"trap '' TERM; " + loop, stop, 137},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				signals := make(chan os.Signal, 2)
				b, _, _ := box(t, idleGateway, "sh", "-c", c.command)
				if c.want != 137 { // on a busy machine its trap may take long
					b.HasTimeToStop(harness.Patience)
				}
				up := &notice{word: "up", said: make(chan struct{})}
				b.Stdout, b.Signals = up, signals
				go func() {
					<-up.said
					c.end(cancel, signals)
				}()
				if code, err := e.Run(ctx, b); code != c.want || err != nil && !errors.Is(err, context.Canceled) {
					t.Errorf("Run = %d, %v; want %d", code, err, c.want)
				}
			})
		}
	})
}

// closed is a reader's end that went away.
type closed struct{}

func (closed) Write([]byte) (int, error) { return 0, syscall.EPIPE }

func TestAReaderThatGoesAwayEndsTheSandbox(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e *sandbox.Engine) {
		b, _, _ := box(t, idleGateway, "yes")
		b.Stdout = closed{}
		if code, err := e.Run(t.Context(), b); code != 128+int(syscall.SIGPIPE) || err != nil {
			t.Errorf("Run = %d, %v; want 141", code, err)
		}
	})
}

// slow takes its time for each piece.
type slow struct{ bytes.Buffer }

func (s *slow) Write(p []byte) (int, error) {
	<-time.After(time.Millisecond)
	return s.Buffer.Write(p)
}

func TestASlowReaderGetsAll(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e *sandbox.Engine) {
		b, _, _ := box(t, idleGateway, "head", "-c", "2000000", "/dev/zero")
		out := &slow{}
		b.Stdout = out
		if code, err := e.Run(t.Context(), b); code != 0 || err != nil || out.Len() != 2000000 {
			t.Errorf("Run = %d, %v with %d bytes; want 2000000", code, err, out.Len())
		}
	})
}

func TestATerminalHasItsSizeAndIsRestored(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e *sandbox.Engine) {
		person, tty, err := pty.Open()
		if err != nil {
			t.Fatal(err)
		}
		defer person.Close()
		defer tty.Close()
		must.Do(t, pty.Setsize(tty, &pty.Winsize{Rows: 41, Cols: 121}))
		before := must.Get(term.GetState(int(tty.Fd())))(t)
		seen := &screen{changed: make(chan struct{}, 1)}
		go func() {
			buf := make([]byte, 4096)
			for {
				n, err := person.Read(buf)
				if err != nil {
					return
				}
				seen.add(buf[:n])
			}
		}()
		// The size may come a moment after the program on Docker.
		b, _, _ := box(t, idleGateway, "sh", "-c", `
			until [ "$(stty size)" = "41 121" ]; do sleep 0.1; done; echo right size
			read line; echo "got $line"
			until [ "$(stty size)" = "30 90" ]; do sleep 0.1; done; echo new size; exit 3`)
		b.TTY, b.Stdin, b.Stdout, b.Stderr = true, tty, tty, tty
		go func() {
			seen.wait("right size")
			_, _ = person.WriteString("hello\r")
			seen.wait("got hello")
			_ = pty.Setsize(tty, &pty.Winsize{Rows: 30, Cols: 90})
			_ = syscall.Kill(os.Getpid(), syscall.SIGWINCH) // the kernel's, to those on the terminal
		}()
		if code, err := e.Run(t.Context(), b); code != 3 || err != nil {
			t.Errorf("Run = %d, %v; want 3\n%s", code, err, seen.text())
		}
		after, err := term.GetState(int(tty.Fd()))
		if err != nil || !reflect.DeepEqual(before, after) {
			t.Errorf("the terminal is %+v, was %+v, %v", after, before, err)
		}
	})
}

// screen is what a person sees.
type screen struct {
	mu      sync.Mutex
	said    strings.Builder
	changed chan struct{}
}

func (s *screen) add(p []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said.Write(p)
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

func (s *screen) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.said.String()
}

func (s *screen) wait(word string) {
	for !strings.Contains(s.text(), word) {
		<-s.changed
	}
}

func TestASweepLeavesTheSandboxesOfALivingProcess(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e *sandbox.Engine) {
		b, _, _ := box(t, idleGateway, "sh", "-c", "trap 'exit 5' USR1; echo up; while :; do sleep 0.1; done")
		signals, up := make(chan os.Signal, 1), &notice{word: "up", said: make(chan struct{})}
		b.Signals, b.Stdout = signals, up
		swept := make(chan struct{})
		go func() {
			defer close(swept)
			<-up.said
			sweep(t, e)
			signals <- syscall.SIGUSR1
		}()
		if code, err := e.Run(t.Context(), b); code != 5 || err != nil {
			t.Errorf("Run = %d, %v; want 5", code, err)
		}
		<-swept
	})
}
