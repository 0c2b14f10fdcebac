package session

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/ca"
	"github.com/ALRubinger/aileron/internal/auditlog"
	"github.com/ALRubinger/aileron/internal/destination"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/hostport"
	"github.com/ALRubinger/aileron/internal/otlp"
	"github.com/ALRubinger/aileron/proxy"
	"github.com/ALRubinger/aileron/proxy/capture"
	"github.com/ALRubinger/aileron/proxy/front"
	"github.com/ALRubinger/aileron/proxy/preview"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/store"
)

// The steps of [Open], in their order.

func newSession(opts Options) *Session {
	return &Session{
		opts: opts.withDefaults(), id: audit.NewID(), vault: opts.Vault, start: time.Now(), ready: make(chan struct{}),
		tally: tally{optional: opts.Optional, prices: opts.Config.Prices, observe: opts.Observe},
	}
}

// makeToken makes the secret by which clients of a listener that proves nothing
// are known.
func (s *Session) makeToken(context.Context) error {
	var raw [32]byte
	if _, err := rand.Read(raw[:]); err != nil {
		return fmt.Errorf("make the session's token: %w", err)
	}
	s.token = base64.RawURLEncoding.EncodeToString(raw[:])
	return nil
}

// noteHome remembers which directory the home is, see homeMissing.
func (s *Session) noteHome(context.Context) (err error) {
	if s.home, err = os.Stat(s.opts.Home); err != nil {
		return fmt.Errorf("check the home: %w", err)
	}
	return nil
}

// openLog opens the audit log. A session does not begin on a damaged one: it
// could not record its requests.
func (s *Session) openLog(context.Context) (err error) {
	r := auditlog.Reporter{Log: s.opts.Log}
	s.audit, err = audit.Open(filepath.Join(s.opts.Home, "audit.db"), audit.Options{
		Durability: s.opts.Config.Audit.Durability, Session: s.id,
		OnBroken: r.Broken, OnLost: r.Lost, OnTurn: r.Turn,
		OnOutage: func(o audit.Outage) {
			s.outage.Store(!o.Over && !o.Admitting)
			r.Outage(o)
		},
		OnDamage: func(d *audit.DamageError) {
			s.damaged.Store(d != nil)
			r.Damaged(d)
		},
		OnCommitted: s.openExport(),
	})
	if err == nil {
		err = s.audit.Damage()
	}
	return openHint(err, s.opts.Home)
}

// openHint adds what can be done about a log with which no session can begin.
func openHint(err error, home string) error {
	switch {
	case err == nil:
		return nil
	case errors.As(err, new(*audit.SchemaError)):
		return auditlog.Hint(err)
	case audit.IsDamaged(err):
		return hint.New(err, "recover what can be read with: aileron audit recover (it keeps the old file); "+
			"or move a damaged audit.db away")
	}
	return hint.New(err, "without it no request is sent; check the disk, and the permissions of %s", home)
}

func (s *Session) openStore(context.Context) (err error) {
	if s.store = s.opts.Store; s.store != nil || s.opts.Grants != nil {
		return nil
	}
	if s.store, err = store.Open(filepath.Join(s.opts.Home, "store")); err != nil {
		return fmt.Errorf("open the connector store: %w", err)
	}
	return nil
}

// makePlane loads the first grants, which unlocks the vault if a credential is
// bound, and makes the plane and its CA.
func (s *Session) makePlane(ctx context.Context) error {
	s.loader = &loader{s: s, changed: make(chan struct{}, 1)}
	s.opts.Reading.Wait() // it sets the percentage too
	// Most of what a load allocates stays: to look for garbage meanwhile costs more than what is found.
	percent := debug.SetGCPercent(400)
	first, err := s.loader.load(ctx)
	debug.SetGCPercent(percent)
	if err != nil {
		return err
	}
	tunnel, err := tunnelHosts(s.opts.Config.Tunnel, first.Index)
	if err != nil {
		return err
	}
	if s.ca, err = ca.NewSession(ca.Options{Session: s.id, HostNames: s.opts.hostNames(first.Index)}); err != nil {
		return fmt.Errorf("make the session's CA: %w", err)
	}
	limits := s.opts.planeLimits()
	s.approvals = s.newApprovals()
	s.plane, err = proxy.New(proxy.Config{
		Session: s.id, Agent: s.opts.Agent, Token: s.token, CA: s.ca, Audit: tallied{s.audit, &s.tally},
		Passthrough: s.opts.Passthrough, TLSPassthrough: tunnel, Upstream: s.opts.Upstream, Limits: limits,
		Log: s.opts.Log, Started: s.start, Capture: s.capture,
		Approvals: s.approvals, Hold: time.Duration(s.opts.Config.Approval.Hold),
		AskFirst: s.opts.askFirst(), Note: s.noteRequest(), Ledger: s.ledger,
		AskAtLimit: s.opts.Config.Budget.AtLimit == "ask",
	})
	if err != nil {
		return err
	}
	s.previews = preview.New(s.plane, s.approvals)
	s.plane.SetGrants(first)
	s.front = front.New(s.plane)
	s.settle = limitGarbage(limits)
	return nil
}

// tunnelHosts returns the canonical form of the hosts that are tunnelled
// undecrypted. One that a connector names cannot be among them: it is either
// decrypted or not.
func tunnelHosts(list []string, index *spec.Index) ([]string, error) {
	var out []string
	for _, entry := range list {
		a, err := hostport.Parse(entry, 443)
		if err != nil || a.Addr.IsValid() {
			return nil, hint.New(fmt.Errorf("read config.toml: tunnel names %q, which is no plain HOST or HOST:PORT", entry),
				`write it as tunnel = ["pinned.example", "other.example:8443"]`)
		}
		if index.Covers(a.Host, a.Port) {
			return nil, hint.New(fmt.Errorf("read config.toml: tunnel names %s, and an installed connector does too", a),
				"remove it from the list, or remove the connector: what is not decrypted can be neither matched nor injected")
		}
		out = append(out, a.String())
	}
	return out, nil
}

// openCapture creates the file of a session that is to be captured, and tells the user: it holds what the command sends
// and gets.
func (s *Session) openCapture(context.Context) (err error) {
	if s.opts.Capture == "" {
		return nil
	}
	warn := func(err error) { s.opts.Infof("aileron: warning: %v", err) }
	s.capture, err = capture.Open(s.opts.Capture, capture.Options{Version: s.opts.Version, Token: s.token, Warn: warn})
	if err != nil {
		return err
	}
	s.opts.Infof("aileron: headers, queries and bodies of this session are recorded in %s; secrets are redacted",
		s.capture.Path())
	return nil
}

// CapturePath returns the absolute path of the session's capture, "" if there is none.
func (s *Session) CapturePath() string {
	if s.capture == nil {
		return ""
	}
	return s.capture.Path()
}

// closeCapture completes the capture.
func (s *Session) closeCapture() {
	if s.capture == nil {
		return
	}
	if err := s.capture.Close(); err != nil {
		s.opts.Infof("aileron: warning: close the capture: %v", err)
	}
	if s.stop == nil { // nothing was served: the file would be in the way of the next attempt
		_ = os.Remove(s.capture.Path())
	}
}

// beginShipping ships the log beside the session, if config.toml asks for it.
func (s *Session) beginShipping(context.Context) (err error) {
	where := s.opts.Config.Audit.Ship
	if where == "" {
		return nil
	}
	s.ships, err = destination.Begin(destination.Options{
		Home: s.opts.Home, Version: s.opts.Version, Env: os.Getenv, Report: s.opts.Infof,
		From: func() (*url.URL, error) { return destination.ParseSetting(where) },
	})
	if err != nil {
		return hint.New(fmt.Errorf("ship the audit log: audit.ship in config.toml: %w", err),
			"it must be a URL as of aileron audit ship --to, or @FILE with one")
	}
	return nil
}

// openExport starts the export of rows, if one is asked for, and returns what the log calls with each. It is off the
// path of requests: the log calls it when it moves rows from the journal to the database.
func (s *Session) openExport() func(audit.Row, string) {
	if !s.opts.Export.Enabled() {
		return nil
	}
	s.export = otlp.Open(s.opts.Export, otlp.Options{
		Session: s.id, Version: s.opts.Version,
		Warn: func(text string) { s.opts.Infof("aileron: warning: %s", text) },
	})
	return s.export.Add
}
