// Package hosttrust keeps the account of what the trust stores of this host have been given: for which session, and
// which stores. A root is added by [Ledger.Trust] and removed by [Ledger.Untrust], which the session calls when it
// ends, and the next command if the session was killed: [Ledger.Stale] are the records of those.
//
// A record, <home>/trusted/<session>.json, is written before a store is changed, and is removed when no store has the
// root any more: whatever is killed when, what may have the root is on record. A record can only have a root removed
// that has the form of a session's, see [ca.Store].
//
//	l := hosttrust.Ledger{Home: home, Append: append}
//	result, err := l.Trust(ctx, stores, func(ctx context.Context) (hosttrust.Root, error) { … })
//
// Both change nothing while another process does, and record what they did in the audit log: adding is not begun if it
// cannot be recorded; removing is.
//
// This file is what is done, and its rows; record.go is the file of a session, and the lock.
package hosttrust

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/ca"
	"github.com/ALRubinger/aileron/internal/filelock"
	"github.com/ALRubinger/aileron/internal/hint"
)

// Ledger is the account of one home.
type Ledger struct {
	Home  string
	Locks filelock.Locker
	// Source is that of the rows.
	Source audit.Source
	// Append commits a row to the audit log.
	Append func(context.Context, audit.Row) error
}

// Root is a session's root for this host, with the names that it can vouch for.
type Root struct {
	Session string
	Cert    *x509.Certificate
	Names   []string
}

// SHA256 returns the fingerprint of the root in hexadecimal.
func (r Root) SHA256() string { return fingerprint(r.Cert) }

func fingerprint(c *x509.Certificate) string {
	sum := sha256.Sum256(c.Raw)
	return hex.EncodeToString(sum[:])
}

// Outcome is what became of one store.
type Outcome struct {
	ca.Store
	State string `json:"state"` // trusted, removed or failed; skipped: it was left out
	// Left is true if the store was to have the root no more, or not to get it, and may have it.
	Left  bool   `json:"left,omitempty"`
	Error string `json:"error,omitempty"`
	Hint  string `json:"hint,omitempty"`
}

// failed returns the outcome of a store that could not be changed.
func failed(s ca.Store, err error, left bool) Outcome {
	return Outcome{Store: s, State: "failed", Left: left, Error: err.Error(), Hint: hint.Of(err)}
}

// Trust adds a session's root to stores. current returns the root; it is called while no other process changes the
// account, and must fail for a session that ends: then either Trust does nothing, or the session finds the record and
// removes the root again. What fails is an [Outcome], and does not keep the others from the root. An error of ctx
// removes the root from all of them.
func (l Ledger) Trust(ctx context.Context, stores []ca.Store, current func(context.Context) (Root, error)) (
	done []Outcome, root Root, err error,
) {
	unlock, err := l.lock(ctx)
	if err != nil {
		return nil, root, err
	}
	defer unlock()
	if root, err = current(ctx); err != nil {
		return nil, root, err
	}
	r := record{Format: recordFormat, Session: root.Session, SHA256: root.SHA256(), NotAfter: root.Cert.NotAfter.UTC(),
		PEM: string(encode(root.Cert)), Stores: stores}
	before, err := l.read(root.Session)
	if err == nil { // it is trusted already: perhaps in other stores
		r.Stores = union(before.Stores, stores)
	}
	about := change{l, audit.ChangeCATrust, root, audit.NewID()}
	if err := about.begin(ctx, stores); err != nil {
		return nil, root, hint.New(fmt.Errorf("trust the session's root: it cannot be recorded in the audit log: %w", err),
			"no store was changed; check the disk and the permissions of %s", l.Home)
	}
	if err := l.write(r); err != nil {
		return nil, root, errors.Join(err, about.end(ctx, nil, "unavailable"))
	}
	done = r.add(ctx, root.Cert, stores)
	reason := ""
	if ctx.Err() != nil {
		reason = "interrupted"
		done = r.remove(context.WithoutCancel(ctx), root.Cert, stores)
	}
	return done, root, errors.Join(l.settle(r), about.end(ctx, done, reason))
}

// add adds the root to stores. The record keeps those that may have it.
func (r *record) add(ctx context.Context, root *x509.Certificate, stores []ca.Store) (done []Outcome) {
	for _, s := range stores {
		if ctx.Err() != nil {
			return done
		}
		err := s.Add(ctx, root)
		if err == nil {
			done = append(done, Outcome{Store: s, State: "trusted"})
			continue
		}
		left := s.Remove(context.WithoutCancel(ctx), root) != nil
		if !left {
			r.drop(s)
		}
		done = append(done, failed(s, err, left))
	}
	return done
}

// remove removes the root from stores. The record keeps those that may have it.
func (r *record) remove(ctx context.Context, root *x509.Certificate, stores []ca.Store) (done []Outcome) {
	for _, s := range stores {
		if err := s.Remove(ctx, root); err != nil {
			done = append(done, failed(s, err, true))
			continue
		}
		r.drop(s)
		done = append(done, Outcome{Store: s, State: "removed"})
	}
	return done
}

func (r *record) drop(s ca.Store) {
	r.Stores = slices.DeleteFunc(slices.Clone(r.Stores), func(known ca.Store) bool { return known == s })
}

func union(a, b []ca.Store) []ca.Store {
	all := slices.Clone(a)
	for _, s := range b {
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}

// Untrust removes a session's root from the stores on record. It returns nothing for a session that has no record. A
// store that fails stays on record. That the log cannot be written keeps no root in a store; it is an error afterwards.
func (l Ledger) Untrust(ctx context.Context, session string) (done []Outcome, err error) {
	if !isID(session) {
		return nil, nil
	}
	if !l.has(session) {
		return nil, nil // no lock is needed for that: the common case is fast
	}
	unlock, err := l.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	return l.untrust(ctx, session)
}

func (l Ledger) untrust(ctx context.Context, session string) ([]Outcome, error) {
	r, err := l.read(session)
	if errors.Is(err, errNoRecord) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	cert, err := r.root()
	if err != nil {
		return nil, err
	}
	about := change{l, audit.ChangeCAUntrust, Root{Session: session, Cert: cert}, audit.NewID()}
	begun := about.begin(ctx, r.Stores)
	done := r.remove(ctx, cert, r.Stores)
	return done, errors.Join(begun, l.settle(r), about.end(ctx, done, ""))
}

// Stale returns the sessions on record whose root should be in no store: they have ended, or it has.
func (l Ledger) Stale(alive func(session string) bool) (sessions []string) {
	for _, r := range l.Records() {
		if !alive(r.Session) || r.Err == nil && time.Now().After(r.NotAfter) {
			sessions = append(sessions, r.Session)
		}
	}
	return sessions
}

// dir is the directory of the records.
func (l Ledger) dir() string { return filepath.Join(l.Home, "trusted") }

// change is one change of stores, with what its two rows have in common.
type change struct {
	Ledger
	what    audit.Change
	root    Root
	request string
}

// begin commits the intent, with the stores that are about to be changed.
func (c change) begin(ctx context.Context, stores []ca.Store) error {
	return c.append(ctx, c.what.Started(), "", map[string]any{"stores": storeFields(stores)})
}

// end commits the outcome: with the stores that were changed, those that were not, and those that may have the root.
// Trusting has failed if no store has it; not trusting, if one may.
func (c change) end(ctx context.Context, done []Outcome, reason string) error {
	pick := func(keep func(Outcome) bool) (stores []ca.Store) {
		for _, o := range done {
			if keep(o) {
				stores = append(stores, o.Store)
			}
		}
		return stores
	}
	bad := pick(func(o Outcome) bool { return o.State == "failed" })
	fields := map[string]any{"stores": storeFields(pick(func(o Outcome) bool { return o.State != "failed" }))}
	if len(bad) > 0 {
		fields["stores_failed"] = storeFields(bad)
	}
	event := c.what.Done()
	trusted := slices.ContainsFunc(done, func(o Outcome) bool { return o.State == "trusted" })
	if c.what == audit.ChangeCATrust && !trusted || c.what == audit.ChangeCAUntrust && len(bad) > 0 {
		event = c.what.Failed()
		if reason == "" {
			reason = "store_unavailable"
		}
	}
	return c.append(ctx, event, reason, fields)
}

// append commits a row, also for a command that was interrupted.
func (c change) append(ctx context.Context, event audit.Event, reason string, fields map[string]any) error {
	fields["request_id"], fields["sha256"] = c.request, c.root.SHA256()
	fields["until"] = c.root.Cert.NotAfter.UTC().Format("2006-01-02T15:04:05Z")
	if names := c.root.Names; len(names) > maxNames {
		fields["names"], fields["names_total"] = names[:maxNames], len(names)
	} else if len(names) > 0 {
		fields["names"] = names
	}
	row := audit.Row{Event: event, SessionID: c.root.Session, Source: c.Source, Reason: reason, Fields: fields}
	return c.Append(context.WithoutCancel(ctx), row)
}

// maxNames is how many names a row has, as the lists of session.started.
const maxNames = 64

func storeFields(stores []ca.Store) []string {
	all := []string{}
	for _, s := range stores[:min(len(stores), maxNames)] {
		all = append(all, s.String())
	}
	return all
}
