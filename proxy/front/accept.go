package front

import (
	"cmp"
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/ALRubinger/aileron/proxy"
	"github.com/ALRubinger/aileron/proxy/upstream"
	"github.com/ALRubinger/aileron/proxy/wire"
)

// Serve accepts connections on l until ctx ends, and returns when all that it
// started has ended.
func (f *Front) Serve(ctx context.Context, l net.Listener, listener Listener) error {
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	f.serving.Add(1)
	defer func() { f.plane.Settle(f.serving.Add(-1) == 0) }()
	defer f.countSilence() // no count is lost
	defer f.countUnasked()
	f.workers.open()
	defer f.workers.close()
	var conns sync.WaitGroup
	defer conns.Wait()
	f.files.Start()
	open := f.newHandler(ctx, listener).withOverflow()
	for {
		conn := f.accept(ctx, l)
		if conn == nil {
			return nil
		}
		s, ok := f.seat(conn, open)
		if !ok {
			_ = conn.Close() // there is not even room to deny it
			f.recordUnasked()
			continue
		}
		conns.Add(1)
		f.workers.run(func() {
			defer conns.Done()
			defer s.leave()
			defer f.recovered("a connection")
			s.handler.serve(conn, s.options)
		})
	}
}

// accept returns the next connection, nil when there will be none. While the
// process has no descriptor for it, idle upstream connections are closed.
func (f *Front) accept(ctx context.Context, l net.Listener) net.Conn {
	for wait := time.Duration(0); ; {
		conn, err := l.Accept()
		switch {
		case err == nil:
			return conn
		case ctx.Err() != nil, errors.Is(err, net.ErrClosed):
			return nil
		case upstream.IsOutOfDescriptors(err) && f.files.Squeeze():
			continue
		}
		wait = min(max(2*wait, 5*time.Millisecond), 100*time.Millisecond)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil
		}
	}
}

// seat is how a connection is served: as a client, or only to be denied.
type seat struct {
	handler *handler
	options wire.Options
	leave   func()
}

// deniedWithin bounds a connection that is only denied. Tests change it.
var deniedWithin = 2 * time.Second

// seat returns how conn is served, and false when there is no room at all. A
// client holds a descriptor and one of the session's connections; a connection
// that gets neither is denied, in the lobby.
func (f *Front) seat(conn net.Conn, open *handler) (seat, bool) {
	s := seat{handler: open, options: wire.Options{Limits: f.cfg.Limits.Wire, Budget: f.plane.Budget(),
		Drain: f.plane.Draining(), Log: f.cfg.Log}}
	if f.plane.Draining().Err() != nil { // it came too late, and is denied
		s.options.Drain = nil
		s.once()
	}
	reason := f.takeSeat()
	if reason == "" {
		s.leave = func() { <-f.slots; f.files.GiveClient() }
		return s, true
	}
	if !f.lobby.enter(conn) {
		return seat{}, false
	}
	s.once()
	s.handler, s.leave = open.full[reason], func() { f.lobby.leave(conn) }
	return s, true
}

// once makes the connection end after one exchange, which must not be slow.
func (s *seat) once() {
	s.options.Once = true
	s.options.Limits.Idle, s.options.Limits.Header = deniedWithin, deniedWithin
}

// takeSeat counts a client in, or returns why it is denied.
func (f *Front) takeSeat() proxy.Reason {
	select {
	case f.slots <- struct{}{}:
	default:
		return proxy.ReasonConcurrency
	}
	if !f.files.TakeClient() {
		<-f.slots
		return proxy.ReasonDescriptors
	}
	return ""
}

// lobby is the connections over a limit, whose requests are denied. When it is
// full, the oldest makes room: most likely it sends no request.
type lobby struct {
	places chan struct{}
	evicts time.Duration // how long a place that was made is waited for; 0: lobbyWait

	mu    sync.Mutex
	conns []net.Conn // the oldest first, without those that had to make room
}

// lobbyWait is how long a connection waits for a place, before the oldest of the
// others makes room, and after that.
const lobbyWait = 50 * time.Millisecond

// enter adds conn, and reports whether there was a place for it.
func (l *lobby) enter(conn net.Conn) bool {
	if !l.place(lobbyWait) {
		l.evict()
		if !l.place(cmp.Or(l.evicts, lobbyWait)) {
			return false
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns = append(l.conns, conn)
	return true
}

func (l *lobby) place(within time.Duration) bool {
	select {
	case l.places <- struct{}{}:
		return true
	default:
	}
	late := time.NewTimer(within)
	defer late.Stop()
	select {
	case l.places <- struct{}{}:
		return true
	case <-late.C:
		return false
	}
}

func (l *lobby) evict() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.conns) > 0 {
		_ = l.conns[0].Close()
		l.conns = slices.Delete(l.conns, 0, 1)
	}
}

func (l *lobby) leave(conn net.Conn) {
	l.mu.Lock()
	l.conns = slices.DeleteFunc(l.conns, func(c net.Conn) bool { return c == conn })
	l.mu.Unlock()
	<-l.places
}
