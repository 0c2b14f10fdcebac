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
	set := s.set
	if s.workspace, _ = set.workspaces.Get().(*workspace); s.workspace == nil {
		s.workspace = new(workspace)
	}
	defer func() {
		s.raws.symbols = nil // they are the data
		set.workspaces.Put(s.workspace)
		s.workspace = nil
	}()
	end := len(s.data)
	t := tail{end, end}
	s.prefilter()
	for b := 1; b < len(s.blocks)-1; b++ {
		if s.blocks[b] == 0 {
			continue
		}
		from, kinds := b, kind(0)
		for ; b < len(s.blocks)-1 && s.blocks[b] != 0; b++ {
			kinds |= s.blocks[b]
		}
		s.searchRegion((from-1)*blockSize, min((b-1)*blockSize, end), kinds, final, &t)
	}
	if !final {
		last := s.data[max(0, end-hexWindow):]
		for _, p := range []*patterns{&s.set.text, &s.set.base64, &s.set.base32} {
			run, head := p.open(last)
			t.keepFrom = min(t.keepFrom, end-max(run, head))
			if run < minHeldRun {
				run = 0
			}
			t.holdFrom = min(t.holdFrom, end-max(run, head))
		}
	}
	return t.holdFrom, t.keepFrom
}

// searchRegion searches data[from:to] in every decoding that its kinds
// require.
func (s *Scanner) searchRegion(from, to int, kinds kind, final bool, t *tail) {
	final = final || to < len(s.data)
	for _, v := range [...]*view{&s.raws, &s.once, &s.twice, &s.qp, &s.flat, &s.hexes, &s.decimals} {
		v.final = final
	}
	set := s.set
	s.raws.raw(s.data, from, to)
	s.match(&s.raws, &set.text, t)
	s.match(&s.raws, &set.base64, t)
	last := &s.raws
	if kinds&escaped != 0 {
		last = s.unescape(s.data[from:to], t)
	}
	if kinds&broken != 0 {
		s.flat.joined(last)
		s.match(&s.flat, &set.base64, t)
		s.match(&s.flat, &set.base32, t)
	}
	if kinds&dumped != 0 {
		s.undump(&s.raws, t)
		if last != &s.raws {
			s.undump(last, t)
		}
	}
}

// undump searches the bytes that the numbers in src encode.
func (s *Scanner) undump(src *view, t *tail) {
	s.hexes.digits(src)
	s.match(&s.hexes, &s.set.hex, t)
	s.decimals.numbers(src)
	s.match(&s.decimals, &s.set.text, t)
}

// unescape searches data with one and with two layers of escapes decoded, and
// returns the view with the outer one decoded.
func (s *Scanner) unescape(data []byte, t *tail) *view {
	set := s.set
	outer := familiesIn(data)
	// A secret may itself contain an escape of another syntax, so each syntax is
	// decoded alone, and finally all together.
	for _, f := range [...]family{inURL, inJSON, inHTML, anywhere} {
		if outer&f == 0 || f == anywhere && outer&(outer-1) == 0 {
			continue
		}
		if s.once.decode(&s.raws, f); !s.once.undone && s.once.cut == s.raws.cut {
			continue
		}
		s.match(&s.once, &set.text, t)
		s.match(&s.once, &set.base64, t)
		inner := familiesIn(s.once.symbols)
		for _, g := range [...]family{inURL, inJSON, inHTML, anywhere} {
			if inner&g == 0 || g == anywhere && inner&(inner-1) == 0 {
				continue
			}
			if s.twice.decode(&s.once, g); !s.twice.undone && s.twice.cut == s.once.cut {
				continue
			}
			s.match(&s.twice, &set.text, t)
			s.match(&s.twice, &set.base64, t)
		}
	}
	if bytes.IndexByte(data, '=') >= 0 {
		if s.qp.quoted(&s.raws); s.qp.undone || s.qp.cut < s.raws.cut {
			s.match(&s.qp, &set.text, t)
			s.match(&s.qp, &set.base64, t)
		}
	}
	if outer == 0 {
		return &s.raws
	}
	return &s.once
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
	return bytes.IndexByte(skipped, '\n') >= 0 && bytes.IndexByte(skipped, '=') < 0
}
