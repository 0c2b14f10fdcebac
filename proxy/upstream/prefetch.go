package upstream

import (
	"errors"
	"io"

	"github.com/ALRubinger/aileron/proxy/budget"
)

// prefetchPiece is how much of a body is read at a time.
const prefetchPiece = 16 << 10

// Prefetch reads up to most bytes of the body before it is sent: the first attempt sends them. take is called before
// each piece with its size, and reports whether it may be kept. whole is whether the body has no more. The error is
// that of reading the body, or [budget.ErrShed]. The bytes must not be changed.
func (b *Body) Prefetch(most int, take func(int64) bool) (head []byte, whole bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.pending) < most && b.err == nil {
		if !take(prefetchPiece) {
			return nil, false, budget.ErrShed
		}
		at := len(b.pending)
		piece := append(b.pending, make([]byte, min(prefetchPiece, most-at))...)
		n, err := b.src.Read(piece[at:])
		b.pending, b.err = piece[:at+n], err
	}
	if b.err == nil { // is there more?
		var one [1]byte
		n, err := io.ReadFull(b.src, one[:])
		if b.pending = append(b.pending, one[:n]...); err != nil {
			b.err = err
		}
	}
	if b.err != nil && !errors.Is(b.err, io.EOF) {
		err := b.err
		b.failed.Store(&err)
		return nil, false, err
	}
	return b.pending, b.err != nil, nil
}
