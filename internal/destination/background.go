package destination

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/internal/filelock"
	"github.com/ALRubinger/aileron/internal/ship"
)

// Background ships the log of a home beside what else its process does. Of several processes of a home, one ships.
type Background struct {
	target ship.Target
	cancel context.CancelFunc
	ended  chan struct{}
}

// endBound is how long End waits for the target.
const endBound = 2 * time.Second

// Begin ships until End is called. o.Follow is not used.
func Begin(o Options) (*Background, error) {
	target, err := open(o)
	if err != nil {
		return nil, err
	}
	s, err := ship.Open(o.Home, target, ship.Options{Report: o.Report, Drain: endBound})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	b := &Background{target, cancel, make(chan struct{})}
	go func() {
		defer close(b.ended)
		defer s.Close()
		if err := inTurn(ctx, o.Home, s); err != nil && o.Report != nil {
			o.Report("aileron: warning: the audit log is not shipped: %v; it keeps the rows", err)
		}
	}()
	return b, nil
}

// inTurn ships when no other process of the home does.
func inTurn(ctx context.Context, home string, s *ship.Shipper) error {
	for {
		lock, err := filelock.Locker{}.Lock(filepath.Join(home, "audit.shipping"), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			defer lock.Close()
			return s.Follow(ctx)
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return fmt.Errorf("lock audit.shipping: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Second):
		}
	}
}

// String returns the name of the target, without credentials.
func (b *Background) String() string { return b.target.String() }

// End sends what the log has, for at most two seconds.
func (b *Background) End() {
	if b != nil {
		b.cancel()
		<-b.ended
	}
}
