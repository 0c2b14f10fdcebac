package scrub

import (
	"bytes"
	"io"
)

// Scanner wipes one stream, in pieces of any size. Its memory is a few times
// the largest piece.
type Scanner struct {
	set  *Set
	hits int

	data []byte // original bytes: a tail that has left already, then what is held
	left int    // how many of data have left
	mask []bool // of data: part of a hit
	out  []byte

	raws, once, twice, qp, flat, hexes view
}

// NewScanner starts on a new stream.
func (s *Set) NewScanner() *Scanner { return &Scanner{set: s} }

// Write takes the next piece and gives the bytes that may leave, which are
// valid until the next call.
func (s *Scanner) Write(piece []byte) []byte {
	if s.set == nil {
		return piece
	}
	s.data = append(s.data, piece...)
	hold, keep := s.search()
	return s.release(hold, keep)
}

// Flush gives what was held at the end of the stream. A beginning that never
// became a hit is no secret, and leaves as it is.
func (s *Scanner) Flush() []byte {
	if s.set == nil || !s.holds() {
		return nil
	}
	for _, v := range []*view{&s.raws, &s.once, &s.twice, &s.qp, &s.flat, &s.hexes} {
		v.final = true
	}
	s.search()
	return s.release(len(s.data), len(s.data))
}

func (s *Scanner) holds() bool { return s.left < len(s.data) }

// release gives data up to hold, and keeps what the next piece may go on
// with, from keep.
func (s *Scanner) release(hold, keep int) []byte {
	hold = max(hold, s.left)
	s.out = append(s.out[:0], s.data[s.left:hold]...)
	for i := range s.out {
		if s.mask[s.left+i] {
			s.out[i] = '*'
		}
	}
	s.left = hold
	// A hit that ends where the released bytes do may go on: its last symbols
	// are kept as they were, to be looked at together with what comes.
	keep = min(keep, s.left)
	for keep > 0 && s.mask[keep-1] && s.left-keep < maxTail {
		keep--
	}
	n := copy(s.data, s.data[keep:])
	copy(s.mask, s.mask[keep:])
	s.data, s.mask, s.left = s.data[:n], s.mask[:n], s.left-keep
	return s.out
}

// maxTail is more than Window symbols can take in any encoding, two layers
// and gaps included.
const maxTail = 1 << 10

// patience is how many symbols must have come before the end of a line, or a
// separator, is held back with them: a line of text that happens to end in a
// letter of some secret leaves at once. What leaves so is kept in sight.
const patience = 4

// search marks every hit in data, and gives the first byte that must wait and
// the first that must be kept.
func (s *Scanner) search() (hold, keep int) {
	for len(s.mask) < len(s.data) {
		s.mask = append(s.mask, false)
	}
	hold, keep = len(s.data), len(s.data)
	look := func(v *view, p *patterns) {
		p.find(v.symbols, func(from, to int) { s.mark(int(v.from[from]), int(v.to[to-1])) })
		if n := p.open(v.symbols); n > 0 {
			from := int(v.from[len(v.from)-n])
			keep = min(keep, from)
			if ended := int(v.to[len(v.to)-1]) < v.cut; !ended || n >= patience {
				hold = min(hold, from)
			}
		}
		hold, keep = min(hold, v.cut), min(keep, v.cut)
	}
	set := s.set
	s.raws.raw(s.data)
	look(&s.raws, &set.plain)
	last := &s.raws
	kinds := family(0)
	for c, f := range map[byte]family{'%': inURL, '\\': inJSON, '&': inHTML} {
		if bytes.IndexByte(s.data, c) >= 0 {
			kinds |= f
		}
	}
	// A secret may itself hold what another syntax takes for an escape, so
	// each is undone alone, and all together, twice.
	for _, f := range [...]family{inURL, inJSON, inHTML, anywhere} {
		if kinds&f == 0 || f == anywhere && (kinds == inURL || kinds == inJSON || kinds == inHTML) {
			continue
		}
		s.once.decode(&s.raws, f)
		look(&s.once, &set.plain)
		s.twice.decode(&s.once, f)
		look(&s.twice, &set.plain)
		last = &s.once
	}
	if bytes.IndexByte(s.data, '=') >= 0 {
		s.qp.quoted(&s.raws)
		look(&s.qp, &set.plain)
	}
	s.flat.joined(last)
	look(&s.flat, &set.wrapped)
	s.hexes.digits(&s.raws)
	look(&s.hexes, &set.hex)
	return max(hold, s.left), keep
}

// mark wipes data[from:to], and counts a hit when it is a new one.
func (s *Scanner) mark(from, to int) {
	if !s.mask[from] && (from == 0 || !s.mask[from-1]) && !s.mask[to-1] {
		s.hits++
	}
	for i := from; i < to; i++ {
		s.mask[i] = true
	}
}

// Hits is how many secrets, or runs of one, were wiped out so far.
func (s *Scanner) Hits() int { return s.hits }

// Reader wipes a body. It reads one piece of its source at a time, gives what
// may leave at once, and closes its source.
type Reader struct {
	src   io.ReadCloser
	scan  Scanner
	piece []byte
	ready []byte
	err   error
}

// pieceSize is the most that is read at once.
const pieceSize = 32 << 10

// Reader puts the search around src. A nil Set gives the bytes as they are.
func (s *Set) Reader(src io.ReadCloser) *Reader {
	return &Reader{src: src, scan: Scanner{set: s}}
}

// Read implements io.Reader.
func (r *Reader) Read(p []byte) (int, error) {
	if r.scan.set == nil {
		return r.src.Read(p)
	}
	for len(r.ready) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		if r.piece == nil {
			r.piece = make([]byte, pieceSize)
		}
		n, err := r.src.Read(r.piece[:min(len(r.piece), max(len(p), 512))])
		r.ready = r.scan.Write(r.piece[:n])
		if err != nil {
			r.err = err
			if r.scan.holds() { // both are in the scanner's one buffer
				r.ready = append(bytes.Clone(r.ready), r.scan.Flush()...)
			}
		}
	}
	n := copy(p, r.ready)
	r.ready = r.ready[n:]
	return n, nil
}

// Close closes the source.
func (r *Reader) Close() error { return r.src.Close() }

// Hits is how many secrets were wiped out so far.
func (r *Reader) Hits() int { return r.scan.hits }
