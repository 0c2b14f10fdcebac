package scrub

import (
	"bytes"
	"slices"
)

// Scanner wipes one stream, in pieces of any size. Its memory is the largest
// piece, once as it is and, where much of it must be decoded, some forty times
// more; nothing grows with the stream.
type Scanner struct {
	set  *Set
	hits int

	data   []byte // original bytes: what has left already and is kept in sight, then what is held, then the piece
	left   int    // how many of data have left
	rest   []byte // what the next piece goes on with, as it was
	marks  []span // hits in data
	blocks []kind

	raws, once, twice, qp, flat, hexes view
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

// room is where the next n bytes of the stream go.
func (s *Scanner) room(n int) []byte {
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

// A line of text that happens to end in some letters of a secret leaves at
// once, and is kept in sight: only a beginning, or a run of this many symbols,
// is held back. Before a line end, which is most often the end of an event, it
// takes more, and of a beginning too.
const (
	patience       = 4
	patienceAtLine = 8
)

// horizon is what is known of the end of the data: the first byte that must
// wait, and the first that must be kept.
type horizon struct{ hold, keep int }

// search marks every hit in data.
func (s *Scanner) search(final bool) (hold, keep int) {
	end := len(s.data)
	h := horizon{end, end}
	s.survey()
	for b := 1; b < len(s.blocks)-1; b++ {
		if s.blocks[b] == 0 {
			continue
		}
		from, kinds := b, kind(0)
		for ; b < len(s.blocks)-1 && s.blocks[b] != 0; b++ {
			kinds |= s.blocks[b]
		}
		s.stretch((from-1)*blockSize, min((b-1)*blockSize, end), kinds, final, &h)
	}
	if !final {
		tail := s.data[max(0, end-hexWindow):]
		for _, p := range []*patterns{&s.set.text, &s.set.base64} {
			run, head := p.open(tail)
			h.keep = min(h.keep, end-max(run, head))
			if run < patience {
				run = 0
			}
			h.hold = min(h.hold, end-max(run, head))
		}
	}
	return h.hold, h.keep
}

// stretch searches data[from:to] in every decoding that it may need.
func (s *Scanner) stretch(from, to int, kinds kind, final bool, h *horizon) {
	final = final || to < len(s.data)
	for _, v := range [...]*view{&s.raws, &s.once, &s.twice, &s.qp, &s.flat, &s.hexes} {
		v.final = final
	}
	set := s.set
	s.raws.raw(s.data, from, to)
	s.look(&s.raws, &set.text, h)
	s.look(&s.raws, &set.base64, h)
	last := &s.raws
	if kinds&escaped != 0 {
		last = s.unescape(s.data[from:to], h)
	}
	if kinds&broken != 0 {
		s.flat.joined(last)
		s.look(&s.flat, &set.base64, h)
	}
	if kinds&dumped != 0 {
		s.hexes.digits(&s.raws)
		s.look(&s.hexes, &set.hex, h)
		if last != &s.raws {
			s.hexes.digits(last)
			s.look(&s.hexes, &set.hex, h)
		}
	}
}

// unescape searches what escapes stand for, two layers of them, and gives the
// view without the outer one.
func (s *Scanner) unescape(data []byte, h *horizon) *view {
	set := s.set
	outer := familiesIn(data)
	// A secret may itself hold what another syntax takes for an escape, so
	// each is undone alone, and last all together.
	for _, f := range [...]family{inURL, inJSON, inHTML, anywhere} {
		if outer&f == 0 || f == anywhere && outer&(outer-1) == 0 {
			continue
		}
		if s.once.decode(&s.raws, f); !s.once.undone && s.once.cut == s.raws.cut {
			continue
		}
		s.look(&s.once, &set.text, h)
		s.look(&s.once, &set.base64, h)
		inner := familiesIn(s.once.symbols)
		for _, g := range [...]family{inURL, inJSON, inHTML, anywhere} {
			if inner&g == 0 || g == anywhere && inner&(inner-1) == 0 {
				continue
			}
			if s.twice.decode(&s.once, g); !s.twice.undone && s.twice.cut == s.once.cut {
				continue
			}
			s.look(&s.twice, &set.text, h)
			s.look(&s.twice, &set.base64, h)
		}
	}
	if bytes.IndexByte(data, '=') >= 0 {
		if s.qp.quoted(&s.raws); s.qp.undone || s.qp.cut < s.raws.cut {
			s.look(&s.qp, &set.text, h)
			s.look(&s.qp, &set.base64, h)
		}
	}
	if outer == 0 {
		return &s.raws
	}
	return &s.once
}

// familiesIn tells whose escapes text may hold.
func familiesIn(text []byte) (f family) {
	if bytes.IndexByte(text, '%') >= 0 {
		f |= inURL
	}
	if bytes.IndexByte(text, '\\') >= 0 {
		f |= inJSON
	}
	if bytes.IndexByte(text, '&') >= 0 {
		f |= inHTML
	}
	return f
}

// look marks the hits of p in v, and what v leaves open at the end.
func (s *Scanner) look(v *view, p *patterns, h *horizon) {
	p.find(v.symbols, func(from, to int) { s.mark(int(v.begin(from)), int(v.end(to-1))) })
	if v.final {
		return
	}
	if v.cut < len(s.data) {
		h.keep = min(h.keep, v.cut)
		if p != &s.set.hex { // the 0 of 0x is nothing to hold back
			h.hold = min(h.hold, v.cut)
		}
	}
	run, head := p.open(v.symbols)
	first := func(n int) int { return int(v.begin(len(v.symbols) - n)) }
	if n := max(run, head); n > 0 {
		h.keep = min(h.keep, first(n))
	}
	need := patience
	if s.atLineEnd(v) {
		if need = patienceAtLine; head < need {
			head = 0
		}
	}
	if run < need {
		run = 0
	}
	if n := max(run, head); n > 0 {
		h.hold = min(h.hold, first(n))
	}
}

// atLineEnd tells whether a line end is all that v leaves out behind its last
// symbol. A soft line break of quoted-printable is none.
func (s *Scanner) atLineEnd(v *view) bool {
	n := len(v.symbols)
	if n == 0 {
		return false
	}
	skipped := s.data[min(int(v.end(n-1)), v.cut):v.cut]
	return bytes.IndexByte(skipped, '\n') >= 0 && bytes.IndexByte(skipped, '=') < 0
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
