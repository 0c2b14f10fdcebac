package ship_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/ship"
)

// far is a target that has the head that it says.
type far struct {
	head audit.Head
	sent int
}

func (f *far) Head(context.Context, ship.Origin) (audit.Head, error) { return f.head, nil }
func (f *far) Send(_ context.Context, b *ship.Batch) error           { f.sent += len(b.Rows); return nil }
func (f *far) Close()                                                {}
func (f *far) String() string                                        { return "far" }

// A target that has lost the hash of its newest row must not pass for one that has all rows, or needs others.
func TestAHeadThatIsNoRowIsRefused(t *testing.T) {
	home := t.TempDir()
	l := must.Get(audit.Open(filepath.Join(home, "audit.db"), audit.Options{}))(t)
	for range 3 {
		must.Get(l.Append(t.Context(), audit.Row{Event: audit.EventSandboxRejected}))(t)
	}
	must.Do(t, l.Close())
	for _, head := range []audit.Head{{Seq: 1 << 40}, {Seq: 2}, {Seq: -3}, {Seq: -3, Hash: "x"}, {Hash: "x"}} {
		to := &far{head: head}
		s := must.Get(ship.Open(home, to, ship.Options{Report: t.Logf}))(t)
		if _, err := s.Once(t.Context()); !errors.As(err, new(*ship.RefusedError)) || to.sent > 0 {
			t.Errorf("Once with the head %+v: %v, %d rows", head, err, to.sent)
		}
		s.Close()
	}
	to := &far{}
	s := must.Get(ship.Open(home, to, ship.Options{Report: t.Logf}))(t)
	defer s.Close()
	if _, err := s.Once(t.Context()); err != nil || to.sent < 3 {
		t.Errorf("Once: %v, %d rows", err, to.sent)
	}
}
