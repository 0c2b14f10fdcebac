package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/docker/docker/client"

	"github.com/ALRubinger/aileron/internal/procid"
	"github.com/ALRubinger/aileron/internal/system"
)

// liveness watches for signs of life of an engine, and reports the waits for it.
type liveness struct {
	kind     string
	patience Patience
	ping     func(ctx context.Context) error // nil while the engine starts: a process that lives is a sign then
	pid      int                             // its process on this machine; 0: not known
	said     func() string                   // the last error that it logged; nil: not known

	plain *client.Client // its calls are not watched over; it holds the connections of those that are

	rest *rest // of its process while nothing is asked of it; nil: it never rests

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
	res, err := request(ctx, cli, http.MethodGet, engineURL(cli, "/_ping"), 1<<10)
	if err == nil && res.code != http.StatusOK {
		err = errors.New("it answers a ping with " + res.status)
	}
	return err
}

// response is what an engine sent, with the beginning of its body.
type response struct {
	code   int
	status string
	header http.Header
	body   []byte
}

// request sends a request past the client's own calls, and returns the response with at most limit bytes of its body.
func request(ctx context.Context, cli *client.Client, method, url string, limit int64) (r response, err error) {
	req, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return r, err
	}
	res, err := cli.HTTPClient().Do(req)
	if err != nil {
		return r, err
	}
	return readResponse(res, limit)
}

// readResponse reads a response with at most limit bytes of its body, and closes it.
func readResponse(res *http.Response, limit int64) (r response, err error) {
	defer res.Body.Close()
	r = response{code: res.StatusCode, status: res.Status, header: res.Header}
	r.body, err = io.ReadAll(io.LimitReader(res.Body, limit))
	return r, err
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
		if _, peer, err := system.PeerOf(int(fd)); err == nil && peer > 1 {
			pid = peer
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
	stat, err := procid.Stat(pid)
	if err != nil || stat[procid.StatState] == "Z" || stat[procid.StatState] == "X" {
		return activity{}
	}
	a := activity{state: stat[procid.StatState][0]}
	for _, ticks := range stat[procid.StatTimes : procid.StatTimes+4] {
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

// watchdog watches over an engine while something of it is waited for.
type watchdog struct {
	p      *liveness
	step   string
	limit  time.Duration // 0: none
	giveUp context.CancelCauseFunc

	moved atomic.Int64 // of the response, in bytes
	quiet atomic.Bool  // the response itself is being shown

	stop context.CancelFunc
	done chan struct{}
}

// watch starts a watchdog. It calls giveUp with a WaitError when it makes no sense
// to wait any longer, and lasts until end is called.
func (l *liveness) watch(
	ctx context.Context, step string, limit time.Duration, giveUp context.CancelCauseFunc,
) *watchdog {
	l.rest.begin()
	ctx, stop := context.WithCancel(ctx)
	w := &watchdog{p: l, step: step, limit: limit, giveUp: giveUp, stop: stop, done: make(chan struct{})}
	go func() {
		defer close(w.done)
		defer l.rest.end()
		w.run(ctx)
	}()
	return w
}

// end ends the watchdog, and its report.
func (w *watchdog) end() {
	w.stop()
	<-w.done
}

// signs are what a watchdog has seen of its engine.
type signs struct {
	began   time.Time
	looked  time.Time // the last look
	alive   time.Time // the last sign of life
	moved   time.Time // the last byte of the response
	stopped time.Time // since when its process is stopped; zero: it is not
	bytes   int64
	last    activity
	fault   error // of the last ping
}

// checkInterval is the time between two looks.
const checkInterval = time.Second

// run looks for signs of life each second.
func (w *watchdog) run(ctx context.Context) {
	now := time.Now()
	s := signs{began: now, looked: now, alive: now, moved: now, last: activityOf(w.p.pid)}
	pings := pinger{p: w.p, result: make(chan error, 1)}
	defer pings.end()
	defer func() {
		w.p.report(w, Wait{Engine: w.p.kind, Step: w.step, For: time.Since(s.began), Over: true})
	}()
	tick := time.NewTicker(checkInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case s.fault = <-pings.result:
			pings.busy = false
			if s.fault == nil {
				s.alive = time.Now()
				w.p.lost.Store(false)
			}
			continue
		case <-tick.C:
		}
		pings.start(ctx)
		w.look(&s)
		if err := w.verdict(s); err != nil {
			w.p.lost.Store(!err.Lives)
			w.giveUp(err)
			return
		}
		if waited := time.Since(s.began); waited >= noticeAfter && !w.quiet.Load() {
			w.p.report(w, Wait{Engine: w.p.kind, Step: w.step, For: waited})
		}
	}
}

// look notes what can be seen of the engine without asking it.
func (w *watchdog) look(s *signs) {
	now := time.Now()
	s.skip(now.Sub(s.looked) - checkInterval)
	s.looked = now
	if bytes := w.moved.Load(); bytes != s.bytes {
		s.bytes, s.alive, s.moved = bytes, now, now
	}
	seen := activityOf(w.p.pid)
	switch {
	case seen.stopped() && s.stopped.IsZero():
		s.stopped = now
	case seen.stopped():
	default:
		s.stopped = time.Time{}
		if seen.state != 0 && (w.p.ping == nil || seen.works(s.last)) {
			s.alive = now
		}
	}
	s.last = seen
}

// skip disregards a time without a look, in which this process was stopped, or
// wrote to a terminal that was: what the engine did meanwhile was not seen.
func (s *signs) skip(away time.Duration) {
	if away < checkInterval {
		return
	}
	s.alive, s.moved = s.alive.Add(away), s.moved.Add(away)
	if !s.stopped.IsZero() {
		s.stopped = s.stopped.Add(away)
	}
}

// verdict returns why the engine is not waited for any longer; nil: it is.
func (w *watchdog) verdict(s signs) *WaitError {
	now := time.Now()
	silent := w.p.patience.silent()
	if w.p.lost.Load() {
		silent = min(silent, lostTime)
	}
	e := &WaitError{Engine: w.p.kind, Step: w.step, Waited: now.Sub(s.began)}
	switch {
	case !s.stopped.IsZero() && (now.Sub(s.stopped) >= stoppedTime || now.Sub(s.alive) >= silent):
		e.Why = fmt.Sprintf("its process %d is stopped (SIGSTOP)", w.p.pid)
		e.remedy = fmt.Sprintf("resume it with: kill -CONT %d", w.p.pid)
	case now.Sub(s.alive) >= silent:
		e.Why = fmt.Sprintf("for %v there was no sign of life", now.Sub(s.alive).Round(time.Second))
		e.remedy = "start " + w.p.kind + " again"
	case w.limit > 0 && now.Sub(s.moved) >= w.limit:
		e.Why, e.Lives = "[sandbox] engine_timeout allows no more", true
		e.remedy = "look at what " + w.p.kind + " does, or raise engine_timeout in [sandbox] of config.toml"
	default:
		return nil
	}
	if s.fault != nil {
		e.Last = s.fault.Error()
	}
	if w.p.said != nil {
		if !e.Lives {
			e.remedy = "run it again" // the service is this run's own
		}
		if line := w.p.said(); line != "" {
			e.Last = line
		}
	}
	return e
}

// pinger pings an engine, once at a time.
type pinger struct {
	p      *liveness
	busy   bool
	result chan error
	cancel context.CancelFunc
}

func (p *pinger) start(ctx context.Context) {
	if p.busy || p.p.ping == nil {
		return
	}
	p.end() // of the last one only its timer is left
	ctx, p.cancel = context.WithTimeout(ctx, p.p.patience.silent())
	p.busy = true
	go func() { p.result <- p.p.ping(ctx) }() // end waits for it
}

// end ends the ping that is under way.
func (p *pinger) end() {
	if p.cancel != nil {
		p.cancel()
	}
	if p.busy {
		<-p.result //nolint:errcheck // it was cancelled
	}
}
