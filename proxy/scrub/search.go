package scrub

import "bytes"

// A line of text that happens to end in some letters of a secret is released at
// once, and kept for the next search: only a beginning of a secret, or a run of at
// least this many symbols, is held back. Before a line end, which is usually the
// end of an event, both a run and a beginning need more symbols.
const (
	minHeldRun       = 4
	minHeldRunAtLine = 8
)

// tail describes the end of the data: holdFrom is the first byte that must be held
// back, keepFrom the first that must be kept for the next search.
type tail struct{ holdFrom, keepFrom int }

// search records every hit in data, and returns the first byte to hold back and the
// first to keep.
func (s *Scanner) search(final bool) (holdFrom, keepFrom int) {
	s.beginSearch()
	defer s.endSearch()
	s.scout(final)
	s.searchRegions(final)
	end := len(s.data)
	t := tail{end, end}
	s.searchTail(final, &t)
	return t.holdFrom, t.keepFrom
}

// beginSearch takes a workspace, which endSearch returns to its pool.
func (s *Scanner) beginSearch() {
	if s.workspace, _ = s.set.workspaces.Get().(*workspace); s.workspace == nil {
		s.workspace = new(workspace)
	}
}

func (s *Scanner) endSearch() {
	s.raws.symbols = nil // they are the data
	s.set.workspaces.Put(s.workspace)
	s.workspace = nil
}

// scout is the first part of a search: it records the hits in data, but of dumps only where they may be.
func (s *Scanner) scout(final bool) {
	s.regions, s.final = s.regions[:0], final
	s.set.text.find(s.data, s.addHit)
	s.mark()
	s.walk()
}

// kind is a set of decodings.
type kind uint8

const (
	escaped kind = 1 << iota // of escapes
	broken                   // of encodings in lines or groups
	dumped                   // of dumps
)

// searchEnd searches data[from:], its end, in every decoding that its kinds require.
func (s *Scanner) searchEnd(from int, kinds kind, t *tail) {
	for _, v := range [...]*view{&s.raws, &s.onceView, &s.twiceView, &s.qpView, &s.flatView, &s.hexes, &s.decimals} {
		v.final = false
	}
	set := s.set
	s.raws.raw(s.data, from, len(s.data))
	s.match(&s.raws, &set.text, t)
	s.match(&s.raws, &set.base64, t)
	last := &s.raws
	if kinds&escaped != 0 {
		last = s.unescapeTail(s.data[from:], t)
	}
	if kinds&broken != 0 {
		s.join(&s.raws, t)
		if last != &s.raws { // what looks like an escape may take the first characters with it
			s.join(last, t)
		}
	}
	if kinds&dumped != 0 {
		s.undump(&s.raws, t)
		if last != &s.raws {
			s.undump(last, t)
		}
	}
}

// join searches src without white space.
func (s *Scanner) join(src *view, t *tail) {
	s.flatView.joined(src)
	s.match(&s.flatView, &s.set.base64, t)
	s.match(&s.flatView, &s.set.base32, t)
}

// undump searches the bytes that the numbers in src encode.
func (s *Scanner) undump(src *view, t *tail) {
	s.hexes.digits(src)
	s.match(&s.hexes, &s.set.hex, t)
	s.decimals.numbers(src)
	s.match(&s.decimals, &s.set.text, t)
}

// unescapeTail searches data with one and with two layers of escapes decoded, those of each syntax
// apart and those of all together, and returns the view with the outer one decoded: where the
// data end is not known, and so not which syntax what begins there has.
func (s *Scanner) unescapeTail(data []byte, t *tail) *view {
	set := s.set
	outer := familiesIn(data)
	for _, f := range combinations {
		if !f.among(outer) {
			continue
		}
		if s.onceView.decode(&s.raws, f); !s.onceView.undone && s.onceView.cut == s.raws.cut {
			continue
		}
		s.match(&s.onceView, &set.text, t)
		s.match(&s.onceView, &set.base64, t)
		s.match(&s.onceView, &set.hex, t)
		inner := familiesIn(s.onceView.symbols)
		for _, g := range combinations {
			if !g.among(inner) {
				continue
			}
			if s.twiceView.decode(&s.onceView, g); !s.twiceView.undone && s.twiceView.cut == s.onceView.cut {
				continue
			}
			s.match(&s.twiceView, &set.text, t)
			s.match(&s.twiceView, &set.base64, t)
			s.match(&s.twiceView, &set.hex, t)
		}
	}
	if bytes.IndexByte(data, '=') >= 0 {
		if s.qpView.quoted(&s.raws); s.qpView.undone || s.qpView.cut < s.raws.cut {
			s.match(&s.qpView, &set.text, t)
			s.match(&s.qpView, &set.base64, t)
			s.match(&s.qpView, &set.hex, t)
		}
	}
	if outer == 0 {
		return &s.raws
	}
	return &s.onceView
}

// familiesIn returns the syntaxes whose escapes text may contain.
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

// match records the hits of p in v, and an incomplete hit at the end of v.
func (s *Scanner) match(v *view, p *patterns, t *tail) {
	p.find(v.symbols, func(from, to int) { s.addHit(int(v.begin(from)), int(v.end(to-1))) })
	if v.final {
		return
	}
	if v.cut < len(s.data) {
		t.keepFrom = min(t.keepFrom, v.cut)
		if v != &s.hexes && v != &s.decimals { // neither the 0 of 0x nor a number is held back
			t.holdFrom = min(t.holdFrom, v.cut)
		}
	}
	run, head := p.open(v.symbols)
	first := func(n int) int { return int(v.begin(len(v.symbols) - n)) }
	if n := max(run, head); n > 0 {
		t.keepFrom = min(t.keepFrom, first(n))
	}
	need := minHeldRun
	if s.atLineEnd(v) {
		if v != &s.decimals { // each number of an array has a line of its own
			need = minHeldRunAtLine
		}
		if head < need {
			head = 0
		}
	}
	if run < need {
		run = 0
	}
	if n := max(run, head); n > 0 {
		t.holdFrom = min(t.holdFrom, first(n))
	}
}

// atLineEnd reports whether a line end follows the last symbol of v. A soft line
// break of quoted-printable is none.
func (s *Scanner) atLineEnd(v *view) bool {
	n := len(v.symbols)
	if n == 0 {
		return false
	}
	skipped := s.data[min(int(v.end(n-1)), v.cut):v.cut]
	lineEnd := bytes.IndexByte(skipped, '\n') >= 0 || v == &s.flatView && bytes.IndexByte(skipped, '\r') >= 0
	return lineEnd && bytes.IndexByte(skipped, '=') < 0
}
