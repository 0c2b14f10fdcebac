package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/ca"
	"github.com/ALRubinger/aileron/internal/format"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/proxy"
	"github.com/ALRubinger/aileron/spec/store"
	"github.com/ALRubinger/aileron/vault"
)

// session is one plane with all that stands behind it. It is this process:
// the CA's key and the opened vault live and die in its memory. What it shares
// with other sessions is on disk and guarded by locks.
type session struct {
	app    *app
	id     string
	token  string
	home   string
	dir    string      // <home>/sessions/<id>
	place  os.FileInfo // of home, as it was at the start
	lock   *os.File
	log    *slog.Logger
	agent  string
	mode   string // podman, docker, off or proxy
	start  time.Time
	config config
	sealed bool

	store  *store.Store
	vault  *vault.Vault
	audit  *audit.Log
	ca     *ca.Session
	plane  *proxy.Plane
	grants *granter

	stop      context.CancelFunc // ends everything the session serves; nil until it does
	serving   sync.WaitGroup
	stopping  *stopRequest
	ready     chan struct{} // closed when the session is open: its fields are set
	uncontrol func()        // ends the control socket
}

// sessionFormat is the newest format of session.json that this aileron knows.
const sessionFormat = format.First

// sessionInfo is sessions/<id>/session.json.
type sessionInfo struct {
	Format  int       `json:"format"`
	ID      string    `json:"id"`
	PID     int       `json:"pid"`
	Agent   string    `json:"agent"`
	Mode    string    `json:"mode"`
	Started time.Time `json:"started"`
}

// sessionPlan is what a verb says about the session that it opens.
type sessionPlan struct {
	agent string // the command's name, "" for the bare proxy
	mode  string
	opts  *sessionOptions
	stop  *stopRequest // ends the session from the moment it is listed
}

// openSession verifies what is installed, opens the vault when a binding is
// needed, and makes a plane that is ready to serve. It fails rather than
// start with less than what was asked for. The error is errStopped when
// plan.stop is made meanwhile.
func (a *app) openSession(ctx context.Context, plan sessionPlan) (opened *session, err error) {
	home, err := a.Home()
	if err != nil {
		return nil, err
	}
	conf, err := readConfig(home)
	if err != nil {
		return nil, err
	}
	up, err := plan.opts.upstream(conf)
	if err != nil {
		return nil, err
	}
	s := &session{app: a, id: audit.NewID(), home: home, agent: plan.agent, mode: plan.mode, config: conf,
		start: time.Now(), log: a.logger(), stopping: plan.stop, ready: make(chan struct{})}
	ctx, cancel := plan.stop.withStop(ctx)
	defer cancel()
	defer func() {
		if plan.stop.made() {
			err = errStopped
		}
		if err != nil {
			opened = nil
			s.closeFailed(context.WithoutCancel(ctx))
		}
	}()
	if s.token, err = newToken(); err != nil {
		return nil, err
	}
	if err = s.makeDir(); err != nil {
		return nil, err
	}
	if s.place, err = os.Stat(home); err != nil {
		return nil, fmt.Errorf("look at the home: %w", err)
	}
	s.audit, err = audit.Open(filepath.Join(home, "audit.db"), audit.Options{Durability: conf.Audit.Durability, Session: s.id,
		OnBroken: a.auditBroken, OnOutage: a.auditOutage, OnLost: a.auditLost, OnDamage: a.auditDamaged})
	if err == nil {
		err = s.audit.Damage()
	}
	if err != nil {
		return nil, sessionAuditHint(err, home)
	}
	if s.store, err = store.Open(filepath.Join(home, "store")); err != nil {
		return nil, fmt.Errorf("open the connector store: %w", err)
	}
	s.vault = a.vaultAt(home)
	s.grants = &granter{s: s, opts: plan.opts}
	first, err := s.grants.load(ctx)
	if err != nil {
		return nil, err
	}
	tunnel, err := tunnelHosts(conf.Tunnel, first.Index)
	if err != nil {
		return nil, err
	}
	if s.ca, err = ca.NewSession(ca.Options{Session: s.id}); err != nil {
		return nil, fmt.Errorf("make the session's CA: %w", err)
	}
	limits := plan.opts.limits(conf)
	limitGarbage(limits)
	cfg := proxy.Config{
		Session: s.id, Agent: s.agent, Token: s.token, CA: s.ca, Audit: s.audit,
		Passthrough: plan.opts.egress == "passthrough", Tunnel: tunnel, Upstream: up, Limits: limits,
		Log: s.log, Started: s.start,
	}
	if s.plane, err = proxy.New(cfg); err != nil {
		return nil, err
	}
	s.plane.SetGrants(first)
	close(s.ready)
	return s, nil
}

// serve starts the watch over grants and writes session.started. sealed is whether mediation is enforced or by convention.
func (s *session) serve(ctx context.Context, sealed bool) error {
	s.sealed = sealed
	ctx, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	if _, err := s.audit.Append(ctx, audit.Row{Event: audit.EventSessionStarted, SessionID: s.id, Source: audit.SourceLauncher,
		Fields: map[string]any{"agent": s.agent, "mode": s.mode, "sealed": sealed, "pid": os.Getpid(), "egress": s.grants.opts.egress}}); err != nil {
		return hint.New(fmt.Errorf("write the first audit row: %w", err), "check the disk and the rights on %s", s.home)
	}
	s.serving.Go(func() { s.grants.watch(ctx) })
	return nil
}

// listen serves the plane on l until the session closes.
func (s *session) listen(ctx context.Context, l net.Listener, door proxy.Door) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := s.stop
	s.stop = func() { cancel(); stop() }
	s.serving.Go(func() { _ = s.plane.Serve(ctx, l, door) })
}

// close drains the plane, ends everything, writes session.ended with the
// command's exit code, and removes the session's directory. A session that
// has not served has no such row, unless it was stopped: then it was listed.
// The error is that of rows which are not in the audit log.
func (s *session) close(ctx context.Context, code int, cause string) error {
	if s.plane != nil {
		s.plane.Drain(ctx)
	}
	if s.stop != nil {
		s.stop()
		s.serving.Wait()
	}
	var err error
	if s.audit != nil && (s.stop != nil || s.stopping.made()) {
		err = s.audit.AppendSoon(context.WithoutCancel(ctx), audit.Row{Event: audit.EventSessionEnded, SessionID: s.id, Source: audit.SourceLauncher,
			Fields: map[string]any{"exit_code": code, "cause": cause, "seconds": int(time.Since(s.start).Seconds()), "agent": s.agent, "mode": s.mode}})
	}
	return errors.Join(err, s.discard())
}

// discard releases what openSession took. The directory of a session that
// lost rows stays, so that the next session's sweep records what is not known.
func (s *session) discard() (err error) {
	if s.uncontrol != nil {
		s.uncontrol()
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
	return lossHint(err, s.home)
}

func newToken() (string, error) {
	var raw [32]byte
	if _, err := rand.Read(raw[:]); err != nil {
		return "", fmt.Errorf("make the session's token: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(raw[:]), nil
}

func (a *app) logger() *slog.Logger {
	level := slog.LevelWarn
	_ = level.UnmarshalText([]byte(a.logLevel)) // one of four
	return slog.New(slog.NewTextHandler(a.stderr, &slog.HandlerOptions{Level: level}))
}
