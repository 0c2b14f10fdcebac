package upstream

import (
	"errors"
	"io"
	"slices"

	"github.com/ALRubinger/aileron/proxy/budget"
)

// prefetchPiece is the least by which the memory for a body grows.
const prefetchPiece = 2 << 10

// Prefetch reads up to most bytes of the body before it is sent: the first attempt sends them. take is called before
// memory is used, with its size, and reports whether it may be. whole is whether the body has no more. The error is
// that of reading the body, or [budget.ErrShed]. The bytes must not be changed.
func (b *Body) Prefetch(most int, take func(int64) bool) (head []byte, whole bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.pending) <= most && b.err == nil { // one byte more tells whether that is all
		if len(b.pending) == cap(b.pending) {
			more := max(prefetchPiece, cap(b.pending))
			if !take(int64(more)) {
				return nil, false, budget.ErrShed
			}
			b.pending = slices.Grow(b.pending, more)
		}
		at := len(b.pending)
		n, err := b.src.Read(b.pending[at:min(cap(b.pending), most+1)])
		b.pending, b.err = b.pending[:at+n], err
	}
	if b.err != nil && !errors.Is(b.err, io.EOF) {
		err := b.err
		b.failed.Store(&err)
		return nil, false, err
	}
	if src, ok := b.src.(interface{ Pause() }); ok && b.err == nil {
		src.Pause()
	}
	return b.pending[:min(len(b.pending), most)], b.err != nil && len(b.pending) <= most, nil
}
