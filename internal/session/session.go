// Package session runs one session: a plane, the connectors and credentials
// that it grants, and the directory by which other processes find it.
//
// A session is this process. The key of its CA and the opened vault exist only
// in its memory; what it shares with other sessions is on disk and guarded by
// locks. Its life has four steps, which are four methods in this file:
//
//   - [Open] creates the session's directory, lock and control socket, verifies
//     the installed connectors, opens the vault if a credential is bound, and
//     makes the plane. It fails rather than open with less than was asked for.
//   - [Session.Serve] records session.started and follows changes on disk: what
//     is revoked is not granted a second later. [Session.Listen] then serves the
//     plane on a listener.
//   - [Session.Close] drains: exchanges under way may end, new ones are refused.
//   - It then records session.ended and releases everything. A session ends in
//     this method and nowhere else; [Session.Abandon] calls it if a later step of
//     the caller fails, and Open if one of its own does.
//
// So a command uses it like this:
//
//	s, err := session.Open(ctx, session.Options{Home: home, Mode: "proxy", Vault: v, Unlock: unlock})
//	if err != nil {
//		return err
//	}
//	if err := s.Serve(ctx, false); err != nil {
//		s.Abandon(ctx)
//		return err
//	}
//	s.Listen(ctx, l, proxy.Listener{})
//	code, cause := run(ctx)
//	return s.Close(ctx, code, cause)
//
// Other processes see a session through its directory: [Lister] lists sessions,
// [Alive] reports whether one runs, [State.Stop] and [Unlock] reach its control
// socket, and [Session.Sweep] records the end of those that were killed.
//
// The package prints nothing, exits nowhere and knows no engine.
package session

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/ca"
	"github.com/ALRubinger/aileron/internal/auditlog"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/proxy"
	"github.com/ALRubinger/aileron/spec/store"
	"github.com/ALRubinger/aileron/vault"
)

// Session is an open session.
type Session struct {
	opts  Options
	id    string
	token string
	start time.Time

	dir  string      // <home>/sessions/<id>
	home os.FileInfo // the home as it was at the start
	lock *os.File

	audit  *audit.Log
	store  *store.Store
	vault  *vault.Vault
	loader *loader
	ca     *ca.Session
	plane  *proxy.Plane

	stop    context.CancelFunc // ends everything that is served; nil before Serve
	serving sync.WaitGroup
	ready   chan struct{} // closed when the session is open: its fields are set

	closeControl func() // ends the control socket
}

// Open opens a session. If it fails, nothing is left of the session but its
// audit events. The error is [ErrStopped] if opts.Stop is requested meanwhile.
func Open(ctx context.Context, opts Options) (opened *Session, err error) {
	s := newSession(opts)
	ctx, cancel := s.opts.Stop.WithStop(ctx)
	defer cancel()
	defer func() {
		if s.opts.Stop.Requested() {
			err = ErrStopped
		}
		if err != nil {
			opened = nil
			s.Abandon(context.WithoutCancel(ctx))
		}
	}()
	for _, step := range []func(context.Context) error{
		s.makeToken, s.makeDir, s.noteHome, s.openLog, s.openStore, s.makePlane,
	} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	close(s.ready)
	return s, nil
}

// Serve records session.started and starts to follow the store and the vault.
// sealed is whether the sandbox has no other way out; else mediation is by
// convention.
func (s *Session) Serve(ctx context.Context, sealed bool) error {
	ctx, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	row := s.row(audit.EventSessionStarted, map[string]any{
		"agent": s.opts.Agent, "mode": s.opts.Mode, "sealed": sealed, "pid": os.Getpid(), "egress": s.opts.egress(),
	})
	if _, err := s.audit.Append(ctx, row); err != nil {
		return hint.New(fmt.Errorf("record session.started: %w", err), "check the disk and the rights on %s", s.opts.Home)
	}
	s.serving.Go(func() { s.loader.watch(ctx) })
	return nil
}

// Listen serves the plane on l until the session closes. Serve comes first.
func (s *Session) Listen(ctx context.Context, l net.Listener, listener proxy.Listener) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := s.stop
	s.stop = func() { cancel(); stop() }
	s.serving.Go(func() { _ = s.plane.Serve(ctx, l, listener) })
}

// Close drains the plane, ends everything that is served, records session.ended
// with the exit code of the session's command and why it ended, and removes the
// session's directory. A session that has not served has no such event unless
// it was stopped: then it was listed. The error is about events that are not in
// the audit log; whatever it is, the session is closed.
func (s *Session) Close(ctx context.Context, exitCode int, cause string) error {
	s.drain(ctx)
	err := s.recordEnd(ctx, exitCode, cause)
	return errors.Join(err, s.release())
}

// Abandon closes a session whose command did not begin. Why it did not is the
// error that the caller returns, so what Close returns is reported beside it.
func (s *Session) Abandon(ctx context.Context) {
	code, cause := 1, "failed to start"
	if s.opts.Stop.Requested() {
		code, cause = StoppedCode, StoppedCause
	}
	if err := s.Close(ctx, code, cause); err != nil {
		s.opts.Report(err)
	}
}

// drain waits for exchanges under way, and then ends those that are left. When
// it returns, nothing of the session is served.
func (s *Session) drain(ctx context.Context) {
	if s.plane != nil {
		s.plane.Drain(ctx)
	}
	if s.stop != nil {
		s.stop()
		s.serving.Wait()
	}
}

// recordEnd records session.ended.
func (s *Session) recordEnd(ctx context.Context, exitCode int, cause string) error {
	if s.audit == nil || s.stop == nil && !s.opts.Stop.Requested() {
		return nil
	}
	row := s.row(audit.EventSessionEnded, map[string]any{
		"exit_code": exitCode, "cause": cause, "seconds": int(time.Since(s.start).Seconds()),
		"agent": s.opts.Agent, "mode": s.opts.Mode,
	})
	return s.audit.AppendSoon(context.WithoutCancel(ctx), row)
}

// release releases what Open took. The directory of a session that lost rows
// stays, so that the next session's sweep records what is not known.
func (s *Session) release() (err error) {
	if s.closeControl != nil {
		s.closeControl()
	}
	if s.vault != nil {
		s.vault.Lock()
	}
	if s.audit != nil {
		err = s.audit.Close()
	}
	if s.dir != "" && !lostRows(err) {
		_ = os.RemoveAll(s.dir)
	}
	if s.lock != nil {
		_ = s.lock.Close()
	}
	if err != nil {
		err = fmt.Errorf("close the session: %w", err)
	}
	return auditlog.LossHint(err, s.opts.Home)
}

// lostRows reports whether err is about rows of outcomes that are nowhere.
func lostRows(err error) bool {
	var lost *audit.LostError
	return errors.As(err, &lost) && lost.Lost > 0
}
