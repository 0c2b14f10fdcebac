package engine

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/e2e/must"
)

// hexID returns the id of a container of these tests.
func hexID(digit string) string { return strings.Repeat(digit, 64) }

func pidsOf(found []hostProcess) (pids []int) {
	for _, p := range found {
		pids = append(pids, p.pid)
	}
	slices.Sort(pids)
	return pids
}

func TestTheProcessesOfAContainerAreRecognised(t *testing.T) {
	own := "0::/libpod_parent/libpod-" + hexID("a") + "\n"
	all := []hostProcess{
		{pid: 1, args: []string{"/sbin/init"}, groups: "0::/\n"},
		{pid: 10, parent: 1, args: []string{"/usr/bin/conmon", "-c", hexID("a"), "-n", "aileron-x-gw"}},
		{pid: 12, parent: 11, args: []string{"/usr/bin/runc", "init"}}, // before the one that it descends from
		{pid: 11, parent: 10, args: []string{"/usr/bin/runc", "create", hexID("a")}},
		{pid: 13, parent: 1, args: []string{"sleep", "600"}, groups: own}, // its monitor was killed
		{pid: 14, parent: 1, args: []string{"/usr/bin/containerd-shim-runc-v2", "-namespace", "moby", "-id", hexID("a")}},
		{pid: 20, parent: 1, args: []string{"/usr/bin/conmon", "-c", hexID("b"), "-n", "aileron-y-gw"}},
		{pid: 21, parent: 20, args: []string{"sleep"}, groups: "0::/libpod_parent/libpod-" + hexID("b") + "\n"},
		{pid: 30, parent: 1, args: []string{"vi", "/var/log/" + hexID("a")}},
		{pid: 31, parent: 1, args: []string{"podman", "logs", hexID("a")}},
		{pid: os.Getpid(), parent: 10, args: []string{"/usr/bin/podman", "cleanup", hexID("a")}}, // of this namespace
		{pid: 1 << 30, parent: 13, args: []string{"podman"}},                                     // in the container
	}
	want := []int{10, 11, 12, 13, 14, 1 << 30}
	if got := pidsOf(remainsOf(all, []string{hexID("a"), "aileron-x-box", ""})); !slices.Equal(got, want) {
		t.Errorf("remainsOf = %v, want %v", got, want)
	}
	// A container that was not made is known by its name only.
	if got := remainsOf(all, []string{"aileron-x-gw", "", "sleep", hexID("A")}); got != nil {
		t.Errorf("remainsOf = %v without an id", got)
	}
}

// A monitor is alone when its container has no files any more.
func TestAMonitorOfARemovedContainerIsAnOrphan(t *testing.T) {
	dir := t.TempDir()
	there := filepath.Join(dir, hexID("a"))
	must.Do(t, os.Mkdir(there, 0o700))
	conmon := func(args ...string) hostProcess {
		return hostProcess{pid: os.Getpid(), args: append([]string{"conmon"}, args...)}
	}
	for _, c := range []struct {
		name string
		p    hostProcess
		want bool
	}{
		{"removed", conmon("-c", hexID("b"), "-b", filepath.Join(dir, hexID("b")), "-n", "aileron-x-gw"), true},
		{"it is there", conmon("-c", hexID("a"), "-b", there, "-n", "aileron-x-gw"), false},
		{"not one of ours", conmon("-c", hexID("b"), "-b", filepath.Join(dir, hexID("b")), "-n", "other"), false},
		{"without files", conmon("-c", hexID("b"), "-n", "aileron-x-gw"), false},
		{"another's files", conmon("-c", hexID("b"), "-b", filepath.Join(dir, hexID("c")), "-n", "aileron-x-gw"), false},
		{"cut off", conmon("-n", "aileron-x-gw", "-c"), false},
	} {
		child := hostProcess{pid: 1 << 30, parent: os.Getpid(), args: []string{"runc", "init"}}
		if got := orphans([]hostProcess{child, c.p}, "aileron-"); (len(got) == 2) != c.want || !c.want && got != nil {
			t.Errorf("%s: orphans = %v, want %v", c.name, got, c.want)
		}
	}
}

// heldCat returns a process that is held, and what ends it.
func heldCat(t *testing.T) (p *pidfd, end func()) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "cat")
	in := must.Get(cmd.StdinPipe())(t)
	must.Do(t, cmd.Start())
	p = &pidfd{must.Get(unix.PidfdOpen(cmd.Process.Pid, 0))(t)}
	t.Cleanup(p.release)
	return p, func() { _ = in.Close(); _ = cmd.Wait() }
}

func TestAProcessWithoutItsMonitorIsOrphaned(t *testing.T) {
	process, endProcess := heldCat(t)
	first, endFirst := heldCat(t)
	c := &Container{process: process, monitor: first}
	orphaned := c.Orphaned(t.Context())
	select {
	case <-orphaned:
		t.Error("it is an orphan while its monitor lives")
	default:
	}
	endFirst()
	select {
	case <-orphaned:
	case <-time.After(10 * time.Second):
		t.Error("its monitor has ended, and it is no orphan")
	}
	// A monitor ends after its process: that is the usual end.
	second, endSecond := heldCat(t)
	c.monitor = second
	ctx, cancel := context.WithCancel(t.Context())
	endProcess()
	orphaned = c.Orphaned(ctx)
	endSecond()
	<-second.done(t.Context(), func() {})
	cancel()
	select {
	case <-orphaned:
		t.Error("a process that had ended is an orphan")
	default:
	}
}

// A terminal ends with the monitor that holds it, and the program on it at once: which of both was seen first says
// nothing, but a monitor that was killed has not reported a later end.
func TestAnEndAfterThatOfItsMonitorIsUnreported(t *testing.T) {
	process, endProcess := heldCat(t)
	monitor, endMonitor := heldCat(t)
	c := &Container{process: process, monitor: monitor}
	before := time.Now()
	orphaned := c.Orphaned(t.Context())
	if c.Unreported(State{Finished: before.Add(time.Hour)}) {
		t.Error("its monitor lives, and an end is unreported")
	}
	endMonitor()
	<-orphaned
	endProcess()
	for what, at := range map[string]struct {
		finished time.Time
		want     bool
	}{
		"an end that the monitor saw":          {before, false},
		"an end that no monitor saw":           {time.Now().Add(time.Millisecond), true},
		"an end that the engine does not know": {time.Time{}, false},
	} {
		if got := c.Unreported(State{Finished: at.finished}); got != at.want {
			t.Errorf("%s: Unreported = %v, want %v", what, got, at.want)
		}
	}
}

func TestAnEndThatIsNotReportedIsNotWaitedFor(t *testing.T) {
	monitor, endMonitor := heldCat(t)
	ended := make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{version}/containers/it/json", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"State":{"Status":"running","Running":true}}`)
	})
	mux.HandleFunc("POST /v4.0.0/libpod/containers/it/wait", func(_ http.ResponseWriter, r *http.Request) {
		select { // as long as it has patience with the monitor
		case <-r.Context().Done():
		case <-ended:
		}
	})
	e := respondingPodman(t, mux)
	defer close(ended)
	endMonitor()
	exits, faults := e.Wait(t.Context(), &Container{ID: "it", over: true, monitor: monitor})
	select {
	case got := <-exits:
		t.Errorf("Wait = %+v, want ErrUnreported", got)
	case err := <-faults:
		if !errors.Is(err, ErrUnreported) {
			t.Errorf("Wait = %v, want ErrUnreported", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("Wait waits for a report")
	}
}

// What Podman responds to a failed call is JSON, of which a person reads the message.
func TestAFailureOfPodmanIsItsMessage(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v4.0.0/libpod/containers/it/wait", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprint(w, `{"cause":"no such exit code","message":"getting exit code from DB: no such exit code","response":500}`)
	})
	_, faults := respondingPodman(t, mux).Wait(t.Context(), &Container{ID: "it"})
	if err := <-faults; err.Error() != "podman: getting exit code from DB: no such exit code" {
		t.Errorf("Wait = %v", err)
	}
}
