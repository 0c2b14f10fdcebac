package scrub

import (
	"bytes"
	"io"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

// endless is a body of escapes: the most expensive input to search.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = `{"a":"\u00e9 %2Fx &amp; 0f1e2d"},`[i%33]
	}
	return len(p), nil
}

func (endless) Close() error { return nil }

// A client that does not read can keep its stream between two reads for as long as
// it likes.
func TestAStreamThatWaitsHoldsNoPiece(t *testing.T) {
	set := NewSet([]Credential{{Secret: []byte("S1-tok+en/0123456789=abcdefghij%klmnop")}})
	for _, size := range []int{64, 1 << 10, 16 << 10, 64 << 10} {
		r := set.Reader(endless{})
		p := make([]byte, size)
		for range 3 {
			must.Get(io.ReadFull(r, p))(t)
		}
		for len(r.ready) > 0 { // what was read with it, and did not fit
			must.Get(r.Read(p))(t)
		}
		if s := r.scan; s.workspace != nil || cap(s.data) > smallPiece || cap(s.rest) > smallPiece {
			t.Errorf("reads of %d bytes: a stream that waits holds %d and %d bytes, and a workspace: %t", size, cap(s.data),
				cap(s.rest), s.workspace != nil)
		}
	}
	if got := set.pieces.Get(); got != nil &&
		bytes.ContainsFunc((*got.(*[]byte))[:cap(*got.(*[]byte))], func(c rune) bool { return c != 0 }) {
		t.Error("a buffer that was given back still has what was in it")
	}
}
