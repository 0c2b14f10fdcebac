package scrub

import "io"

// Reader wipes a body. It reads one piece of its source at a time, gives what
// may leave at once, and closes its source.
type Reader struct {
	src   io.ReadCloser
	scan  Scanner
	ready []byte
	err   error
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
	return &Reader{src: src, scan: Scanner{set: s}}
}

// Read implements io.Reader. The source's error comes behind its last bytes.
func (r *Reader) Read(p []byte) (int, error) {
	if r.scan.set == nil || len(p) == 0 {
		return r.src.Read(p)
	}
	for empty := 0; len(r.ready) == 0; {
		if r.err != nil {
			if r.scan.holds() {
				r.ready = r.scan.Flush()
				continue
			}
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
	r.ready = r.ready[n:]
	return n, nil
}

// Close closes the source.
func (r *Reader) Close() error { return r.src.Close() }

// Hits is how many secrets were wiped out so far.
func (r *Reader) Hits() int { return r.scan.hits }
