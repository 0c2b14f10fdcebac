package scrub

import "slices"

// Scanner redacts one stream, in pieces of any size. Its memory is bounded by the
// largest piece and does not grow with the stream. What a search needs beyond that,
// some forty times the piece if much of it must be decoded, is pooled.
type Scanner struct {
	set   *Set
	count int // hits so far

	data  []byte  // original bytes: first released ones that are kept, then held ones, then the piece
	left  int     // how many bytes of data were released
	piece *[]byte // the pooled buffer of data; nil: it is small, and the scanner's own
	used  int     // how many bytes of data were in use since the last reset, at most
	rest  []byte  // kept and held bytes for the next search, unredacted
	hits  []span  // hits in data

	*workspace // during a search
}

// workspace is the memory that a search needs besides the data.
type workspace struct {
	masks                      []masks
	final                      bool     // nothing follows the data
	regions                    []span   // of hits in dumps, in any order
	waiting                    span     // tokens that are to be searched for escapes, with what continues them
	joint                      joint    // of an escape and what follows it
	joins                      []bool   // whether an escape of the first layer and what follows it may be a hit
	surrounded                 int      // data before this index was searched around samples
	digitMasks                 []uint64 // of the digits of a dump
	sampled                    span     // tokens that wait to be sampled
	until                      int      // line ends before this index were searched
	once, twice, flat, numbers layer

	raws, onceView, twiceView, qpView, flatView, hexes, decimals view
}

// span is data[from:to].
type span struct {
	from, to int
	counted  bool
}

// NewScanner returns a scanner for a new stream.
func (s *Set) NewScanner() *Scanner { return &Scanner{set: s} }

func (s *Scanner) reset() {
	clear(s.data[:min(s.used, cap(s.data))])
	clear(s.rest[:min(s.used, cap(s.rest))])
	s.used = 0
	s.count, s.left, s.data, s.rest, s.hits = 0, 0, s.data[:0], s.rest[:0], s.hits[:0]
}

// Write scans the next piece and returns the bytes that can be released, which are
// valid until the next call.
func (s *Scanner) Write(piece []byte) []byte {
	if s.set == nil {
		return piece
	}
	copy(s.room(len(piece)), piece)
	return s.scan(len(piece))
}

// smallPiece is the size up to which a scanner keeps a buffer of its own: a stream
// of events, for example, waits for the next one most of the time.
const smallPiece = 9 << 10

// room returns the buffer for the next n bytes of the stream.
func (s *Scanner) room(n int) []byte {
	if need := len(s.rest) + n; need > cap(s.data) && need > smallPiece && s.piece == nil && s.set != nil {
		if s.piece, _ = s.set.pieces.Get().(*[]byte); s.piece == nil {
			s.piece = new([]byte)
		}
		s.data = *s.piece
	}
	s.used = max(s.used, len(s.rest)+n)
	s.data = slices.Grow(append(s.data[:0], s.rest...), n)
	return s.data[len(s.rest) : len(s.rest)+n]
}

// scan scans the n bytes that were written to room.
func (s *Scanner) scan(n int) []byte {
	s.data = s.data[:len(s.rest)+n]
	if n == 0 {
		return nil
	}
	holdFrom, keepFrom := s.search(false)
	return s.release(holdFrom, keepFrom)
}

// Flush returns the bytes that were held back at the end of the stream. A beginning
// that never became a hit is no secret, and is released as it is.
func (s *Scanner) Flush() []byte {
	if s.set == nil || !s.holds() {
		return nil
	}
	s.data = append(s.data[:0], s.rest...)
	s.search(true)
	return s.release(len(s.data), len(s.data))
}

// idle returns the buffer to its pool once all bytes have been consumed, so that a
// stream that is not read holds no more than it must.
func (s *Scanner) idle() {
	if s.piece == nil {
		return
	}
	clear(s.data[:min(s.used, cap(s.data))])
	*s.piece = s.data[:0]
	s.set.pieces.Put(s.piece)
	s.data, s.piece = nil, nil
}

// drop forgets the bytes that are held back.
func (s *Scanner) drop() { s.rest, s.left = s.rest[:0], 0 }

func (s *Scanner) holds() bool { return s.left < len(s.rest) }

// release returns the data before holdFrom, redacted, and keeps the data from keepFrom on
// for the next search.
func (s *Scanner) release(holdFrom, keepFrom int) []byte {
	holdFrom = max(holdFrom, s.left)
	keepFrom = min(keepFrom, holdFrom)
	s.mergeHits()
	// A hit at the end of the released bytes may continue: its last symbols are
	// kept unredacted, to be searched together with the next piece.
	if n := len(s.hits); n > 0 && s.hits[n-1].to >= keepFrom {
		keepFrom = min(keepFrom, max(s.hits[n-1].from, holdFrom-context))
	}
	s.rest = append(s.rest[:0], s.data[keepFrom:]...)
	out := s.data[s.left:holdFrom]
	kept := s.hits[:0]
	for _, m := range s.hits {
		for i := max(m.from, s.left); i < min(m.to, holdFrom); i++ {
			s.data[i] = '*'
		}
		if m.to > keepFrom {
			kept = append(kept, span{max(m.from, keepFrom) - keepFrom, m.to - keepFrom, true})
		}
	}
	s.hits, s.left = kept, holdFrom-keepFrom
	return out
}

// mergeHits sorts the hits, merges those that touch, and counts the new ones.
func (s *Scanner) mergeHits() {
	if len(s.hits) == 0 {
		return
	}
	slices.SortFunc(s.hits, func(a, b span) int { return a.from - b.from })
	n := 0
	for _, m := range s.hits[1:] {
		last := &s.hits[n]
		if m.from <= last.to {
			last.to, last.counted = max(last.to, m.to), last.counted || m.counted
			continue
		}
		n++
		s.hits[n] = m
	}
	s.hits = s.hits[:n+1]
	for _, m := range s.hits {
		if !m.counted {
			s.count++
		}
	}
}

// addHit records data[from:to] as a hit.
func (s *Scanner) addHit(from, to int) {
	if n := len(s.hits); n > 0 && from >= s.hits[n-1].from && from <= s.hits[n-1].to {
		s.hits[n-1].to = max(s.hits[n-1].to, to)
		return
	}
	s.hits = append(s.hits, span{from: from, to: to})
}

// Hits returns how many secrets, or runs of one, were redacted so far.
func (s *Scanner) Hits() int { return s.count }
