package oauth

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ALRubinger/aileron/vault"
)

// SourceOptions are what a [Source] needs of its session.
type SourceOptions struct {
	Vault     *vault.Vault
	Transport func() (http.RoundTripper, error)
	Now       func() time.Time // nil: time.Now
	// Record commits the row of what is about to be asked, and returns what commits that of its outcome. Without the
	// first nothing is asked.
	Record func(b vault.Binding) (outcome func(error), err error)
	// Announce makes the session use, and redact, what the vault has now. It is called before a new token is used.
	Announce func()
	// Warn is called when renewals begin to fail. asked: Record has the request that failed; otherwise nothing was asked,
	// as only another login helps, or the renewal could not begin.
	Warn func(b vault.Binding, err error, asked bool)
}

// Source keeps the token of one login valid, for all exchanges of a session. Its methods are safe for concurrent use.
type Source struct {
	opts SourceOptions
	name string // of the binding
	id   string // of the login

	waits    context.Context //nolint:containedctx // of renewals that wait for those of other processes
	endWaits context.CancelFunc

	// Between these, in Unix nanoseconds, the token in force is used as it is.
	from, until atomic.Int64

	mu        sync.Mutex
	grant     Grant   // in force: its token, and how long that lives
	renewable bool    // something renews it
	flight    *flight // the renewal under way; nil: there is none
	last      error   // of the last renewal
	next      time.Time
	wait      time.Duration // next is when that is over
	warned    bool          // last was reported

	asked   bool     // the renewal under way has recorded a request, or one of before; only the flight under way uses it
	unsaved *unsaved // of a renewal whose result the disk did not take; only the flight under way uses it
}

// flight is one renewal, for which all exchanges wait that need it.
type flight struct {
	ended chan struct{}
	err   error
}

// unsaved is the result of a renewal that is in memory alone. Its lock keeps other processes from sending a refresh
// token that is used up.
type unsaved struct {
	*vault.Renewal
	credential vault.Credential
	outcome    func(error)
}

const (
	// flightTime bounds a renewal, with the wait for those of other processes.
	flightTime = 2 * askTime
	// The back-off of renewals that fail.
	firstWait = time.Second
	maxWait   = 300 * time.Second
	// refusedPause is how long after a renewal a refused token does not lead to another one, unless it lives for less
	// than four times of that: the service refuses for another reason then.
	refusedPause = time.Minute
)

// NewSource returns the source of the login whose first grant is g.
func NewSource(name string, g Grant, opts SourceOptions) *Source {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	s := &Source{opts: opts, name: name, id: g.ID}
	s.waits, s.endWaits = context.WithCancel(context.Background())
	s.Use(g)
	return s
}

// Login returns the id of the login, which its tokens have in common.
func (s *Source) Login() string { return s.id }

// Use makes g the grant in force.
func (s *Source) Use(g Grant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// The vault has the rest when it is asked for a renewal.
	s.grant = Grant{Token: g.Token, Issued: g.Issued, Life: g.Life, Renewed: g.Renewed}
	s.renewable = g.renews()
	// Issued in the future: the clock was wrong then, or is now, and when the token expires is not known.
	s.from.Store(g.Issued.Add(-margin).UnixNano())
	if s.until.Store(g.due().UnixNano()); g.Life == 0 {
		s.from.Store(math.MinInt64)
		s.until.Store(math.MaxInt64)
	}
}

// Fresh returns when the session has a token that can be used: at once, unless it is due for a renewal or is the one
// that the service refused. Its error is [vault.ErrLoginNeeded], [vault.ErrLocked] or another for which a later attempt
// may help. A token that could not be renewed is used until it expires.
func (s *Source) Fresh(ctx context.Context, refused vault.Secret) error {
	now := s.opts.Now()
	if at := now.UnixNano(); refused.IsZero() && s.from.Load() <= at && at < s.until.Load() {
		return nil
	}
	f := s.join(now, refused)
	if f == nil {
		return nil
	}
	select {
	case <-f.ended:
		return f.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close waits for the renewal under way, if the service has been asked, until ctx ends, and saves what the disk did not
// take before: what the service has sent must not be lost. No exchange may ask any more.
func (s *Source) Close(ctx context.Context) {
	s.endWaits()
	s.mu.Lock()
	f := s.flight
	s.mu.Unlock()
	if f != nil {
		select {
		case <-f.ended:
		case <-ctx.Done():
			return
		}
	}
	for try := 1; s.unsaved != nil; try++ {
		b, err := s.save()
		if err == nil {
			return
		}
		if try == lastSaves || !pause(ctx, savePause) {
			u := s.unsaved
			s.unsaved = nil
			u.outcome(err) // its mark stays, and the next session knows that only another login helps
			u.End()
			s.opts.Warn(b, err, true)
		}
	}
}

// The tries of a session's end to save what the service sent, and the pause between two.
const (
	lastSaves = 4
	savePause = 500 * time.Millisecond
)

// pause waits, and reports false if ctx ends before.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// join returns the renewal under way, or a new one. Nil: none is needed.
func (s *Source) join(now time.Time, refused vault.Secret) *flight {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.flight != nil:
		return s.flight
	case refused.IsZero() && s.from.Load() <= now.UnixNano() && now.UnixNano() < s.until.Load():
		return nil // another exchange had it renewed
	case !refused.IsZero() && (!s.renewable || s.isAnswered(now, refused)):
		return nil
	case now.Before(s.next):
		return ended(s.usable(now, s.last))
	}
	f := &flight{ended: make(chan struct{})}
	s.flight = f
	go s.fly(f)
	return f
}

// isAnswered reports whether a refused token leads to no renewal: it is not in force any more, or is too new. s.mu is
// held.
func (s *Source) isAnswered(now time.Time, refused vault.Secret) bool {
	return refused.Reveal() != s.grant.Token || s.grant.Renewed &&
		now.Before(s.grant.Issued.Add(min(refusedPause, s.grant.Life/4)))
}

func ended(err error) *flight {
	f := &flight{ended: make(chan struct{}), err: err}
	close(f.ended)
	return f
}

// usable returns nil instead of err while the token in force has not expired. s.mu is held.
func (s *Source) usable(now time.Time, err error) error {
	if now.Before(s.grant.expires()) && !errors.Is(err, vault.ErrLoginNeeded) {
		return nil
	}
	return err
}

// fly carries out a renewal. It goes on when the exchange that began it has ended: others may wait, and what the
// service sends must not be lost.
func (s *Source) fly(f *flight) {
	ctx, cancel := context.WithTimeout(s.waits, flightTime)
	defer cancel()
	s.asked = s.unsaved != nil
	b, err := s.renew(ctx)
	s.mu.Lock()
	now := s.opts.Now()
	// What ends the login is told even after a failure for which a later attempt would have helped.
	ended := errors.Is(err, vault.ErrLoginNeeded) && !errors.Is(s.last, vault.ErrLoginNeeded)
	warn := err != nil && (!s.warned || ended) && !errors.Is(err, vault.ErrLocked) &&
		!errors.Is(err, context.Canceled) // the session ends
	s.warned, s.last = warn || s.warned && err != nil, err
	if err == nil {
		s.wait, s.next = 0, time.Time{}
	} else {
		s.wait = min(max(2*s.wait, firstWait), maxWait)
		s.next = now.Add(s.wait)
		f.err = s.usable(now, err)
	}
	s.mu.Unlock()
	if warn { // before the flight is over: Close waits for what is told of it
		s.opts.Warn(b, err, s.asked)
	}
	s.mu.Lock()
	s.flight = nil
	s.mu.Unlock()
	close(f.ended)
}

// renew renews the token, unless another process has, and makes the session use it.
func (s *Source) renew(ctx context.Context) (vault.Binding, error) {
	b := vault.Binding{Name: s.name}
	if s.unsaved != nil {
		return s.save()
	}
	r, err := s.opts.Vault.RenewBinding(ctx, s.name)
	if err != nil {
		return b, err
	}
	defer func() {
		if s.unsaved == nil {
			r.End()
		}
	}()
	b = r.Binding
	if ctx.Err() != nil { // nothing is asked for a session that ends
		return b, ctx.Err()
	}
	g, ok, err := Of(r.Credential)
	if err != nil {
		return b, fmt.Errorf("%w: %w", vault.ErrLoginNeeded, err)
	}
	s.mu.Lock()
	known := s.grant.Token
	s.mu.Unlock()
	if !ok || g.ID != s.id || g.Token != known {
		s.opts.Announce() // it was renewed or bound again meanwhile
		return b, nil
	}
	switch {
	case b.Renewal == LoginNeeded:
		return b, vault.ErrLoginNeeded
	case !g.renews():
		return b, fmt.Errorf("%w: it gave no refresh token", vault.ErrLoginNeeded)
	case r.Interrupted && g.Refresh != "" && !g.Keeps:
		// Sent a second time it would look stolen, and the service would end all that came of this login: RFC 9700
		// section 4.14.2.
		return s.end(r, g, errors.New("a renewal was interrupted when its refresh token may have been used up"))
	}
	transport, err := s.opts.Transport()
	if err != nil {
		return b, err
	}
	if err := r.Begin(); err != nil {
		return b, err
	}
	outcome, err := s.opts.Record(b)
	if err != nil {
		return b, err
	}
	s.asked = true
	// The request has its own time: what other processes took is over.
	next, err := g.Renew(context.WithoutCancel(ctx), transport, s.opts.Now)
	if err != nil && next.Refresh != g.Refresh {
		if c, unfit := next.Credential(); unfit == nil { // with the token in force
			_ = r.Save(r.Binding, c)
		}
	}
	if refused := new(RefusedError); errors.As(err, &refused) && refused.isFinal() {
		b, err = s.end(r, g, err)
	}
	if err == nil {
		s.unsaved = &unsaved{Renewal: r, outcome: outcome}
		s.unsaved.Binding = next.Facts(b)
		s.unsaved.credential, err = next.Credential()
	}
	if err != nil {
		s.unsaved = nil
		outcome(err)
		return b, err
	}
	return s.save()
}

// save saves what the service sent, and makes the session use it. What the disk does not take is kept for the next
// attempt.
func (s *Source) save() (vault.Binding, error) {
	u := s.unsaved
	err := u.Save(u.Binding, u.credential)
	if err != nil && !errors.Is(err, vault.ErrChanged) && !errors.Is(err, vault.ErrNotBound) {
		return u.Binding, fmt.Errorf("keep the new token: %w", err)
	}
	s.unsaved = nil
	u.outcome(nil) // even if its user has bound it again, or revoked it, meanwhile: the service did renew it
	u.End()
	s.opts.Announce()
	return u.Binding, nil
}

// end writes down that only another login helps, for all processes.
func (s *Source) end(r *vault.Renewal, g Grant, cause error) (vault.Binding, error) {
	b := g.Facts(r.Binding)
	b.Renewal = LoginNeeded
	cause = fmt.Errorf("%w: %w", vault.ErrLoginNeeded, cause)
	if err := r.Save(b, r.Credential); err != nil {
		return b, cause // the next renewal comes here again
	}
	s.opts.Announce()
	return b, cause
}
