package faults

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
)

// startsEnv names the variable that asks for the long form of this suite.
const startsEnv = "AILERON_FAULTS_STARTS"

func longForm() bool { return os.Getenv(startsEnv) != "" }

// starts is how many sessions begin and end in TestManyStartsLeaveNothing:
// AILERON_FAULTS_STARTS, or 12, four for each way to end.
func starts(t *testing.T) int {
	t.Helper()
	text := os.Getenv(startsEnv)
	if !longForm() {
		return 12
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s is %q, want a number", startsEnv, text)
	}
	return n
}

// Sessions that begin four at a time and end as their commands end, by SIGTERM
// or by SIGKILL at any moment of their start or their life, leave nothing.
func TestManyStartsLeaveNothing(t *testing.T) {
	t.Parallel()
	n := starts(t)
	places(t, func(t *testing.T, u *user) {
		// Nothing bound: opening a vault is slow on purpose.
		must.Do(t, os.RemoveAll(u.home))
		seed := rand.Uint64()
		t.Logf("the seed is %d", seed)
		before, mounts, temps := filesOf(u.home), len(lines("/proc/self/mountinfo")), temporary()
		u.must(u.boxArgs("true")...) // and a first one, which makes what all share
		shared := filesOf(u.home)
		var mu sync.Mutex
		counts, owners := map[string]int{}, map[string]bool{}
		next := make(chan int)
		var running sync.WaitGroup
		for worker := range 4 {
			rng := rand.New(rand.NewPCG(seed, uint64(worker)))
			running.Go(func() {
				for range next {
					end, owner := oneEnd(u, rng)
					mu.Lock()
					counts[end]++
					owners[owner] = true
					mu.Unlock()
				}
			})
		}
		for i := range n {
			next <- i
		}
		close(next)
		running.Wait()
		t.Logf("%d sessions: %v", n, counts)
		harness.WaitFor(t, "wardens end", func() bool { return !strings.Contains(u.left(), "process") })
		// What only the next session can remove, it does, once a directory is
		// old enough that no session is about to lock it.
		// It leaves what another process removes just now.
		harness.WaitFor(t, "the next session cleans up", func() bool {
			u.must(u.boxArgs("true")...)
			return u.left() == "" && len(u.looking(owners)) == 0
		})
		if now := filesOf(u.home); !slices.Equal(now, shared) {
			t.Errorf("files before any session: %v\nafter one: %v\nafter %d: %v", before, shared, n, now)
		}
		for _, dir := range temporary() {
			var pid, start uint64
			if _, err := fmt.Sscanf(filepath.Base(dir), "aileron-engine-%d-%d-", &pid, &start); err == nil &&
				owners[fmt.Sprintf("%d/%d", pid, start)] {
				t.Errorf("left: %s", dir)
			}
		}
		u.must("audit", "verify")
		t.Logf("mounts: %d before, %d after; %d and %d directories of aileron's in %s (other tests have theirs)",
			mounts, len(lines("/proc/self/mountinfo")), len(temps), len(temporary()), os.TempDir())
	})
}

// oneEnd runs one session, and returns how it ended and which process it was:
// its number is soon another's.
func oneEnd(u *user, rng *rand.Rand) (how, owner string) {
	code := rng.IntN(3)
	cmd := u.command(u.boxArgs(fmt.Sprintf("sleep 0.%d; exit %d", rng.IntN(10), code))...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = 10 * time.Second
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		u.t.Error(err)
		return "not at all", ""
	}
	owner = fmt.Sprintf("%d/%s", cmd.Process.Pid, startOf(cmd.Process.Pid))
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	end := rng.IntN(3)
	if end > 0 {
		sig := syscall.SIGTERM
		if end == 2 {
			sig = syscall.SIGKILL
		}
		select {
		case <-ended:
		case <-time.After(time.Duration(rng.IntN(2500)) * time.Millisecond): // any moment is the subject
			_ = cmd.Process.Signal(sig)
		}
	}
	select {
	case <-ended:
	case <-time.After(patience):
		u.t.Errorf("aileron did not end")
		_ = cmd.Process.Kill()
		<-ended
	}
	state, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
	switch got := cmd.ProcessState.ExitCode(); {
	case state.Signaled():
		return "killed", owner
	case end == 0 && got != code:
		u.t.Errorf("exit %d, want %d", got, code)
		return "wrong", owner
	case harness.WithoutNotices(errs.String()) != "" && got != 130:
		u.t.Errorf("exit %d with %q", got, &errs)
		return "wrong", owner
	default:
		return "code " + strconv.Itoa(got), owner
	}
}

// filesOf are the paths below a home, but for the parts of the audit log that
// come and go.
func filesOf(home string) (paths []string) {
	_ = filepath.WalkDir(home, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !strings.HasPrefix(d.Name(), "audit.db-") {
			paths = append(paths, path)
		}
		return nil
	})
	return paths
}

func temporary() []string {
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), "aileron-*"))
	return dirs
}

func lines(file string) []string {
	data, _ := os.ReadFile(file)
	return strings.Split(strings.TrimSpace(string(data)), "\n")
}
