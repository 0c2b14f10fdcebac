package scrub

import (
	"encoding/binary"
	"slices"
)

// seam is where a hit may begin in an escape and continue behind it: the escape is of another
// syntax than the hit, and the hit's first bytes only look as if they were a part of it.
type seam struct {
	from    int    // what the escapes are in, or what it decodes, is data[from:]
	escapes []jump // in src
	src     []byte
	srcOf   *layer // src is its symbols; nil: src is data
	mid     []byte // what follows the escapes, in src or in the layer that decodes them
	midOf   *layer
	behind  *layer // decodes mid
}

// joint is the bytes at the end of an escape and the symbols that follow it, with their places
// in what the escape is in, and in what follows it.
type joint struct {
	symbols []byte
	places  []span
	inside  int // how many are of the escape
}

func (j *joint) put(c byte, from, to int) {
	j.symbols, j.places = append(j.symbols, c), append(j.places, span{from: from, to: to})
}

// mostJoint bounds a joint: the longest hit, in lines of the least length.
const mostJoint = maxHit + maxHit/gramSize*maxGap

// searchSwallowed searches data[from:] for hits that begin in escapes of some layers, of which
// the second decodes the first.
func (s *Scanner) searchSwallowed(from int, src []byte, layers ...*layer) {
	once := layers[0]
	if len(layers) == 1 {
		s.searchSeams(&seam{from: from, escapes: once.jumps, src: src, mid: src[:once.size], behind: once})
		return
	}
	twice := layers[1]
	mid := once.symbols[:twice.size]
	s.searchSeams(&seam{from, twice.jumps, mid, once, mid, once, twice})
	if once.mixed() {
		s.searchSeams(&seam{from: from, escapes: once.jumps, src: src, mid: mid, midOf: once, behind: twice})
	}
}

// searchSeams searches for the hits of all seams of one kind.
func (s *Scanner) searchSeams(v *seam) {
	at, first := 0, v.midOf == nil
	if first {
		s.joins = slices.Grow(s.joins[:0], len(v.escapes))[:len(v.escapes)]
		clear(s.joins)
	}
	for i := range v.escapes {
		e := &v.escapes[i]
		last := v.src[e.to-1]
		if e.to-e.from == 1 || !s.set.symbols[last] && last != '\\' {
			continue
		}
		r, is := reader{seam: v, at: int(e.to), jump: at}, v.behind.symbols
		if v.srcOf != v.midOf {
			if r.at, is = int(e.at)+1, v.mid; r.at > len(is) {
				return
			}
		}
		r.settle()
		at = r.jump
		// Where the second layer has no escape in what decides, the first one has the same in it.
		if v.srcOf != v.midOf && !s.joins[i] && r.until()-r.at >= maxEscape+gramSize {
			continue
		}
		inside := v.src[e.from+1 : e.to]
		var room [1]byte
		if last == '\\' { // the second of two may begin an escape
			if !r.mayEscape() {
				continue
			}
			if room[0] = r.backslash(); room[0] == '\\' || !s.set.symbols[room[0]] {
				continue
			}
			inside = room[:]
		}
		var ahead [mostAhead]byte
		if !s.mayJoin(inside, is[e.at], r.peek(ahead[:0], gramSize)) {
			continue
		}
		if first {
			s.joins[i] = true
		}
		if s.continues(inside, r.peek(ahead[:0], mostAhead)) {
			s.searchSeam(e, inside, r)
		}
	}
}

// reader reads the symbols behind an escape.
type reader struct {
	*seam
	at   int // in mid
	jump int // the first of behind that ends after at
}

// settle finds the jump.
func (r *reader) settle() {
	for jumps := r.behind.jumps; r.jump < len(jumps) && int(jumps[r.jump].to) <= r.at; r.jump++ {
	}
}

// next returns the next symbol. What is inside of an escape of behind is read as it is.
func (r *reader) next() byte {
	c, n := r.mid[r.at], 1
	if r.jump < len(r.behind.jumps) {
		if j := &r.behind.jumps[r.jump]; int(j.from) == r.at {
			c, n = r.behind.symbols[j.at], int(j.to-j.from)
		} else if int(j.from) < r.at && traits[c]&anywhere != 0 { // the second backslash of two
			c, n = escape(r.mid[r.at:])
		}
	}
	r.at += n
	r.settle()
	return c
}

// until returns where the next escape of behind begins in mid, before r.at if that is inside of it, or the end of mid.
func (r *reader) until() int {
	if r.jump < len(r.behind.jumps) {
		return int(r.behind.jumps[r.jump].from)
	}
	return len(r.mid)
}

// symbol returns the index in behind of the next symbol. The reader is inside of no escape.
func (r *reader) symbol() int {
	if r.jump < len(r.behind.jumps) {
		j := &r.behind.jumps[r.jump]
		return int(j.at) - (int(j.from) - r.at)
	}
	return len(r.behind.symbols) - (len(r.mid) - r.at)
}

// peek returns the next n symbols, or as many as there are. It uses room where they are not those that behind has.
func (r *reader) peek(room []byte, n int) []byte {
	symbols, ahead := r.behind.symbols, *r
	for ahead.until() < ahead.at && len(room) < n && ahead.at < len(r.mid) {
		room = append(room, ahead.next())
	}
	if len(room) == n || ahead.at == len(r.mid) {
		return room
	}
	i := ahead.symbol()
	following := symbols[i:min(i+n-len(room), len(symbols))]
	if len(room) == 0 {
		return following
	}
	return append(room, following...)
}

// skip skips n symbols, or as many as there are.
func (r *reader) skip(n int) {
	if until := r.until(); until >= r.at+n {
		r.at += n
		return
	}
	for ; n > 0 && r.at < len(r.mid); n-- {
		r.next()
	}
}

// mayEscape reports whether a backslash and what follows may encode another byte than a backslash.
func (r *reader) mayEscape() bool {
	if r.at >= len(r.mid) {
		return false
	}
	var room [1]byte
	c := r.peek(room[:0], 1)[0]
	return c != '\\' && follows[c]&inJSON != 0
}

// backslash returns the byte that a backslash and what follows encode, and continues behind it. If
// they are no escape, it is a backslash.
func (r *reader) backslash() byte {
	var room, ahead [maxEscape]byte
	c, n := escape(append(append(room[:0], '\\'), r.peek(ahead[:0], maxEscape-1)...))
	r.skip(n - 1)
	return c
}

// maxEscape is the length of the longest escape, \u{00000041}.
const maxEscape = 12

// mayJoin reports whether the symbols inside of an escape, which encodes is, and those behind it may
// be a hit. Of a hit of Window symbols or more at least seven are behind it: nine bytes of
// an escape at most can be in a hit. If the last byte is what the escape encodes, as in %37, the hit
// is found without the byte before it, or that is in it too.
func (s *Scanner) mayJoin(inside []byte, is byte, following []byte) bool {
	n := 1
	if len(inside) > 1 && foldedCase[inside[len(inside)-1]] == foldedCase[is] {
		n = 2
	}
	most := n
	if s.set.text.lengths != nil || s.set.base64.lengths != nil || s.set.base32.lengths != nil {
		most = min(len(inside), gramSize-1) // a short hit may have fewer symbols behind it
	}
	inside = inside[len(inside)-most:]
	if most == n && len(following) >= gramSize {
		gram := binary.LittleEndian.Uint64(following)<<8 | uint64(inside[n-1])
		if n == 2 {
			gram = gram<<8 | uint64(inside[0])
		}
		h := hash(gram)
		return s.set.text.filter.grams.has(h) || s.set.coded.grams.has(h)
	}
	var room [2 * gramSize]byte
	symbols := append(append(room[:0], inside...), following[:min(len(following), gramSize-n)]...)
	for ; most >= n; most-- {
		if gram := symbols[len(inside)-most:]; len(gram) < gramSize {
			return false
		} else if s.set.text.filter.contains(gram) || s.set.coded.contains(gram) {
			return true
		}
	}
	return false
}

// mostAhead is how many symbols behind an escape are looked at before all of a joint is: those of the
// shortest hit, in two lines.
const mostAhead = Window + 2*gramSize

// continues reports whether all runs of some hit that begins inside of an escape may be in it and in what
// follows. One run alone is in the filter by chance often enough to be sent without end.
func (s *Scanner) continues(inside, following []byte) bool {
	var room [2*maxEscape + mostAhead]byte
	symbols := append(append(room[:0], inside...), following[:min(len(following), mostAhead)]...)
	if at, _ := s.set.text.filter.next(symbols, 0, 0); at < len(inside) {
		return true
	}
	joined := symbols[:len(inside)]
	for _, c := range symbols[len(inside):] {
		if classOf[c]&blank == 0 {
			joined = append(joined, c)
		}
	}
	at, _ := s.set.coded.next(joined, 0, 0)
	return at < len(inside)
}

// searchSeam searches for hits in the symbols inside of an escape and behind it, as they are and without
// white space.
func (s *Scanner) searchSeam(e *jump, inside []byte, r reader) {
	j := &s.joint
	j.symbols, j.places, j.inside = j.symbols[:0], j.places[:0], len(inside)
	for i, c := range inside {
		at := int(e.to) - len(inside) + i
		j.put(c, at, at+1)
	}
	for len(j.symbols) < mostJoint && r.at < len(r.mid) {
		at := r.at
		j.put(r.next(), at, r.at)
	}
	s.searchJoint(r.seam, &s.set.text)
	for joined := true; joined; joined = j.join() {
		s.searchJoint(r.seam, &s.set.base64)
		s.searchJoint(r.seam, &s.set.base32)
	}
}

// searchJoint records what p finds in the joint.
func (s *Scanner) searchJoint(v *seam, p *patterns) {
	j := &s.joint
	p.find(j.symbols, func(a, b int) {
		from, to := j.places[a].from, j.places[b-1].to
		if a < j.inside {
			from, _ = v.srcOf.origin(from, from+1)
		} else {
			from, _ = v.midOf.origin(from, from+1)
		}
		if b <= j.inside {
			_, to = v.srcOf.origin(to-1, to)
		} else {
			_, to = v.midOf.origin(to-1, to)
		}
		s.addHit(v.from+from, v.from+to)
	})
}

// join removes the white space. It reports whether there was any.
func (j *joint) join() bool {
	n, gap := 0, 0
	for i, c := range j.symbols {
		if classOf[c]&blank == 0 {
			gap = 0
		} else if gap++; gap <= maxGap {
			continue
		} else {
			c = separator
		}
		j.symbols[n], j.places[n] = c, j.places[i]
		n++
	}
	joined := n < len(j.symbols)
	j.symbols, j.places = j.symbols[:n], j.places[:n]
	return joined
}

// origin returns where a part of the symbols of l came from; l is nil for the data itself.
func (l *layer) origin(from, to int) (int, int) {
	if l == nil {
		return from, to
	}
	return l.source(from, to, 0)
}
