package scrub

import "bytes"

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
		for _, p := range []*patterns{&s.set.text, &s.set.base64, &s.set.base32} {
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
	for _, v := range [...]*view{&s.raws, &s.once, &s.twice, &s.qp, &s.flat, &s.hexes, &s.decimals} {
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
		s.look(&s.flat, &set.base32, h)
	}
	if kinds&dumped != 0 {
		s.undump(&s.raws, h)
		if last != &s.raws {
			s.undump(last, h)
		}
	}
}

// undump searches what the numbers in src stand for.
func (s *Scanner) undump(src *view, h *horizon) {
	s.hexes.digits(src)
	s.look(&s.hexes, &s.set.hex, h)
	s.decimals.numbers(src)
	s.look(&s.decimals, &s.set.text, h)
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
		if v != &s.hexes && v != &s.decimals { // the 0 of 0x is nothing to hold back, nor is a number
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
		if v != &s.decimals { // each number of an array has a line of its own
			need = patienceAtLine
		}
		if head < need {
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
