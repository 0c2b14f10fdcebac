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
	newer func() *Set
}

// Follow makes the reader ask, for each piece, for the set that it is to look
// for from then on: the one that it had, and more. nil: no news.
func (r *Reader) Follow(newer func() *Set) { r.newer = newer }

// follow takes a newer set. What is held of the stream is searched again with
// it, together with what comes.
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
	if len(p) == 0 {
		return 0, nil
	}
	if r.set == nil {
		n, err := r.src.Read(p)
		if r.follow(); r.set == nil {
			return n, err
		}
		copy(r.scan.room(n), p)
		r.ready, r.err = r.scan.scan(n), err
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
		r.follow() // the secret may be newer than the wait
		r.ready, r.err = r.scan.scan(n), err
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
