package scrub

import "slices"

// addRegion records that a decoding of data[from:to] contains a hit.
func (s *Scanner) addRegion(from, to int) {
	from, to = max(0, from-margin), min(len(s.data), to+margin)
	if n := len(s.regions); n > 0 && s.regions[n-1].touches(from, s.apart) && s.regions[n-1].from <= from {
		s.regions[n-1].to = max(s.regions[n-1].to, to)
		return
	}
	s.regions = append(s.regions, region{from, to, s.apart})
}

// region is data[from:to], which is to be searched in every decoding.
type region struct {
	from, to int
	apart    bool // also with the escapes of each syntax decoded by themselves
}

// touches reports whether r and a region that begins at from, not before r, are searched as one.
func (r region) touches(from int, apart bool) bool { return from <= r.to && apart == r.apart }

// margin is how much of the data around a hit is searched with it: the rest of the secret
// may be there in another encoding.
const margin = 128

// searchRegions finds the hits in all regions.
func (s *Scanner) searchRegions(final bool) {
	if len(s.regions) == 0 {
		return
	}
	slices.SortFunc(s.regions, func(a, b region) int {
		if a.apart != b.apart {
			return int(bit(0, a.apart)) - int(bit(0, b.apart))
		}
		return a.from - b.from
	})
	for i := 0; i < len(s.regions); {
		r := s.regions[i]
		for i++; i < len(s.regions) && r.touches(s.regions[i].from, s.regions[i].apart); i++ {
			r.to = max(r.to, s.regions[i].to)
		}
		kinds := escaped | broken | dumped
		if r.apart {
			kinds |= apart
		}
		var ignored tail
		s.doubt = span{}
		s.searchRegion(r.from, r.to, kinds, final, &ignored)
		if d := s.doubt; d.to > d.from {
			s.searchRegion(d.from, d.to, escaped|apart, final, &ignored)
		}
	}
}
