package destination

import (
	"context"
	"net/url"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/ship"
)

// reread is the target of a URL that is read again whenever the connection was closed: the file that has it may have
// another password by then.
type reread struct {
	ship.Target
	o      Options
	at     *url.URL
	closed bool
}

// open returns the target of o.From.
func open(o Options) (*reread, error) {
	at, err := o.From()
	if err != nil {
		return nil, err
	}
	t, err := targetOf(at, o)
	return &reread{Target: t, o: o, at: at}, err
}

// Head implements [ship.Target].
func (r *reread) Head(ctx context.Context, origin ship.Origin) (audit.Head, error) {
	if r.closed {
		at, err := r.o.From()
		if err != nil {
			return audit.Head{}, err // the file may be half written
		}
		if at.String() != r.at.String() {
			t, err := targetOf(at, r.o)
			if err != nil {
				return audit.Head{}, err
			}
			r.Target, r.at = t, at
		}
		r.closed = false
	}
	return r.Target.Head(ctx, origin)
}

// Close implements [ship.Target].
func (r *reread) Close() {
	r.closed = true
	r.Target.Close()
}

// MaxBytes returns how many bytes of rows a batch has at most; 0: as many as any.
func (r *reread) MaxBytes() int {
	if t, ok := r.Target.(interface{ MaxBytes() int }); ok {
		return t.MaxBytes()
	}
	return 0
}
