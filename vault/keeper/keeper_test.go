//go:build linux

package keeper

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/e2e/must"
)

const testKey = "AGE-SECRET-KEY-1TEST"

// TestMain is the client of TestAProcessOfAContainerIsRefused, and the keeper of TestAStoppedKeeperIsEnded, too.
func TestMain(m *testing.M) {
	if home := os.Getenv("KEEPER_TEST_SERVE"); home != "" {
		key, err := ReadKey(strings.NewReader(testKey))
		if err == nil {
			err = Serve(context.Background(), key, Options{Home: home, Until: time.Now().Add(time.Hour),
				Current: func() bool { return true }, Ready: func() { _, _ = os.Stdout.WriteString("ready\n") }})
		}
		if err != nil {
			panic(err)
		}
		os.Exit(0)
	}
	if home := os.Getenv("KEEPER_TEST_HOME"); home != "" {
		key, err := Fetch(context.Background(), home)
		if err == nil {
			_, _ = os.Stdout.Write(key)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// served is a keeper of a test, for its home.
type served struct {
	home    string
	current atomic.Bool
	ended   chan error
	key     *Key
	cancel  context.CancelFunc
}

func newHome(t *testing.T) string {
	t.Helper()
	run := filepath.Join(t.TempDir(), "run")
	must.Do(t, os.Mkdir(run, 0o700))
	t.Setenv("XDG_RUNTIME_DIR", run)
	return t.TempDir()
}

func serve(t *testing.T, home string, o Options) *served {
	t.Helper()
	key := must.Get(ReadKey(strings.NewReader(testKey)))(t)
	s := &served{home: home, ended: make(chan error, 1), key: key}
	s.current.Store(true)
	ready := make(chan struct{})
	o.Home, o.Current, o.Ready = s.home, s.current.Load, func() { close(ready) }
	if o.Until.IsZero() {
		o.Until = time.Now().Add(time.Hour)
	}
	var ctx context.Context
	ctx, s.cancel = context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		s.ended <- Serve(ctx, key, o)
	}()
	t.Cleanup(func() { s.cancel(); <-over }) // its key is locked in memory until then
	select {
	case <-ready:
	case err := <-s.ended:
		t.Fatal(err)
	}
	return s
}

// gone fails unless the keeper ends, has erased its key, and cannot be reached.
func (s *served) gone(t *testing.T) {
	t.Helper()
	select {
	case err := <-s.ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(5 * time.Minute):
		t.Fatal("the keeper does not end")
	}
	if s.key.page != nil {
		t.Error("the key is still in memory")
	}
	if _, err := Fetch(t.Context(), s.home); !errors.Is(err, ErrNone) {
		t.Errorf("after its end the keeper returns %v", err)
	}
	if _, err := os.Lstat(socketPath(s.home)); err == nil {
		t.Error("its socket is left")
	}
}

func TestAKeyIsFetchedUntilTheKeeperIsEnded(t *testing.T) {
	s := serve(t, newHome(t), Options{})
	for range 3 {
		if key, err := Fetch(t.Context(), s.home); err != nil || string(key) != testKey {
			t.Fatalf("fetched %q, %v", key, err)
		}
	}
	state, err := Ask(t.Context(), s.home)
	if err != nil || state.PID != os.Getpid() || time.Until(state.Until) > time.Hour || time.Until(state.Until) <= 0 {
		t.Errorf("the state is %+v, %v", state, err)
	}
	if _, err := Fetch(t.Context(), t.TempDir()); !errors.Is(err, ErrNone) {
		t.Errorf("the keeper of another home returns %v", err)
	}
	must.Do(t, End(t.Context(), s.home))
	s.gone(t)
	if err := End(t.Context(), s.home); err != nil {
		t.Errorf("ending none returns %v", err)
	}
}

func TestTheSocketIsTheUsersAlone(t *testing.T) {
	s := serve(t, newHome(t), Options{})
	for path, want := range map[string]os.FileMode{socketPath(s.home): 0o600, filepath.Dir(socketPath(s.home)): 0o700} {
		if info, err := os.Lstat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s is %v, %v; want the mode %o", path, info, err, want)
		}
	}
	if !strings.HasPrefix(socketPath(s.home), os.Getenv("XDG_RUNTIME_DIR")) {
		t.Errorf("the socket %s is not in the runtime directory", socketPath(s.home))
	}
}

func TestADirectoryThatOthersMayEnterIsRefused(t *testing.T) {
	home := newHome(t)
	dir := Dir(home)
	must.Do(t, os.Mkdir(dir, 0o700))
	must.Do(t, os.Chmod(dir, 0o755))
	key, err := ReadKey(strings.NewReader(testKey))
	if err != nil {
		t.Fatal(err)
	}
	err = Serve(t.Context(), key, Options{Home: home, Until: time.Now().Add(time.Hour)})
	if err == nil || !strings.Contains(err.Error(), "chmod 700") {
		t.Errorf("serving there returns %v", err)
	}
	// A runtime directory that others may write to is not used at all.
	must.Do(t, os.Chmod(os.Getenv("XDG_RUNTIME_DIR"), 0o777))
	if got := Dir(home); strings.HasPrefix(got, os.Getenv("XDG_RUNTIME_DIR")) {
		t.Errorf("the directory is %s", got)
	}
}

func TestAKeeperEndsAtItsTime(t *testing.T) {
	// On a busy machine, a moment may be over before the keeper begins.
	serve(t, newHome(t), Options{Until: time.Now().Add(3 * time.Second)}).gone(t)
}

// The monotonic clock stands still while a machine sleeps.
func TestASleepCountsTowardsTheTime(t *testing.T) {
	var late atomic.Int64
	o := Options{Until: time.Now().Add(time.Hour), now: func() time.Time {
		return time.Now().Add(time.Duration(late.Load()))
	}}
	s := serve(t, newHome(t), o)
	late.Store(int64(2 * time.Hour))
	if _, err := Fetch(t.Context(), s.home); !errors.Is(err, ErrNone) {
		t.Errorf("after the time the keeper returns %v", err)
	}
	s.gone(t)
}

func TestAClockThatIsSetBackDoesNotProlongTheTime(t *testing.T) {
	start := time.Now()
	serve(t, newHome(t), Options{Until: start.Add(50 * time.Millisecond), now: func() time.Time { return start }}).gone(t)
}

func TestAKeyThatIsNotCurrentIsNotGivenOut(t *testing.T) {
	s := serve(t, newHome(t), Options{})
	s.current.Store(false)
	if key, err := Fetch(t.Context(), s.home); !errors.Is(err, ErrNone) {
		t.Errorf("fetched %q, %v", key, err)
	}
	s.gone(t)
}

// A caller that was connected before the key stopped being current, and asks afterwards.
func TestAKeyThatIsNotCurrentAnyMoreIsNotGivenOut(t *testing.T) {
	s := serve(t, newHome(t), Options{})
	conn := must.Get(dial(t.Context(), s.home))(t)
	defer conn.Close()
	// The connection was accepted before this one.
	must.Get(Ask(t.Context(), s.home))(t)
	s.current.Store(false)
	must.Get(conn.Write([]byte(callKey)))(t)
	if got, _ := io.ReadAll(conn); len(got) > 0 {
		t.Errorf("the key was given out: %q", got)
	}
	s.gone(t)
}

// A keeper that is stopped does not respond, and would hold the key again as soon as it is continued.
func TestAStoppedKeeperIsEnded(t *testing.T) {
	home := newHome(t)
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "KEEPER_TEST_SERVE="+home)
	out := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("the keeper wrote %q, %v", line, err)
	}
	must.Do(t, cmd.Process.Signal(syscall.SIGSTOP))
	// A signal is sent before it has come: until then the keeper responds.
	must.Do(t, unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WSTOPPED, nil))
	if state, err := Ask(t.Context(), home); !errors.Is(err, ErrSilent) || state.PID != cmd.Process.Pid {
		t.Errorf("Ask = %+v, %v; want ErrSilent of %d", state, err, cmd.Process.Pid)
	}
	must.Do(t, End(t.Context(), home))
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("the keeper ended with %v, want a kill", err)
	}
	if _, err := Fetch(t.Context(), home); !errors.Is(err, ErrNone) {
		t.Errorf("after its end the keeper returns %v", err)
	}
	s := serve(t, home, Options{}) // in its place
	if key, err := Fetch(t.Context(), s.home); err != nil || string(key) != testKey {
		t.Errorf("fetched %q, %v", key, err)
	}
}

// The runtime directory goes at a logout.
func TestAKeeperEndsWithItsSocket(t *testing.T) {
	s := serve(t, newHome(t), Options{})
	must.Do(t, os.RemoveAll(Dir(s.home)))
	s.gone(t)
}

func TestAKeeperEndsWithItsContext(t *testing.T) {
	s := serve(t, newHome(t), Options{})
	s.cancel()
	s.gone(t)
}

func TestTimesAreBounded(t *testing.T) {
	for _, d := range []time.Duration{-time.Second, 0, MaxTime + time.Minute} {
		key := must.Get(ReadKey(strings.NewReader(testKey)))(t)
		if err := Serve(t.Context(), key, Options{Home: newHome(t), Until: time.Now().Add(d)}); err == nil {
			t.Errorf("a key is held for %v", d)
		}
		if key.page != nil {
			t.Errorf("%v: the key is still in memory", d)
		}
	}
}

func TestOneKeeperForAHome(t *testing.T) {
	s := serve(t, newHome(t), Options{})
	key, err := ReadKey(strings.NewReader("another"))
	if err != nil {
		t.Fatal(err)
	}
	err = Serve(t.Context(), key, Options{Home: s.home, Until: time.Now().Add(time.Hour)})
	if err == nil || !strings.Contains(err.Error(), "holds it already") {
		t.Errorf("a second one returns %v", err)
	}
	if key, err := Fetch(t.Context(), s.home); err != nil || string(key) != testKey {
		t.Errorf("fetched %q, %v", key, err)
	}
}

// Two commands that unlock at once: one of them holds the key, and the other one says so.
func TestOneOfManyKeepersThatStartAtOnceHoldsTheKey(t *testing.T) {
	for range 20 {
		home := newHome(t)
		ctx, cancel := context.WithCancel(t.Context())
		const many = 8
		started := make(chan error, many)
		var all sync.WaitGroup
		for range many {
			key := must.Get(ReadKey(strings.NewReader(testKey)))(t)
			all.Go(func() {
				if err := Serve(ctx, key, Options{Home: home, Until: time.Now().Add(time.Hour),
					Current: func() bool { return true }, Ready: func() { started <- nil }}); err != nil {
					started <- err
				}
			})
		}
		ready := 0
		for range many {
			if err := <-started; err == nil {
				ready++
			} else if !strings.Contains(err.Error(), "holds it already") {
				t.Error(err)
			}
		}
		if key, err := Fetch(t.Context(), home); ready != 1 || string(key) != testKey {
			t.Errorf("%d hold the key, and it is fetched as %q, %v", ready, key, err)
		}
		cancel()
		all.Wait()
	}
}

func TestASocketOfAKilledKeeperIsReplaced(t *testing.T) {
	home := newHome(t)
	must.Do(t, makeDir(Dir(home)))
	fd := must.Get(unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0))(t)
	must.Do(t, unix.Bind(fd, &unix.SockaddrUnix{Name: socketPath(home)}))
	_ = unix.Close(fd) // as a kill does: the file stays
	s := serve(t, home, Options{})
	if key, err := Fetch(t.Context(), s.home); err != nil || string(key) != testKey {
		t.Errorf("fetched %q, %v", key, err)
	}
}

// A container that got the socket by mistake: its processes may have the user's uid, and are in a PID namespace below.
func TestAProcessOfAContainerIsRefused(t *testing.T) {
	s := serve(t, newHome(t), Options{})
	client := func(flags uintptr) (string, error) {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), "KEEPER_TEST_HOME="+s.home)
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags}
		if flags&unix.CLONE_NEWUSER != 0 {
			id := []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
			cmd.SysProcAttr.UidMappings = id
		}
		out, err := cmd.Output()
		return string(out), err
	}
	if got, err := client(0); err != nil || got != testKey {
		t.Fatalf("a process beside the keeper fetched %q, %v", got, err)
	}
	flags := uintptr(unix.CLONE_NEWPID)
	if os.Geteuid() != 0 {
		flags |= unix.CLONE_NEWUSER
	}
	got, err := client(flags)
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES) {
		t.Skipf("this host makes no PID namespaces: %v", err)
	}
	if err != nil || got != "" {
		t.Errorf("a process of a container fetched %q, %v", got, err)
	}
}

func TestAKeyIsInLockedMemory(t *testing.T) {
	locked := func() int {
		status := must.Get(os.ReadFile("/proc/self/status"))(t)
		for line := range strings.Lines(string(status)) {
			if f := strings.Fields(line); f[0] == "VmLck:" {
				n, _ := strconv.Atoi(f[1])
				return n
			}
		}
		return 0
	}
	before := locked()
	key := must.Get(ReadKey(strings.NewReader(testKey)))(t)
	if locked() <= before {
		t.Errorf("%d kB are locked with a key, %d without", locked(), before)
	}
	page := key.page
	if !bytes.HasPrefix(page, []byte(testKey)) {
		t.Error("the key is not in its page")
	}
	key.Erase()
	key.Erase()
	if locked() != before {
		t.Error("the page stays locked")
	}
	for _, text := range []string{"", strings.Repeat("x", MaxKey+1)} {
		if _, err := ReadKey(strings.NewReader(text)); err == nil {
			t.Errorf("a key of %d bytes is held", len(text))
		}
	}
}
