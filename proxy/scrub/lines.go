package scrub

import "math/bits"

// lineEnd searches the encodings that continue after the line end at data[i]. Their lines
// have 8 characters or more; those of quoted-printable have any length, and end in =.
func (s *Scanner) lineEnd(i int) {
	if i < s.until {
		return
	}
	set := s.set
	end := i
	for end > 0 && i-end <= maxGap && s.is(inBlank, end-1) {
		end--
	}
	left := s.before(end)
	next := s.afterGap(end)
	right := next + s.after(next)
	if left == 0 || right == next ||
		left+right-next < set.leastToken && (right-next < gramSize && s.data[right-1] != '=' || !s.lineEndAt(right)) {
		return
	}
	start := end - min(left, set.wing)
	l := &s.flat
	l.start(right - start)
	l.appendFrom(s.data, start, start, end)
	// Short lines are searched together with the next ones, and those with escapes.
	for {
		escapes := s.starts(next, right)
		if escapes {
			right = s.longAfter(right)
		}
		if right-next <= 2*set.wing {
			l.appendFrom(s.data, start, next, right)
		} else { // no hit is in all of it
			l.appendFrom(s.data, start, next, next+set.wing)
			l.symbols = append(l.symbols, separator)
			l.appendFrom(s.data, start, right-set.wing, right)
		}
		if !escapes && right-next >= set.wing || !s.lineEndAt(right) {
			break
		}
		from := s.afterGap(right)
		to := from + s.after(from)
		if from == to {
			break
		}
		next, right = from, to
	}
	s.until = next
	s.searchCoded(start, l.symbols, []*layer{l})
	if first := end - left; s.starts(first, right) {
		s.unescape(s.longBefore(first), s.longAfter(right))
	}
}

// group searches the encodings in groups that continue after the blank behind data[from:to].
func (s *Scanner) group(from, to int) {
	if to == len(s.data) || !s.is(inBlank, to) || to-from < groupSize {
		return
	}
	next := s.afterGap(to)
	right := next + min(s.after(next), s.set.wing)
	if right == next || s.is(inBlank, next) {
		return
	}
	l, start := &s.flat, max(from, to-s.set.wing)
	l.start(right - start)
	l.appendFrom(s.data, start, start, to)
	l.appendFrom(s.data, start, next, right)
	s.searchCoded(start, l.symbols, []*layer{l})
}

// unescape searches data[from:to] for what is behind escapes, together with the tokens
// that continue it: each is decoded once, however many line ends it is at.
func (s *Scanner) unescape(from, to int) {
	if w := &s.waiting; from <= w.to && w.to > 0 {
		w.from, w.to = min(w.from, from), max(w.to, to)
		return
	}
	s.unescapeWaiting()
	s.waiting = span{from: from, to: to}
}

// unescapeWaiting searches the tokens that wait.
func (s *Scanner) unescapeWaiting() {
	if w := s.waiting; w.to > 0 {
		s.waiting = span{}
		s.unescapeToken(w.from, w.to)
	}
}

// starts reports whether data[from:to] contains a byte that begins escapes.
func (s *Scanner) starts(from, to int) bool {
	return s.number(inEscape, from, to)+s.number(inEquals, from, to) > 0
}

// appendFrom appends data[from:to] to a layer of data[start:].
func (l *layer) appendFrom(data []byte, start, from, to int) {
	l.jump(len(l.symbols), from-start, from-start+1)
	l.symbols = append(l.symbols, data[from:to]...)
}

// before returns how many bytes of a token end at data[end], up to blockSize.
func (s *Scanner) before(end int) int {
	b, k := end/blockSize, uint(end%blockSize)
	m := uint64(0)
	if k > 0 {
		m = s.masks[b][inToken] << (blockSize - k)
	}
	if b > 0 {
		m |= s.masks[b-1][inToken] >> k
	}
	return bits.LeadingZeros64(^m)
}

// after returns how many bytes of a token begin at data[from], up to blockSize.
func (s *Scanner) after(from int) int {
	b, k := from/blockSize, uint(from%blockSize)
	if b >= len(s.masks) {
		return 0
	}
	m := s.masks[b][inToken] >> k
	if b+1 < len(s.masks) {
		m |= s.masks[b+1][inToken] << (blockSize - k)
	}
	return bits.TrailingZeros64(^m)
}

// longBefore returns where the token begins that data[from:] continues, or some bytes
// before from: as many as there may be in a hit with escapes.
func (s *Scanner) longBefore(from int) int {
	for far := max(0, from-longest); from > far && s.is(inToken, from-1); from-- {
	}
	return from
}

// longAfter returns where the token ends that data[:to] begins, or some bytes after to.
func (s *Scanner) longAfter(to int) int {
	for far := min(len(s.data), to+longest); to < far && s.is(inToken, to); to++ {
	}
	return to
}

// longest is the length of most hits with escapes.
const longest = 256

// afterGap returns the index behind the white space at data[i].
func (s *Scanner) afterGap(i int) int {
	for far := min(len(s.data), i+maxGap+1); i < far && classOf[s.data[i]]&blank != 0; i++ {
	}
	return i
}

// lineEndAt reports whether a line end follows data[:i], perhaps behind blanks.
func (s *Scanner) lineEndAt(i int) bool {
	for i < len(s.data) && s.is(inBlank, i) {
		i++
	}
	return i < len(s.data) && s.is(inLineEnd, i)
}

// is reports whether data[i] is of class k.
func (s *Scanner) is(k, i int) bool { return s.set.classes.is(k, s.data[i]) }
