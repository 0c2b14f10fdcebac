package scrub

import "io"

// Reader wipes a body. It reads one piece of its source at a time, gives what
// may leave at once, and closes its source.
type Reader struct {
	src   io.ReadCloser
	set   *Set
	scan  *Scanner // nil when there is no set, and when the source has ended
	ready []byte
	err   error
	hits  int // when the source has ended
}

const (
	leastPiece = 512
	pieceSize  = 32 << 10 // the most that is read at once
	// patienceForSource is how often a source may give nothing before it
	// counts as stuck.
	patienceForSource = 100
)

// Reader puts the search around src. A nil Set gives the bytes as they are.
func (s *Set) Reader(src io.ReadCloser) *Reader {
	r := &Reader{src: src, set: s}
	if s != nil {
		r.scan = s.borrow()
	}
	return r
}

// Read implements io.Reader. The source's error comes behind its last bytes.
func (r *Reader) Read(p []byte) (int, error) {
	if r.set == nil || len(p) == 0 {
		return r.src.Read(p)
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
			if empty++; empty == patienceForSource {
				err = io.ErrNoProgress
			}
		}
		r.ready, r.err = r.scan.scan(n), err
	}
	n := copy(p, r.ready)
	if r.ready = r.ready[n:]; len(r.ready) == 0 && r.err != nil && !r.scan.holds() {
		r.end()
	}
	return n, nil
}

// Close closes the source.
func (r *Reader) Close() error { return r.src.Close() }

// end gives the scanner back. Only Read does so: Close may come while a Read
// waits for its source.
func (r *Reader) end() {
	if r.scan != nil {
		r.hits = r.scan.hits
		r.set.giveBack(r.scan)
		r.scan = nil
	}
}

// Hits is how many secrets were wiped out so far.
func (r *Reader) Hits() int {
	if r.scan != nil {
		return r.scan.hits
	}
	return r.hits
}
