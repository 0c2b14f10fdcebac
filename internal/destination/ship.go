package destination

import (
	"context"
	"fmt"
	"net/url"
	"slices"

	"github.com/ALRubinger/aileron/internal/jetstream"
	"github.com/ALRubinger/aileron/internal/otlp"
	"github.com/ALRubinger/aileron/internal/postgres"
	"github.com/ALRubinger/aileron/internal/ship"
)

// Migrator is a target whose tables or stream can be made.
type Migrator interface {
	// Migrate returns the version that there was, 0 if there was none, and the one that there is.
	Migrate(ctx context.Context) (from, to int, err error)
	Close()
}

// Migrate makes what rows are shipped to, or brings it to the version of this program.
func Migrate(ctx context.Context, o Options) (from, to int, err error) {
	t, err := open(o)
	if err != nil {
		return 0, 0, err
	}
	defer t.Close()
	m, ok := t.Target.(Migrator)
	if !ok {
		return 0, 0, fmt.Errorf("%s has nothing that could be created", t)
	}
	return m.Migrate(ctx)
}

// Options is what to ship, and how.
type Options struct {
	Home    string
	From    func() (*url.URL, error) // reads the URL; it is called again for a new connection
	Version string                   // of aileron
	Env     func(string) string
	Follow  bool // go on with each new row until the context ends
	Report  func(format string, args ...any)
}

// Ship sends the rows of the log of a home that its target does not have, and returns what it sent.
func Ship(ctx context.Context, o Options) (sent ship.Sent, err error) {
	target, err := open(o)
	if err != nil {
		return sent, err
	}
	s, err := ship.Open(o.Home, target, ship.Options{Report: o.Report})
	if err != nil {
		return sent, err
	}
	defer s.Close()
	if o.Follow {
		err = s.Follow(ctx)
		return s.Sent(), err
	}
	return s.Once(ctx)
}

// targetOf returns the target of a URL.
func targetOf(at *url.URL, o Options) (ship.Target, error) {
	switch scheme := at.Scheme; {
	case slices.Contains(postgres.Schemes, scheme):
		d, err := postgres.Parse(at.String(), o.Env)
		if err != nil {
			return nil, err
		}
		return postgres.NewTarget(d), nil
	case slices.Contains(jetstream.Schemes, scheme):
		return jetstream.Parse(at)
	case slices.Contains(otlp.Schemes, scheme):
		return otlp.NewTarget(at, o.Env, o.Home, o.Version, o.Report)
	default:
		return nil, fmt.Errorf("rows cannot be shipped to a URL of %s: it must be postgres, nats, tls, otlp+http or "+
			"otlp+https", scheme)
	}
}
