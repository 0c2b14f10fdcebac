package scrub

import "slices"

// Scanner wipes one stream, in pieces of any size. Its memory is the largest
// piece; nothing grows with the stream. What a search needs beyond that, some
// forty times the piece where much of it must be decoded, is borrowed.
type Scanner struct {
	set  *Set
	hits int

	data  []byte  // original bytes: what has left already and is kept in sight, then what is held, then the piece
	left  int     // how many of data have left
	piece *[]byte // what data came from; nil: it is small, and the scanner's own
	rest  []byte  // what the next piece goes on with, as it was
	marks []span  // hits in data

	*workspace // while a search lasts
}

// workspace is what a search needs beside the data.
type workspace struct {
	blocks []kind

	raws, once, twice, qp, flat, hexes, decimals view
}

// span is data[from:to].
type span struct {
	from, to int
	counted  bool
}

// NewScanner starts on a new stream.
func (s *Set) NewScanner() *Scanner { return &Scanner{set: s} }

func (s *Scanner) reset() {
	clear(s.data[:cap(s.data)])
	clear(s.rest[:cap(s.rest)])
	s.hits, s.left, s.data, s.rest, s.marks = 0, 0, s.data[:0], s.rest[:0], s.marks[:0]
}

// Write takes the next piece and gives the bytes that may leave, which are
// valid until the next call.
func (s *Scanner) Write(piece []byte) []byte {
	if s.set == nil {
		return piece
	}
	copy(s.room(len(piece)), piece)
	return s.scan(len(piece))
}

// smallPiece is the size up to which a scanner keeps a buffer for itself: that
// of a stream of events, say, which waits for the next one most of the time.
const smallPiece = 9 << 10

// room is where the next n bytes of the stream go.
func (s *Scanner) room(n int) []byte {
	if need := len(s.rest) + n; need > cap(s.data) && need > smallPiece && s.piece == nil && s.set != nil {
		if s.piece, _ = s.set.pieces.Get().(*[]byte); s.piece == nil {
			s.piece = new([]byte)
		}
		s.data = *s.piece
	}
	s.data = slices.Grow(append(s.data[:0], s.rest...), n)
	return s.data[len(s.rest) : len(s.rest)+n]
}

// scan takes the n bytes that were put in the room.
func (s *Scanner) scan(n int) []byte {
	s.data = s.data[:len(s.rest)+n]
	if n == 0 {
		return nil
	}
	hold, keep := s.search(false)
	return s.release(hold, keep)
}

// Flush gives what was held at the end of the stream. A beginning that never
// became a hit is no secret, and leaves as it is.
func (s *Scanner) Flush() []byte {
	if s.set == nil || !s.holds() {
		return nil
	}
	s.data = append(s.data[:0], s.rest...)
	s.search(true)
	return s.release(len(s.data), len(s.data))
}

// idle returns the buffer of a stream whose bytes have all been taken. A stream
// that is not read holds no more than it must.
func (s *Scanner) idle() {
	if s.piece == nil {
		return
	}
	clear(s.data)
	*s.piece = s.data[:0]
	s.set.pieces.Put(s.piece)
	s.data, s.piece = nil, nil
}

func (s *Scanner) holds() bool { return s.left < len(s.rest) }

// release gives data up to hold, and keeps what the next piece may go on
// with, from keep.
func (s *Scanner) release(hold, keep int) []byte {
	hold = max(hold, s.left)
	keep = min(keep, hold)
	s.settle()
	// A hit that ends where the released bytes do may go on: its last symbols
	// are kept as they were, to be looked at together with what comes.
	if n := len(s.marks); n > 0 && s.marks[n-1].to >= keep {
		keep = min(keep, max(s.marks[n-1].from, hold-context))
	}
	s.rest = append(s.rest[:0], s.data[keep:]...)
	out := s.data[s.left:hold]
	kept := s.marks[:0]
	for _, m := range s.marks {
		for i := max(m.from, s.left); i < min(m.to, hold); i++ {
			s.data[i] = '*'
		}
		if m.to > keep {
			kept = append(kept, span{max(m.from, keep) - keep, m.to - keep, true})
		}
	}
	s.marks, s.left = kept, hold-keep
	return out
}

// settle orders the marks, joins those that touch, and counts the new ones.
func (s *Scanner) settle() {
	if len(s.marks) == 0 {
		return
	}
	slices.SortFunc(s.marks, func(a, b span) int { return a.from - b.from })
	n := 0
	for _, m := range s.marks[1:] {
		last := &s.marks[n]
		if m.from <= last.to {
			last.to, last.counted = max(last.to, m.to), last.counted || m.counted
			continue
		}
		n++
		s.marks[n] = m
	}
	s.marks = s.marks[:n+1]
	for _, m := range s.marks {
		if !m.counted {
			s.hits++
		}
	}
}

// mark notes data[from:to] as a hit.
func (s *Scanner) mark(from, to int) {
	if n := len(s.marks); n > 0 && from >= s.marks[n-1].from && from <= s.marks[n-1].to {
		s.marks[n-1].to = max(s.marks[n-1].to, to)
		return
	}
	s.marks = append(s.marks, span{from: from, to: to})
}

// Hits is how many secrets, or runs of one, were wiped out so far.
func (s *Scanner) Hits() int { return s.hits }
