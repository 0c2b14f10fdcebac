package scrub

import "math/bits"

// longRuns finds the long runs of one class in a sequence of masks.
type longRuns struct {
	least int    // the length of a long run, 8 to 32
	full  uint64 // of the mask before: has a bit set if eight bytes of it, aligned, are of the class
	from  int    // where the run began that reaches the end of the mask before; -1: none
}

const (
	lowBits  = 0x0101010101010101 // the lowest bit of each byte
	highBits = lowBits << 7       // the highest one
	// A run of so many bytes contains eight that begin at a multiple of eight.
	leastFull = 15
)

// may reports whether a long run may end in m, or a run of before continue in it. Most masks
// have no byte with all bits set.
func (r *longRuns) may(m uint64) bool {
	full := (^m - lowBits) & m & highBits
	seen := full | r.full
	r.full = full
	return seen != 0 || r.from >= 0 || r.least < leastFull
}

// ends returns the bytes of m behind which a run of the least length has been seen, given the
// mask before.
func (r *longRuns) ends(before, m uint64) uint64 {
	// Where runs of 2, 4 and 8 bytes end: in the mask before, those that began in it.
	two, twoBefore := m&(m<<1|before>>63), before&(before<<1)
	four, fourBefore := two&(two<<2|twoBefore>>62), twoBefore&(twoBefore<<2)
	eight, eightBefore := four&(four<<4|fourBefore>>60), fourBefore&(fourBefore<<4)
	if r.least <= 16 {
		k := uint(r.least-8) & 63
		return eight & (eight<<k | eightBefore>>(64-k))
	}
	sixteen, sixteenBefore := eight&(eight<<8|eightBefore>>56), eightBefore&(eightBefore<<8)
	k := uint(r.least-16) & 63
	return sixteen & (sixteen<<k | sixteenBefore>>(64-k))
}

// each calls found for every long run that ends in m, the mask of the block at base, given
// what ends returned.
func (r *longRuns) each(m, long uint64, base int, found func(from, to int)) {
	if r.from >= 0 {
		length := bits.TrailingZeros64(^m)
		if length == blockSize {
			return
		}
		found(r.from, base+length)
		r.from = -1
		long &^= 1<<length - 1
	}
	for long != 0 {
		first := bits.TrailingZeros64(long)
		from, to := base+first-r.least+1, first+bits.TrailingZeros64(^(m>>first))
		if to >= blockSize {
			r.from = from
			return
		}
		found(from, base+to)
		long &^= 1<<to - 1
	}
}

// walk searches the data for everything but what the sampling of plain text finds, by its
// masks.
func (s *Scanner) walk() {
	set := s.set
	tokens, dumps := longRuns{least: set.leastToken, from: -1}, longRuns{least: set.leastDigits, from: -1}
	token, dump := s.token, s.dump
	s.until, s.surrounded, s.waiting, s.sampled = 0, 0, span{}, span{}
	before := &masks{}
	for b := range s.masks {
		m, base := &s.masks[b], b*blockSize
		if t := m[inToken]; tokens.may(t) {
			tokens.each(t, tokens.ends(before[inToken], t), base, token)
		}
		if m[inLineEnd] != 0 {
			s.lineEnds(b)
		}
		if d := m[inDump]; dumps.may(d) {
			dumps.each(d, dumps.ends(before[inDump], d), base, dump)
		}
		before = m
	}
	if tokens.from >= 0 {
		s.token(tokens.from, len(s.data))
	}
	if dumps.from >= 0 {
		s.dump(dumps.from, len(s.data))
	}
	s.sampleTokens()
	s.unescapeWaiting()
}

// sample samples the token data[from:to] for encodings as they are, together with those beside
// it: a few long stretches cost less than many tokens, even with what is between them.
func (s *Scanner) sample(from, to int) {
	if from-s.sampled.to > blockSize {
		s.sampleTokens()
		s.sampled.from = from
	}
	s.sampled.to = to
}

// sampleTokens samples the tokens that wait for it.
func (s *Scanner) sampleTokens() {
	for at, to := s.sampled.from, s.sampled.to; ; {
		if at, _ = s.set.coded.next(s.data[:to], at, at); at == to {
			return
		}
		at = s.around(at)
	}
}

// lineEnds searches what continues behind the line ends of a block.
func (s *Scanner) lineEnds(b int) {
	m := &s.masks[b]
	word, gap, before := m[inToken]|m[inBlank], uint64(0), uint64(0)
	if b > 0 {
		last := &s.masks[b-1]
		gap, before = last[inLineEnd], last[inToken]|last[inBlank]
	}
	// The first of some line ends behind a token, perhaps with a blank between.
	for ends := m[inLineEnd] &^ (m[inLineEnd]<<1 | gap>>63) & (word<<1 | before>>63); ends != 0; ends &= ends - 1 {
		s.lineEnd(b*blockSize + bits.TrailingZeros64(ends))
	}
}

// mark writes the masks of the data.
func (s *Scanner) mark() {
	data, blocks := s.data, (len(s.data)+blockSize-1)/blockSize
	if cap(s.masks) < blocks {
		s.masks = make([]masks, blocks+blocks/4)
	}
	s.masks = s.masks[:blocks]
	full := len(data) / blockSize
	classify(s.masks[:full], data[:full*blockSize], s.set.classes)
	if rest := len(data) % blockSize; rest > 0 {
		var padded [blockSize]byte
		copy(padded[:], data[full*blockSize:])
		last := s.masks[full:]
		classify(last, padded[:], s.set.classes)
		for k := range last[0] {
			last[0][k] &= 1<<rest - 1
		}
	}
}

// number returns how many bytes of data[from:to] are of class k.
func (s *Scanner) number(k, from, to int) int {
	if from >= to {
		return 0
	}
	first, last := from/blockSize, (to-1)/blockSize
	head, tail := ^uint64(0)<<(from%blockSize), ^uint64(0)>>(blockSize-1-(to-1)%blockSize)
	if first == last {
		return bits.OnesCount64(s.masks[first][k] & head & tail)
	}
	n := bits.OnesCount64(s.masks[first][k]&head) + bits.OnesCount64(s.masks[last][k]&tail)
	for b := first + 1; b < last; b++ {
		n += bits.OnesCount64(s.masks[b][k])
	}
	return n
}
