package ship

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"time"

	"github.com/ALRubinger/aileron/audit"
)

// Options configure a [Shipper]. The zero value is valid.
type Options struct {
	// Report, if not nil, prints a line: the target cannot be reached, and that it can be again.
	Report func(format string, args ...any)
	Every  time.Duration // how often new rows are looked for; 0: a second
	// Drain bounds how long Follow goes on sending what the log has when its context has ended; 0: five seconds.
	Drain time.Duration

	minPause, maxPause time.Duration // of tests; 0: those below
}

// The pauses between attempts grow from minPause to maxPause.
const (
	minPause = 250 * time.Millisecond
	maxPause = 30 * time.Second
)

func (o *Options) report(format string, args ...any) {
	if o.Report != nil {
		o.Report(format, args...)
	}
}

// Follow sends all rows that the log has, and then each new one, until ctx ends; then it sends what is left, for
// Options.Drain at most. While the target cannot be reached it tries again, with growing pauses. It returns an error
// that wraps a [RefusedError].
func (s *Shipper) Follow(ctx context.Context) error {
	var down outage
	for {
		_, err := s.Once(ctx)
		switch {
		case ctx.Err() != nil:
			return s.drain(ctx)
		case err == nil:
			down.over(s)
		case errors.As(err, new(*RefusedError)):
			return err
		default:
			down.note(s, err)
		}
		pause := time.NewTimer(down.pause(&s.opts))
		select {
		case <-ctx.Done():
			pause.Stop()
			return s.drain(ctx)
		case <-pause.C:
		}
		if s.log != nil {
			audit.SettleKilled(s.path)
		}
	}
}

// drain sends what the log has for a last time.
func (s *Shipper) drain(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cmp.Or(s.opts.Drain, 5*time.Second))
	defer cancel()
	s.after = nil // the connection may have been cut
	_, err := s.Once(ctx)
	if err != nil {
		return fmt.Errorf("ship the last rows of the audit log: %w", err)
	}
	return nil
}

// outage is that a target cannot be reached.
type outage struct {
	since time.Time
	tries int
}

func (o *outage) note(s *Shipper, err error) {
	s.target.Close()
	s.closeLog() // another one may be at its path
	if o.tries++; o.tries == 1 {
		o.since = time.Now()
		s.opts.report("aileron: the audit log is not shipped: %v; trying again, and the log keeps the rows", err)
	}
}

func (o *outage) over(s *Shipper) {
	if o.tries > 0 {
		s.opts.report("aileron: the audit log is shipped again, after %s", time.Since(o.since).Round(time.Second))
	}
	*o = outage{}
}

// pause returns how long to wait: the interval, or a growing time with some chance in it, so that the shippers of many
// hosts do not come back at one moment.
func (o *outage) pause(opts *Options) time.Duration {
	if o.tries == 0 {
		return cmp.Or(opts.Every, time.Second)
	}
	longest := cmp.Or(opts.maxPause, maxPause)
	pause := min(cmp.Or(opts.minPause, minPause)<<min(o.tries-1, 16), longest)
	return pause/2 + rand.N(pause/2+1) //nolint:gosec // it need not be secret
}

// openLog opens the log, unless the one that is open is still at its path. There may be none yet.
func (s *Shipper) openLog() error {
	now, err := os.Stat(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		s.closeLog()
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the audit log: %w", err)
	}
	if s.log != nil && os.SameFile(now, s.file) {
		return nil
	}
	s.closeLog()
	if s.log, err = audit.OpenReader(s.path); err != nil {
		s.log = nil
		return err
	}
	s.file, s.after = now, nil
	if err := s.log.Foreign(); err != nil {
		s.closeLog()
		return &RefusedError{err} // its rows may be hashed differently
	}
	return nil
}
