package command

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ALRubinger/aileron/vault"
)

// SourceOptions are what a [Source] needs of its session.
type SourceOptions struct {
	Start Start
	Now   func() time.Time // nil: time.Now
	// Record commits the row of a run that is about to begin, and returns what commits that of its outcome. Without the
	// first nothing is run.
	Record func() (outcome func(error), err error)
	// Announce makes the session use, and redact, what [Source.Secret] returns. It is called before a secret is used.
	Announce func()
	// Warn is called when runs begin to fail.
	Warn func(error)
}

// Source keeps the credential of one binding valid, for all exchanges of a session. Its methods are safe for concurrent
// use.
type Source struct {
	opts    SourceOptions
	command Command
	id      string
	ctx     context.Context //nolint:containedctx // ends with the source
	cancel  context.CancelFunc

	mu     sync.Mutex
	value  Value
	got    time.Time // when; zero: there is no value yet
	flight *flight   // the run under way; nil: there is none
	last   error     // of the last run
	next   time.Time // no run begins before
	wait   time.Duration
}

// flight is one run, for which all exchanges wait that need it.
type flight struct {
	ended chan struct{}
	err   error
}

const (
	// The back-off of runs that fail.
	firstWait = time.Second
	maxWait   = 5 * time.Minute
	// margin is how long before it expires a credential is obtained anew, or a fifth of its life if that is less.
	margin = time.Minute
	// refusedPause is how long after a run a refused credential does not lead to another one: the service refuses for
	// another reason then.
	refusedPause = time.Minute
)

// NewSource returns the source of a binding. id differs from that of other sources. Nothing runs until [Source.Begin],
// or the first [Source.Fresh].
func NewSource(id string, c Command, opts SourceOptions) *Source {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	s := &Source{opts: opts, command: c, id: id}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Begin begins the first run, so that the first exchange waits less.
func (s *Source) Begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.flight == nil && s.got.IsZero() && s.last == nil {
		s.begin()
	}
}

// Login returns the id of the source, which its credentials have in common.
func (s *Source) Login() string { return s.id }

// Secret returns the secret in force, which is zero until the first run has ended.
func (s *Source) Secret() vault.Secret {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.value.Secret
}

// Fresh returns when the session has a credential that can be used, at once if it does. refused is one that the service
// did not accept. A credential that could not be obtained anew is used until it expires.
func (s *Source) Fresh(ctx context.Context, refused vault.Secret) error {
	f, err := s.join(refused)
	if f == nil {
		return err
	}
	select {
	case <-f.ended:
		return f.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// join returns the run for which to wait. Nil: there is none, and the error is what comes of that.
func (s *Source) join(refused vault.Secret) (*flight, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.opts.Now()
	switch {
	case s.flight != nil:
		return s.flight, nil
	case refused.IsZero() && s.isFresh(now):
		return nil, nil
	case !refused.IsZero() && (refused.Reveal() != s.value.Secret.Reveal() || now.Before(s.got.Add(refusedPause))):
		return nil, nil // it is not in force any more, or is too new
	case now.Before(s.next):
		return nil, s.usable(now, s.last)
	}
	return s.begin(), nil
}

// isFresh reports whether the credential in force need not be obtained anew yet. s.mu is held.
func (s *Source) isFresh(now time.Time) bool {
	if s.got.IsZero() || s.value.Expires.IsZero() {
		return !s.got.IsZero()
	}
	return now.Before(s.value.Expires.Add(-min(margin, s.value.Expires.Sub(s.got)/5)))
}

// usable returns nil instead of err while the credential in force has not expired. s.mu is held.
func (s *Source) usable(now time.Time, err error) error {
	if !s.got.IsZero() && (s.value.Expires.IsZero() || now.Before(s.value.Expires)) {
		return nil
	}
	return err
}

// begin begins a run, which goes on when those who wait for it have gone. s.mu is held.
func (s *Source) begin() *flight {
	f := &flight{ended: make(chan struct{})}
	s.flight = f
	go s.fly(f)
	return f
}

func (s *Source) fly(f *flight) {
	v, err := s.run()
	s.mu.Lock()
	now := s.opts.Now()
	begins := err != nil && s.wait == 0
	if err == nil {
		s.value, s.got, s.wait, s.next = v, now, 0, time.Time{}
	} else {
		s.wait = min(max(2*s.wait, firstWait), maxWait)
		s.next = now.Add(s.wait)
		f.err = s.usable(now, err)
	}
	s.last = err
	s.mu.Unlock()
	if err == nil {
		s.opts.Announce()
	} else if begins && !errors.Is(err, context.Canceled) { // the session ends
		s.opts.Warn(err)
	}
	s.mu.Lock()
	s.flight = nil
	s.mu.Unlock()
	close(f.ended)
}

func (s *Source) run() (Value, error) {
	if s.ctx.Err() != nil {
		return Value{}, s.ctx.Err()
	}
	outcome, err := s.opts.Record()
	if err != nil {
		return Value{}, err
	}
	v, err := s.command.Run(s.ctx, s.opts.Start)
	outcome(err)
	return v, err
}

// Close ends the run under way, and waits for that. No exchange may ask any more.
func (s *Source) Close() {
	s.cancel()
	s.mu.Lock()
	f := s.flight
	s.mu.Unlock()
	if f != nil {
		<-f.ended
	}
}
