package scrub

import (
	"encoding/binary"
	"math/bits"
)

// gramSize is the length of the runs in a filter: no encoding may be shorter.
const gramSize = 8

// bloomFilter is a Bloom filter of all runs of 8 bytes in some encodings, in any case of
// their letters.
type bloomFilter struct {
	bitmap []uint64
	shift  uint
}

// newBloomFilter returns a filter for n runs, with two bits for each. Few of its bits are
// set, and that of many secrets still fits a processor's second-level cache.
func newBloomFilter(n int) bloomFilter {
	size := min(max(bits.Len(uint(n))+6, 15), maxFilterBits)
	return bloomFilter{bitmap: make([]uint64, 1<<size/64), shift: uint(64 - size)}
}

// add adds the run at the beginning of at.
func (g *bloomFilter) add(at []byte) {
	h := (binary.LittleEndian.Uint64(at) | oneCase) * spread
	first, second := h>>g.shift, h<<second>>g.shift
	g.bitmap[first/64] |= 1 << (first % 64)
	g.bitmap[second/64] |= 1 << (second % 64)
}

// bit returns the first of a run's two bits, in the lowest place.
func (g *bloomFilter) bit(at []byte) uint64 {
	h := (binary.LittleEndian.Uint64(at) | oneCase) * spread >> (g.shift & 63)
	return g.bitmap[h/64] >> (h % 64)
}

// contains reports whether the run at the beginning of at may have been added.
func (g *bloomFilter) contains(at []byte) bool {
	h := (binary.LittleEndian.Uint64(at) | oneCase) * spread
	first := h >> g.shift
	if g.bitmap[first/64]&(1<<(first%64)) == 0 {
		return false
	}
	second := h << second >> g.shift
	return g.bitmap[second/64]&(1<<(second%64)) != 0
}

// maxFilterBits bounds the bitmap to 256 KiB.
const maxFilterBits = 21

// oneCase converts eight letters to lower case at once. That it also merges some
// other characters costs the filter little.
const oneCase = 0x2020202020202020

// second is the offset of the second bit's index in the product.
const second = 20

// spread is 2^64 divided by the golden ratio.
const spread = 0x9e3779b97f4a7c15

// usualStride is the stride of sets whose secrets all have Window bytes or more.
const usualStride = Window - gramSize + 1

// prefilterUsual is the first loop of prefilterSamples at the usual stride, for which the
// compiler omits the bounds checks. It returns the index that it has reached.
func (s *Scanner) prefilterUsual() int {
	const reach = 3*usualStride + gramSize
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
			if g.contains(data[at:]) {
				s.addCandidate(at, sampled|broken)
			}
		}
	}
	return i
}
