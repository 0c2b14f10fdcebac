// Package session runs one session: a plane, the connectors and credentials
// that it grants, and the directory by which other processes find it.
//
// A session lives in one process. The key of its CA and the unlocked vault exist
// only in the memory of that process; what it shares with other sessions is on
// disk and guarded by locks. The four steps of its life are in this file:
//
//   - Open: [Open] creates the session's directory, lock and control socket,
//     verifies the installed connectors, unlocks the vault if a credential is
//     bound, and makes the plane. It fails rather than open with less than was
//     asked for.
//   - Serve: [Session.Serve] records session.started and follows changes on disk,
//     so that a revocation takes effect within a second. [Session.Listen] serves
//     the plane on a listener.
//   - Drain: [Session.Close] first waits for exchanges under way. New ones are
//     refused.
//   - Close: it then records session.ended and releases everything. A session
//     ends in this method and nowhere else: Open calls it if one of its own steps
//     fails, and [Session.Abandon] if a later step of the caller does.
//
// A command uses it like this:
//
//	s, err := session.Open(ctx, session.Options{Home: home, Mode: "proxy", Vault: v, Unlock: unlock})
//	if err != nil {
//		return err
//	}
//	if err := s.Serve(ctx, false); err != nil {
//		s.Abandon(ctx)
//		return err
//	}
//	s.Listen(ctx, l, front.Listener{})
//	code, cause := run(ctx)
//	return s.Close(ctx, code, cause)
//
// Other processes find a session by its directory: [Lister] lists sessions,
// [Alive] reports whether one runs, [State.Stop] and [Unlock] call its control
// socket, and [Session.Sweep] records the end of sessions that were killed.
//
// Read this file first, then open.go for the steps of Open, and loader.go for what
// a session grants: on grants.go and actions.go it stands, and grantrows.go records
// it. memory.go bounds the heap of the process.
//
// The package does not print or exit, and it does not depend on a container
// engine: callbacks in [Options] carry messages for people.
package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/ca"
	"github.com/ALRubinger/aileron/internal/auditlog"
	"github.com/ALRubinger/aileron/internal/daybook"
	"github.com/ALRubinger/aileron/internal/destination"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/hostfiles"
	"github.com/ALRubinger/aileron/internal/learn"
	"github.com/ALRubinger/aileron/internal/otlp"
	"github.com/ALRubinger/aileron/proxy"
	"github.com/ALRubinger/aileron/proxy/approval"
	"github.com/ALRubinger/aileron/proxy/capture"
	"github.com/ALRubinger/aileron/proxy/front"
	"github.com/ALRubinger/aileron/proxy/meter"
	"github.com/ALRubinger/aileron/proxy/preview"
	"github.com/ALRubinger/aileron/proxy/scrub"
	"github.com/ALRubinger/aileron/proxy/upstream"
	"github.com/ALRubinger/aileron/spec"
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

	audit           *audit.Log
	outage, damaged atomic.Bool // of the audit log
	tally           tally       // of what the plane records
	store           *store.Store
	vault           *vault.Vault
	loader          *loader
	ca              *ca.Session
	plane           *proxy.Plane

	ledger  *meter.Ledger
	daybook *daybook.Book // nil: there is no budget of a day

	approvals *approval.Queue // of requests that wait for a person; nil before it is open
	previews  *preview.Previewer

	front  *front.Front
	settle func() // lowers the memory limit when the session has begun; nil: it is settled

	askOnce sync.Once // makes asks, see asker
	asks    *upstream.Client
	askErr  error

	capture *capture.File           // nil: none was asked for
	notes   *learn.Notes            // nil: the session does not learn
	export  *otlp.Exporter          // nil: none was asked for
	ships   *destination.Background // nil: the log is not shipped

	stop    context.CancelFunc // ends everything that is served; nil before Serve
	drained sync.Once
	serving sync.WaitGroup
	ready   chan struct{} // closed when the session is open: its fields are set

	closeControl func() // ends the control socket

	sandbox   Sandbox            // for session.started
	hostFiles []hostfiles.Change // for session.ended
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
		s.makeToken, s.makeDir, s.noteHome, s.openLog, s.openStore, s.openCapture, s.openNotes, s.openLedger, s.makePlane,
		s.beginShipping,
	} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	close(s.ready)
	return s, nil
}

// Serve records session.started and starts to follow the store and the vault.
// sealed is true if the session's command has no other way to the network;
// otherwise mediation is by convention.
func (s *Session) Serve(ctx context.Context, sealed bool) error {
	ctx, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	fields := map[string]any{
		"agent": s.opts.Agent, "mode": s.opts.Mode, "sealed": sealed, "pid": os.Getpid(), "egress": s.opts.egress(),
	}
	s.opts.addTo(fields)
	if path := s.CapturePath(); path != "" {
		fields["capture"] = path
	}
	if s.opts.Export.Enabled() {
		fields["otlp"] = s.opts.Export.String()
	}
	if s.ships != nil {
		fields["ship"] = s.ships.String()
	}
	s.sandbox.addTo(fields)
	err := s.loader.begin(fields, func() error {
		_, err := s.audit.Append(ctx, s.row(audit.EventSessionStarted, fields))
		return err
	})
	if err != nil {
		return hint.New(fmt.Errorf("record session.started: %w", err), "check the disk and the rights on %s", s.opts.Home)
	}
	s.serving.Go(func() { s.loader.watch(ctx) })
	s.serving.Go(func() { s.runApprovals(ctx) })
	c := newCollector()
	if c == nil && s.settle != nil {
		s.settle() // nothing else does
	}
	if c != nil {
		c.settle, c.collected = s.settle, collections(ctx)
		s.serving.Go(func() { c.run(ctx) })
	}
	return nil
}

// Listen serves the plane on l until the session closes. It must be called after
// Serve.
func (s *Session) Listen(ctx context.Context, l net.Listener, listener front.Listener) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := s.stop
	s.stop = func() { cancel(); stop() }
	s.serving.Go(func() { _ = s.front.Serve(ctx, l, listener) })
}

// Drain does what [Session.Close] does first, so that a caller can do something else meanwhile: requests under way are
// waited for, new ones are refused, and nothing is served any more when it returns.
func (s *Session) Drain(ctx context.Context) { s.drained.Do(func() { s.drain(ctx) }) }

// Close drains the plane, stops serving, records session.ended with the exit code of the session's command and the
// cause of its end, and removes the session's directory. Its root is removed from the trust stores of this host. The
// end of a session that has not served is recorded only if it was stopped. The error is about events that are not in
// the audit log; the session is closed in any case. Close must be called once.
func (s *Session) Close(ctx context.Context, exitCode int, cause string) error {
	s.Drain(ctx)
	err := errors.Join(s.untrust(ctx), s.recordEnd(ctx, exitCode, cause))
	return errors.Join(err, s.release())
}

// NoteHostFiles puts files that the session's command changed, and that the host would run, into session.ended. It must
// be called before Close.
func (s *Session) NoteHostFiles(changes []hostfiles.Change) { s.hostFiles = changes }

// NoteSandbox puts the sandbox of the session's command into session.started. It must be called before Serve.
func (s *Session) NoteSandbox(sandbox Sandbox) { s.sandbox = sandbox }

// Tally returns what became of the session's requests so far.
func (s *Session) Tally() Tally { return s.tally.read() }

// Health is what a session can do at one moment.
type Health struct {
	Draining bool  // requests are refused, because the session ends
	Writable bool  // the audit log can be written: otherwise requests are refused
	Queued   int64 // bytes of rows that are durable, and not in audit.db yet

	Connectors, Credentials int // that are granted, and bound
}

// Health returns what the session can do now.
func (s *Session) Health() Health {
	g := s.plane.Grants()
	return Health{Draining: s.plane.Draining().Err() != nil, Writable: !s.outage.Load() && !s.damaged.Load(),
		Queued: s.audit.Queued(), Connectors: len(g.Index.Connectors()), Credentials: len(g.Bound)}
}

// Abandon closes a session whose command did not begin. The caller returns why
// it did not, so the error of Close goes to [Options.Report].
func (s *Session) Abandon(ctx context.Context) {
	code, cause := 1, "failed to start"
	if s.opts.Stop.Requested() {
		code, cause = StoppedCode, StoppedCause
	}
	if err := s.Close(ctx, code, cause); err != nil {
		s.opts.Report(err)
	}
}

// drain waits for exchanges under way, up to the drain time-out, and then ends
// those that are left. Nothing is served when it returns.
func (s *Session) drain(ctx context.Context) {
	if s.plane != nil {
		s.plane.Drain(ctx)
		s.previews.Wait()
		s.approvals.Close()
	}
	if s.stop != nil {
		s.stop()
		s.serving.Wait()
	}
	if s.loader != nil {
		s.endLogins()
	}
}

// recordEnd records session.ended.
func (s *Session) recordEnd(ctx context.Context, exitCode int, cause string) error {
	if s.audit == nil || s.stop == nil && !s.opts.Stop.Requested() {
		return nil
	}
	fields := map[string]any{
		"exit_code": exitCode, "cause": cause, "seconds": int(time.Since(s.start).Seconds()),
		"agent": s.opts.Agent, "mode": s.opts.Mode,
	}
	if len(s.hostFiles) > 0 {
		fields["host_files"] = hostFileFields(s.hostFiles)
		fields["host_files_changed"] = len(s.hostFiles)
	}
	row := s.row(audit.EventSessionEnded, fields)
	return s.audit.AppendSoon(context.WithoutCancel(ctx), row)
}

// maxHostFiles is how many changed files session.ended names.
const maxHostFiles = 64

// hostFileFields returns the changes for a row.
func hostFileFields(changes []hostfiles.Change) []map[string]any {
	var fields []map[string]any
	for _, c := range changes[:min(len(changes), maxHostFiles)] {
		at := strings.ToValidUTF8(c.Path[:min(len(c.Path), maxTallyPath)], "\ufffd")
		fields = append(fields, map[string]any{"path": at, "before": c.Before, "after": c.After})
	}
	return fields
}

// release releases what Open acquired. The directory of a session that lost rows
// stays, so that the next session's sweep records their outcomes as unknown.
func (s *Session) release() (err error) {
	if s.closeControl != nil {
		s.closeControl()
	}
	s.closeCapture()
	s.closeNotes()
	if s.daybook != nil {
		s.ledger.Close()
		s.daybook.Close()
	}
	if s.vault != nil {
		s.vault.Lock()
	}
	if s.audit != nil {
		err = s.audit.Close()
	}
	s.export.Close() // behind the last row
	s.ships.End()    // likewise
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

// lostRows reports whether err is about outcomes that are neither in the log nor
// in its journal.
func lostRows(err error) bool {
	var lost *audit.LostError
	return errors.As(err, &lost) && lost.Lost > 0
}

// ID returns the session's id, a ULID.
func (s *Session) ID() string { return s.id }

// Token returns the secret that authorises clients of a listener that proves
// nothing. It is for the session's own command only.
func (s *Session) Token() string { return s.token }

// Dir returns the session's directory, which Close removes.
func (s *Session) Dir() string { return s.dir }

// RootPEM returns the certificate of the session's CA.
func (s *Session) RootPEM() []byte { return s.ca.RootPEM() }

// Connectors returns the connectors of the last load. The list is replaced and
// never changed.
func (s *Session) Connectors() []*spec.Connector { return s.loader.installed() }

// IsGranted reports whether a connector is in force.
func (s *Session) IsGranted(fqn spec.FQN) bool {
	return slices.ContainsFunc(s.plane.Grants().Index.Connectors(), func(c *spec.Connector) bool { return c.FQN == fqn })
}

// Placeholders returns the variables, as NAME=VALUE, with which connectors
// stand for credentials that the command must not have.
func (s *Session) Placeholders() []string {
	var env []string
	for _, c := range s.Connectors() {
		for _, p := range c.Placeholders {
			env = append(env, p.Env+"="+p.Value)
		}
	}
	return env
}

// HoldsSecret returns the name of a binding whose secret is in a text, in any of
// the forms in which responses are searched for it; "" if there is none. The
// bindings of a vault that this process has not unlocked cannot be compared.
func (s *Session) HoldsSecret(text string) (binding string, err error) {
	return HoldsSecret(s.vault, text)
}

// HoldsSecret is [Session.HoldsSecret] before there is a session, with an unlocked vault.
func HoldsSecret(v *vault.Vault, text string) (binding string, err error) {
	all, err := v.Bindings()
	if errors.Is(err, vault.ErrNotInitialised) || !v.Unlocked() {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read the bindings: %w", err)
	}
	for _, b := range all {
		cred, err := v.Credential(b.Name)
		if errors.Is(err, vault.ErrNotBound) {
			continue // revoked just now
		}
		if err != nil {
			return "", fmt.Errorf("open the credential %s: %w", b.Name, err)
		}
		set := scrub.NewSet([]scrub.Credential{{Secret: []byte(cred.Secret.Reveal()), Username: cred.Username}})
		if _, n := set.Text(text); n > 0 {
			return b.Name, nil
		}
	}
	return "", nil
}

// Redacted returns a reader of src in which every secret that the session has held so
// far is overwritten, as in responses.
func (s *Session) Redacted(src io.ReadCloser) io.ReadCloser {
	r := s.loader.redacts.Load().Reader(src)
	r.Follow(s.loader.redacts.Load)
	return r
}

// RecordDisabled records sandbox.proxy.disabled: no sandbox is mediated, and
// why. If the log cannot be written now, it gets the event later, as
// session.started or the session's end waits for it.
func (s *Session) RecordDisabled(ctx context.Context, reason, cause string) {
	row := s.row(audit.EventSandboxDisabled, map[string]any{"cause": cause, "agent": s.opts.Agent, "mode": s.opts.Mode})
	row.Decision, row.Reason = audit.DecisionDisabled, reason
	if err := s.audit.AppendSoon(ctx, row); err != nil {
		s.opts.Log.Warn("an audit row could not be written", "event", audit.EventSandboxDisabled, "error", err)
	}
}

// RecordPort records sandbox.port.connected: a client of this host is about to be
// connected with a port of the sandbox. It must not be if that fails.
func (s *Session) RecordPort(ctx context.Context, hostPort, port uint16, client string) error {
	_, err := s.audit.Append(ctx, s.row(audit.EventSandboxPort,
		map[string]any{"host_port": int(hostPort), "port": int(port), "client": client}))
	return err
}

// row returns a row of the session.
func (s *Session) row(event audit.Event, fields map[string]any) audit.Row {
	return audit.Row{Event: event, SessionID: s.id, Source: audit.SourceLauncher, Fields: fields}
}
