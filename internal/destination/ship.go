package destination

import (
	"context"
	"fmt"
	"net/url"
	"slices"

	"github.com/ALRubinger/aileron/internal/postgres"
	"github.com/ALRubinger/aileron/internal/ship"
)

// Options is what to ship, and how.
type Options struct {
	Home   string
	To     *url.URL
	Env    func(string) string
	Follow bool // go on with each new row until the context ends
	Report func(format string, args ...any)
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

// open returns the target of a URL.
func open(o Options) (ship.Target, error) {
	if slices.Contains(postgres.Schemes, o.To.Scheme) {
		d, err := postgres.Parse(o.To.String(), o.Env)
		if err != nil {
			return nil, err
		}
		return postgres.NewTarget(d), nil
	}
	return nil, fmt.Errorf("rows cannot be shipped to a URL of %s: it must be postgres://…", o.To.Scheme)
}
