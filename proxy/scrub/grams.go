package scrub

import (
	"encoding/binary"
	"math/bits"
)

// gram is what the filters look at: no needle may be shorter.
const gram = 8

// grams is a bitmap over the hashes of all runs of 8 bytes in some needles,
// whatever the case of their letters.
type grams struct {
	bitmap []uint64
	shift  uint
}

// newGrams makes room for n runs: few of its bits are set, two for a run,
// and the map of many secrets still fits a processor's second cache.
func newGrams(n int) grams {
	size := min(max(bits.Len(uint(n))+6, 15), maxGrams)
	return grams{bitmap: make([]uint64, 1<<size/64), shift: uint(64 - size)}
}

func (g *grams) note(at []byte) {
	h := (binary.LittleEndian.Uint64(at) | oneCase) * spread
	first, second := h>>g.shift, h<<second>>g.shift
	g.bitmap[first/64] |= 1 << (first % 64)
	g.bitmap[second/64] |= 1 << (second % 64)
}

// bit is the first of the two bits, in the lowest place.
func (g *grams) bit(at []byte) uint64 {
	h := (binary.LittleEndian.Uint64(at) | oneCase) * spread >> (g.shift & 63)
	return g.bitmap[h/64] >> (h % 64)
}

func (g *grams) has(at []byte) bool {
	h := (binary.LittleEndian.Uint64(at) | oneCase) * spread
	first := h >> g.shift
	if g.bitmap[first/64]&(1<<(first%64)) == 0 {
		return false
	}
	second := h << second >> g.shift
	return g.bitmap[second/64]&(1<<(second%64)) != 0
}

// maxGrams bounds the bitmap to 256 KiB.
const maxGrams = 21

// oneCase makes capital letters small, eight at a time. That some other
// characters fall together costs the filter little.
const oneCase = 0x2020202020202020

// second is where in the product the second bit is looked up.
const second = 20

// spread is 2^64 divided by the golden ratio.
const spread = 0x9e3779b97f4a7c15

// usualStride is that of sets whose secrets all have Window bytes or more.
const usualStride = Window - gram + 1

// surveyUsual is the first loop of surveyGrams at the usual stride, which the
// compiler can then do without checking bounds. It returns how far it came.
func (s *Scanner) surveyUsual() int {
	const reach = 3*usualStride + gram
	data, g := s.data, &s.set.sample
	bitmap, shift := g.bitmap, g.shift&63
	i := 0
	for ; i+reach <= len(data); i += 4 * usualStride {
		four := (*[reach]byte)(data[i:])
		a := (binary.LittleEndian.Uint64(four[0:]) | oneCase) * spread >> shift
		b := (binary.LittleEndian.Uint64(four[usualStride:]) | oneCase) * spread >> shift
		c := (binary.LittleEndian.Uint64(four[2*usualStride:]) | oneCase) * spread >> shift
		d := (binary.LittleEndian.Uint64(four[3*usualStride:]) | oneCase) * spread >> shift
		if (bitmap[a/64]>>(a%64)|bitmap[b/64]>>(b%64)|bitmap[c/64]>>(c%64)|bitmap[d/64]>>(d%64))&1 == 0 {
			continue
		}
		for at := i; at < i+4*usualStride; at += usualStride {
			if g.has(data[at:]) {
				s.spot(at, sampled|broken)
			}
		}
	}
	return i
}
