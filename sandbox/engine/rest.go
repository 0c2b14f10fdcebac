package engine

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ALRubinger/aileron/internal/procid"
)

const (
	// restAfter is the time without a call after which an engine's process rests.
	restAfter = 2 * time.Second
	// restSlack is how much later than asked for a timer of a process at rest may end (prctl(2), PR_SET_TIMERSLACK).
	restSlack = 400 * time.Millisecond
)

// rest is a process of an engine whose timers the kernel may put off while there is no call. Podman's service looks for
// events of its images ten times a second as long as it runs, and it must run: a container's output comes through it.
// What arrives meanwhile, output or the end of a container, needs no timer.
type rest struct {
	process string // see procid
	pid     int

	mu    sync.Mutex
	calls int         // under way
	due   *time.Timer // nil: there was no call yet
	slack string      // of the process before it rested; "": it does not rest
}

// newRest returns the rest of a process; nil where there is none.
func newRest(pid int) *rest {
	id, err := procid.Of(pid)
	if err != nil {
		return nil
	}
	return &rest{process: id, pid: pid}
}

// begin ends the rest for a call. It accepts nil, as end does.
func (r *rest) begin() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls++
	if r.slack != "" {
		r.setSlack(r.slack)
		r.slack = ""
	}
}

// end ends a call. The rest begins a moment after the last one.
func (r *rest) end() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls--
	switch {
	case r.due == nil:
		r.due = time.AfterFunc(restAfter, r.start)
	case r.calls == 0:
		r.due.Reset(restAfter)
	}
}

// start begins the rest, unless there is a call.
func (r *rest) start() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.calls > 0 || r.slack != "" {
		return
	}
	raw, err := os.ReadFile(slackFile(r.pid))
	if err != nil {
		return
	}
	r.slack = strings.TrimSpace(string(raw))
	r.setSlack(strconv.FormatInt(restSlack.Nanoseconds(), 10))
}

// setSlack sets the slack of each thread of the process. A kernel that does not allow that leaves the process as it is.
func (r *rest) setSlack(nanoseconds string) {
	if !procid.Lives(r.process) {
		return
	}
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", r.pid))
	if err != nil {
		return
	}
	for _, t := range threads {
		thread, err := strconv.Atoi(t.Name())
		if err != nil {
			continue
		}
		if f, err := os.OpenFile(slackFile(thread), os.O_WRONLY, 0); err == nil {
			_, _ = f.WriteString(nanoseconds)
			_ = f.Close()
		}
	}
}

// slackFile is the file of a thread's slack (proc_pid_timerslack_ns(5)).
func slackFile(thread int) string { return fmt.Sprintf("/proc/%d/timerslack_ns", thread) }
