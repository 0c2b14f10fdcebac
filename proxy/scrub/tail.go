package scrub

// context is how far back from the end of the data the longest incomplete hit can
// begin: 31 digits with the largest gaps. One with escapes can be longer.
const context = 320

// groupSize is how many characters a group of base64 has at least, if blanks follow it.
const groupSize = 16

// searchTail searches the end of the data for the beginnings of hits.
func (s *Scanner) searchTail(final bool, t *tail) {
	if final {
		return
	}
	end := len(s.data)
	if from, kinds := s.tail(); kinds != 0 {
		s.searchEnd(from, kinds, t)
	}
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

// tail returns where the longest beginning of a hit at the end of the data may begin, and
// the decodings in which it may be one.
func (s *Scanner) tail() (from int, kinds kind) {
	from = len(s.data)
	if start, k := s.linesTail(); k != 0 {
		from, kinds = start, k|s.escapes(start)
	}
	if start, k := s.escapesTail(leastTail); k != 0 {
		from, kinds = min(from, start), kinds|k
	}
	digits, dump := 0, len(s.data)
	for dump > 0 && len(s.data)-dump < context && digits < 2*hexWindow && classOf[s.data[dump-1]]&hexDump != 0 {
		if dump--; classOf[s.data[dump]]&hexDigit != 0 {
			digits++
		}
	}
	if digits > 0 {
		from, kinds = min(from, dump), kinds|dumped
	}
	return from, kinds
}

// linesTail is tail for encodings in lines or groups.
func (s *Scanner) linesTail() (from int, kinds kind) {
	data := s.data
	from = len(data)
	for least := max(0, from-context); from > least; {
		lineEnd, word := false, from
		for word > 0 && from-word <= maxGap && classOf[data[word-1]]&blank != 0 {
			word--
			lineEnd = lineEnd || s.is(inLineEnd, word)
		}
		start := word
		for start > least && classOf[data[start-1]]&base64Char != 0 {
			start--
		}
		// Blanks are between groups only, but may be the beginning of a line end. Of a
		// group at the beginning of the data some may have been released.
		group := word-start >= groupSize || start == 0 && word-start >= gramSize
		if start == word || word < from && from < len(data) && !lineEnd && !group {
			break
		}
		if word < from {
			kinds = broken
		}
		from = start
	}
	return from, kinds
}

// escapesTail is tail for escapes, for up to about so many bytes.
func (s *Scanner) escapesTail(limit int) (from int, kinds kind) {
	from = len(s.data)
	classes := uint8(0)
	for least := max(0, from-limit); from > least; from-- {
		class := s.set.classes.class[s.data[from-1]]
		if class&(1<<inToken) == 0 && (class&(1<<inLineEnd) == 0 || from > 1 && !s.softBreak(from-1)) {
			break
		}
		classes |= class
	}
	if classes&(1<<inEscape|1<<inEquals) == 0 {
		return from, 0
	}
	kinds = s.escapes(from)
	if kinds&escaped != 0 && len(s.data)-from >= limit && limit < mostTail && s.symbols(from) <= 2*s.set.wing {
		return s.escapesTail(2 * limit)
	}
	return from, kinds
}

// The end of the data that is searched for escapes is longer the fewer symbols are in it:
// one of two layers of escapes can take 144 bytes.
const (
	leastTail = 128
	mostTail  = 8 << 10
)

// symbols returns how many symbols the decoding of data[from:] has that has the fewest.
func (s *Scanner) symbols(from int) int {
	s.once.decode(s.data[from:], inQuoted, nil, false, false)
	n := len(s.once.symbols)
	s.once.decode(s.data[from:], anywhere, nil, false, false)
	s.twice.decode(s.once.symbols, anywhere, nil, false, false)
	return min(n, len(s.twice.symbols))
}

// softBreak reports whether the line end at data[i] is a soft one of quoted-printable.
func (s *Scanner) softBreak(i int) bool {
	if s.data[i] == '\n' && i > 0 && s.data[i-1] == '\r' {
		i--
	}
	return i > 0 && s.data[i-1] == '='
}

// escapes returns escaped if there is an escape in data[from:], or the beginning of one, and
// broken if one of them is a line end or a tab of JSON between base64 characters.
func (s *Scanner) escapes(from int) (kinds kind) {
	for i := from; i < len(s.data); i++ {
		c, n := s.data[i], 1
		switch c {
		case '%':
			c, n = percent(s.data[i:])
		case '\\':
			c, n = backslash(s.data[i:])
		case '&':
			if i+1 == len(s.data) || classOf[s.data[i+1]]&nameStart != 0 {
				c, n = entity(s.data[i:], false)
			}
		case '=':
			if c, n = quoted(s.data[i:]); len(s.data)-i <= 2 {
				n = 0
			}
		}
		if n == 1 {
			continue
		}
		kinds |= escaped
		lineEnd := s.data[i] == '\\' && (n == 2 && classOf[c]&blank != 0 || i+1 == len(s.data) && s.before(i) >= gramSize)
		if lineEnd && s.between(i) {
			kinds |= broken
		}
		i += max(n, 1) - 1
	}
	return kinds
}

// between reports whether the escape of a line end at data[i] has base64 on both sides, as
// far as the data show.
func (s *Scanner) between(i int) bool {
	before, after := i-1, i+2
	for ; before >= 0 && i-before <= maxGap && classOf[s.data[before]]&blank != 0; before-- {
	}
	for ; after < len(s.data) && after-i <= maxGap && classOf[s.data[after]]&blank != 0; after++ {
	}
	return before >= 0 && classOf[s.data[before]]&base64Char != 0 &&
		(after >= len(s.data) || classOf[s.data[after]]&base64Char != 0)
}
