package scrub

import "net/http"

// Header redacts secrets in every value of h, and removes fields whose names contain
// one. It returns the number of hits.
func (s *Set) Header(h http.Header) int {
	if s == nil || s.isClean(h) {
		return 0
	}
	hits := 0
	for name, values := range h {
		if _, n := s.Text(name); n > 0 {
			delete(h, name)
			hits += n
			continue
		}
		for i, v := range values {
			clean, n := s.Text(v)
			values[i] = clean
			hits += n
		}
	}
	return hits
}

// isClean reports whether no name and no value of h contains a hit, as nearly always. It
// searches all of them as one text, because a search of a few bytes costs more for its
// beginning and its end than for the bytes. When it is in doubt it reports false, and they
// are searched one by one.
func (s *Set) isClean(h http.Header) bool {
	if s.between < 0 {
		return false
	}
	sc := s.borrow()
	defer s.giveBack(sc)
	for name, values := range h {
		if !sc.addText(name) {
			return false
		}
		for _, v := range values {
			if !sc.addText(v) {
				return false
			}
		}
	}
	return !sc.suspects()
}

// addText adds text to the data, and reports false if a hit may be there. Behind it is a byte
// that no hit, no escape and no dump continues across: text is searched as if it were alone.
func (s *Scanner) addText(text string) bool {
	if len(text) < s.set.leastToken { // each symbol of a hit takes a byte or more
		return true
	}
	if len(s.data)+len(text) >= smallPiece {
		if len(text) >= smallPiece || s.suspects() {
			return false
		}
		s.data = s.data[:0]
	}
	s.data = append(append(s.data, text...), byte(s.set.between))
	s.used = max(s.used, len(s.data))
	return true
}

// suspects reports whether the data may contain a hit.
func (s *Scanner) suspects() bool {
	s.beginSearch()
	defer s.endSearch()
	s.scout(true)
	return len(s.regions) > 0 || len(s.hits) > 0
}

// findBetween returns a byte for [Scanner.addText], -1 if these secrets leave none.
func (s *Set) findBetween() int {
	for c, is := range s.separates {
		if is && s.classes.class[c] == 0 {
			return c
		}
	}
	return -1
}
