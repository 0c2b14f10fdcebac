package capture

import (
	"io"
	"sync"
)

// body is the beginning of a body, in pieces that never move: one that grows is not copied.
type body struct {
	file *File

	mu     sync.Mutex // an upload may go on when its exchange has ended
	pieces [][]byte   // all but the last are full
	kept   int        // bytes in pieces
	held   int        // memory of pieces
	n      int64      // of the whole body, as far as it was read
	cut    string     // why pieces are not all of it
	over   bool
}

// Why a body is not whole.
const (
	cutLong   = "its first MiB is recorded"
	cutMemory = "too much is held in memory"
)

// pieceSize is the size of the pieces of a body that is larger than its first one.
const pieceSize = 64 << 10

// add appends a piece, as far as there is room.
func (b *body) add(piece []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over || len(piece) == 0 {
		return
	}
	b.n += int64(len(piece))
	if b.cut != "" {
		return
	}
	if room := MaxBody - b.kept; len(piece) > room {
		piece, b.cut = piece[:room], cutLong
	}
	for len(piece) > 0 {
		last := len(b.pieces) - 1
		if last < 0 || len(b.pieces[last]) == cap(b.pieces[last]) {
			if !b.grow(len(piece)) {
				b.cut = cutMemory
				return
			}
			last++
		}
		at := b.pieces[last]
		n := copy(at[len(at):cap(at)], piece)
		b.pieces[last], piece = at[:len(at)+n], piece[n:]
		b.kept += n
	}
}

// grow appends an empty piece, and reports whether there was memory for it. Most bodies are small: the first piece is
// as large as what came first.
func (b *body) grow(n int) bool {
	size := pieceSize
	if len(b.pieces) == 0 {
		size = min(max(n, 1<<10), pieceSize)
	}
	if !b.file.take(size) {
		return false
	}
	b.held += size
	if pooled, ok := b.file.pieces.Get().(*[pieceSize]byte); ok && size == pieceSize {
		b.pieces = append(b.pieces, pooled[:0])
		return true
	} else if ok {
		b.file.pieces.Put(pooled)
	}
	b.pieces = append(b.pieces, make([]byte, 0, size))
	return true
}

// end ends the body: what comes later is not recorded.
func (b *body) end() {
	if b != nil {
		b.mu.Lock()
		b.over = true
		b.mu.Unlock()
	}
}

// release drops the pieces of a body that has ended.
func (b *body) release() {
	if b == nil {
		return
	}
	for _, p := range b.pieces {
		if cap(p) == pieceSize {
			b.file.pieces.Put((*[pieceSize]byte)(p[:pieceSize]))
		}
	}
	b.file.held.Add(-int64(b.held))
	b.pieces, b.held = nil, 0
}

// upload is the body of a request.
type upload struct {
	io.ReadCloser
	to *body
}

func (u *upload) Read(p []byte) (int, error) {
	n, err := u.ReadCloser.Read(p)
	u.to.add(p[:n])
	return n, err
}

// Ready reports whether a read returns at once, if the source can tell.
func (u *upload) Ready() bool {
	src, ok := u.ReadCloser.(interface{ Ready() bool })
	return ok && src.Ready()
}

// Pause notes that the body is not read for a while, if the source wants to know.
func (u *upload) Pause() {
	if src, ok := u.ReadCloser.(interface{ Pause() }); ok {
		src.Pause()
	}
}
