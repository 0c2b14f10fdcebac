package scrub

import "slices"

// addRegion records that a dump in data[from:to] contains a hit.
func (s *Scanner) addRegion(from, to int) {
	from, to = max(0, from-margin), min(len(s.data), to+margin)
	if n := len(s.regions); n > 0 && s.regions[n-1].from <= from && from <= s.regions[n-1].to {
		s.regions[n-1].to = max(s.regions[n-1].to, to)
		return
	}
	s.regions = append(s.regions, span{from: from, to: to})
}

// margin is how much of the data around a hit is searched with it.
const margin = 128

// searchRegions finds the hits in the regions with dumps.
func (s *Scanner) searchRegions(final bool) {
	slices.SortFunc(s.regions, func(a, b span) int { return a.from - b.from })
	for i := 0; i < len(s.regions); {
		r := s.regions[i]
		for i++; i < len(s.regions) && s.regions[i].from <= r.to; i++ {
			r.to = max(r.to, s.regions[i].to)
		}
		s.searchDumps(r.from, r.to, final || r.to < len(s.data))
	}
}

// searchDumps records the hits in the dumps of data[from:to], as they are and behind escapes.
func (s *Scanner) searchDumps(from, to int, final bool) {
	for _, v := range [...]*view{&s.raws, &s.onceView, &s.hexes, &s.decimals} {
		v.final = final
	}
	var ignored tail
	s.raws.raw(s.data, from, to)
	s.undump(&s.raws, &ignored)
	if familiesIn(s.raws.symbols) != 0 {
		s.onceView.decode(&s.raws, anywhere)
		s.undump(&s.onceView, &ignored)
	}
}
