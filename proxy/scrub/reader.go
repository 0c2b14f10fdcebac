package scrub

import (
	"cmp"
	"io"
)

// Reader redacts a body. It reads one piece of its source at a time, returns what
// can be released at once, and closes its source.
type Reader struct {
	src   io.ReadCloser
	set   *Set
	scan  *Scanner // nil when there is no set, and when the source has ended
	ready []byte
	err   error
	hits  int // when the source has ended
	newer func() *Set
	turns Turns // nil: none are taken
}

// Turns bounds how many pieces are searched at once, of all bodies. Begin waits until a search of n bytes may begin,
// which ends with End. It fails if the body is not wanted any more.
type Turns interface {
	Begin(n int) error
	End()
}

// Take makes the reader take a turn for each piece.
func (r *Reader) Take(turns Turns) { r.turns = turns }

// Follow makes the reader call newer for each piece, and use the set that it returns
// from then on. That set must contain the one before; nil means no change.
func (r *Reader) Follow(newer func() *Set) { r.newer = newer }

// follow switches to a newer set. The bytes that are kept of the stream are searched
// again with it, together with the next piece.
func (r *Reader) follow() {
	if r.newer == nil || r.err != nil {
		return
	}
	set := r.newer()
	if set == nil || set == r.set {
		return
	}
	if r.set = set; r.scan == nil {
		r.scan = set.borrow()
		return
	}
	r.scan.set = set
}

const (
	leastPiece = 512
	pieceSize  = 16 << 10 // the most that is read at once: one TLS record's
	// maxEmptyReads is how often in a row a source may return nothing before it
	// counts as stuck.
	maxEmptyReads = 100
)

// Reader returns a Reader of src. With a nil Set it returns the bytes unchanged.
func (s *Set) Reader(src io.ReadCloser) *Reader {
	r := &Reader{}
	r.Reset(s, src)
	return r
}

// Reset makes r what [Set.Reader] returns for src. It follows no set.
func (r *Reader) Reset(s *Set, src io.ReadCloser) {
	*r = Reader{src: src, set: s}
	if s != nil {
		r.scan = s.borrow()
	}
}

// Read implements io.Reader. It returns the source's error after its last bytes.
func (r *Reader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if r.set == nil {
		n, err := r.src.Read(p)
		if r.follow(); r.set == nil {
			return n, cmp.Or(err, r.turn(n, func() {}))
		}
		copy(r.scan.room(n), p)
		r.search(n, err)
	}
	for empty := 0; len(r.ready) == 0; {
		if r.err != nil {
			if r.scan != nil && r.scan.holds() {
				r.ready = r.scan.Flush()
				continue
			}
			r.end()
			return 0, r.err
		}
		room := r.scan.room(min(max(len(p), leastPiece), pieceSize))
		n, err := r.src.Read(room)
		if n == 0 && err == nil {
			if empty++; empty == maxEmptyReads {
				err = io.ErrNoProgress
			}
		}
		r.follow() // the set may have changed during the read
		r.search(n, err)
	}
	n := copy(p, r.ready)
	if r.ready = r.ready[n:]; len(r.ready) == 0 {
		r.ready = nil
		r.scan.idle()
		if r.err != nil && !r.scan.holds() {
			r.end()
		}
	}
	return n, nil
}

// search searches the n bytes that were read with err. If it gets no turn, they are not released, and neither is what
// was held back.
func (r *Reader) search(n int, err error) {
	r.err = err
	if failed := r.turn(n, func() { r.ready = r.scan.scan(n) }); failed != nil {
		r.err = failed
		r.scan.drop()
	}
}

// turn calls do in a turn for n bytes.
func (r *Reader) turn(n int, do func()) error {
	if r.turns == nil || n == 0 {
		do()
		return nil
	}
	if err := r.turns.Begin(n); err != nil {
		return err
	}
	defer r.turns.End()
	do()
	return nil
}

// Close closes the source.
func (r *Reader) Close() error { return r.src.Close() }

// end returns the scanner to its pool. Only Read calls it: Close may be called while
// a Read waits for its source.
func (r *Reader) end() {
	if r.scan != nil {
		r.hits = r.scan.count
		r.set.giveBack(r.scan)
		r.scan = nil
	}
}

// Hits returns how many secrets were redacted so far.
func (r *Reader) Hits() int {
	if r.scan != nil {
		return r.scan.count
	}
	return r.hits
}
