package engine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/docker/docker/client"
	"golang.org/x/sys/unix"
)

// liveness watches for signs of life of an engine, and reports the waits for it.
type liveness struct {
	kind     string
	patience Patience
	ping     func(ctx context.Context) error // nil while the engine starts: a process that lives is a sign then
	pid      int                             // its process on this machine; 0: not known
	said     func() string                   // the last error that it logged; nil: not known

	plain *client.Client // its calls are not watched over; it holds the connections of those that are

	lost  atomic.Bool // it was given up, and has not answered since
	muted atomic.Bool // a program has the person's terminal

	mu    sync.Mutex
	shown *watchdog // whose wait is being reported
}

// newLiveness is the liveness of an engine behind an address.
func newLiveness(kind, host string, patience Patience, plain *client.Client) *liveness {
	p := &liveness{kind: kind, patience: patience, plain: plain}
	p.ping = func(ctx context.Context) error { return ping(ctx, plain) }
	if path, ok := strings.CutPrefix(host, "unix://"); ok {
		p.pid = listenerPID(path)
	}
	return p
}

// ping asks an engine for a sign of life. Both engines respond to it without
// looking at their containers.
func ping(ctx context.Context, cli *client.Client) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, engineURL(cli, "/_ping"), nil)
	if err != nil {
		return err
	}
	res, err := cli.HTTPClient().Do(req)
	if err != nil {
		return err
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return errors.New("it answers a ping with " + res.Status)
	}
	return nil
}

// engineURL is the URL of a path of an engine's API that has no version. The
// transport of a unix socket looks at no host, that of tcp:// dials it.
func engineURL(cli *client.Client, path string) string {
	if u, err := client.ParseHostURL(cli.DaemonHost()); err == nil && u.Scheme != "unix" {
		return "http://" + u.Host + u.Path + path
	}
	return "http://engine" + path
}

// listenerPID is the process that listens on a unix socket; 0 where it cannot
// be seen from here, or where init listens in its place.
func listenerPID(path string) int {
	conn, err := net.Dial("unix", path) //nolint:noctx // a unix socket
	if err != nil {
		return 0
	}
	defer conn.Close()
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return 0
	}
	pid := 0
	_ = raw.Control(func(fd uintptr) {
		cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		if err == nil && cred.Pid > 1 {
			pid = int(cred.Pid)
		}
	})
	return pid
}

// activity is what the kernel shows of a process.
type activity struct {
	state byte   // as in proc(5); 0: there is none
	cpu   uint64 // its processor time, and that of its children that have ended, in ticks
}

// stopped reports a process that a SIGSTOP keeps from running.
func (a activity) stopped() bool { return a.state == 'T' }

// works reports whether the process got processor time since before, or waits
// for a disk.
func (a activity) works(before activity) bool { return a.state == 'D' || a.cpu != before.cpu }

// activityOf reads the activity of a process.
func activityOf(pid int) activity {
	if pid == 0 {
		return activity{}
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return activity{}
	}
	_, rest, _ := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')'):]), " ")
	fields := strings.Fields(rest) // from the third of proc(5) on
	if len(fields) < 15 || fields[0] == "Z" || fields[0] == "X" {
		return activity{}
	}
	a := activity{state: fields[0][0]}
	for _, ticks := range fields[11:15] { // utime, stime, cutime, cstime
		n, _ := strconv.ParseUint(ticks, 10, 64)
		a.cpu += n
	}
	return a
}

// await calls do, and waits for it as long as the engine lives. do must end
// when its context does. The error of a wait that was given up is a WaitError.
func (l *liveness) await(ctx context.Context, step string, do func(context.Context) error) error {
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	w := l.watch(ctx, step, l.patience.limit(), giveUp)
	defer w.end()
	err := do(ctx)
	if given := givenUp(ctx); err != nil && given != nil {
		return given
	}
	return err
}

// Await calls do, and waits for it as long as the engine lives. do must end when
// its context does. The error of a wait that was given up is a [WaitError].
func (e *Engine) Await(ctx context.Context, step string, do func(context.Context) error) error {
	return e.liveness.await(ctx, step, do)
}

// Expect begins to wait for something that the engine is to do: givenUp is
// closed when it makes no sense to wait any longer. end ends the wait, and
// returns why it was given up, or the end of ctx.
func (e *Engine) Expect(ctx context.Context, step string) (givenUp <-chan struct{}, end func() error) {
	ctx, giveUp := context.WithCancelCause(ctx)
	w := e.liveness.watch(ctx, step, e.liveness.patience.limit(), giveUp)
	return ctx.Done(), sync.OnceValue(func() error {
		defer giveUp(nil)
		w.end()
		return context.Cause(ctx)
	})
}

// Mute stops the reports of waits while a program has the person's terminal.
func (e *Engine) Mute(muted bool) { e.liveness.muted.Store(muted) }

// givenUp is the WaitError with which ctx was cancelled; nil for none.
func givenUp(ctx context.Context) error {
	if lost := (*WaitError)(nil); errors.As(context.Cause(ctx), &lost) {
		return lost
	}
	return nil
}

// report passes on a wait, unless another one is being reported.
func (l *liveness) report(d *watchdog, w Wait) {
	if l.patience.Report == nil || l.muted.Load() && !w.Over {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shown == nil && !w.Over {
		l.shown = d
	}
	if l.shown != d {
		return
	}
	if w.Over {
		l.shown = nil
	}
	l.patience.Report(w)
}
