package scrub

import (
	"encoding/binary"
	"math/bits"
)

// gramSize is the length of the runs in a filter: no encoding may be shorter.
const gramSize = 8

// bloomFilter is a Bloom filter of all runs of 8 bytes in some encodings, in any case of
// their letters. Both bits of a run are in one word, so that a lookup is one load.
type bloomFilter struct {
	words []uint64 // a power of two
	mask  uint64   // their number less one
}

// newBloomFilter returns a filter for n runs with so many bits for each. At most 2 MiB
// are used, which fits a second- or third-level cache; beyond that, more runs seem to be in it.
func newBloomFilter(n, bitsEach int) bloomFilter {
	size := min(max(bits.Len(uint(n*bitsEach/64)), 6), maxFilterBits)
	return bloomFilter{words: make([]uint64, 1<<size), mask: 1<<size - 1}
}

// maxFilterBits bounds the number of words of a filter, as a power of two.
const maxFilterBits = 18

// oneCase converts eight letters to lower case at once. That it also merges some
// other characters costs the filter little.
const oneCase = 0x2020202020202020

// spread is 2^64 divided by the golden ratio.
const spread = 0x9e3779b97f4a7c15

// hash mixes eight bytes, whatever their case, so that every bit depends on all of them.
func hash(gram uint64) uint64 {
	high, low := bits.Mul64(gram|oneCase, spread)
	return high ^ low
}

// pair returns the two bits of a hash.
func pair(h uint64) uint64 { return 1<<(h>>58) | 1<<(h>>52&63) }

// add adds the run at the beginning of at.
func (g *bloomFilter) add(at []byte) {
	h := hash(binary.LittleEndian.Uint64(at))
	g.words[h&g.mask] |= pair(h)
}

// contains reports whether the run at the beginning of at may have been added.
func (g *bloomFilter) contains(at []byte) bool {
	h := hash(binary.LittleEndian.Uint64(at))
	both := pair(h)
	return g.words[h&g.mask]&both == both
}

// addShort adds the run of four bytes at the beginning of at, to a filter of such runs.
func (g *bloomFilter) addShort(at []byte) {
	h := hash(uint64(binary.LittleEndian.Uint32(at)))
	g.words[h&g.mask] |= pair(h)
}

// hasShort reports whether the run of four bytes at the beginning of at may have been added.
func (g *bloomFilter) hasShort(at []byte) bool {
	h := hash(uint64(binary.LittleEndian.Uint32(at)))
	both := pair(h)
	return g.words[h&g.mask]&both == both
}

// next returns the index, from i on in steps of stride, of the first run in data that may
// have been added, or a larger index than that of any run.
func (g *bloomFilter) next(data []byte, i, stride int) int {
	if stride == usualStride {
		words, mask := g.words, g.mask
		const reach = 3*usualStride + gramSize
		for ; i+reach <= len(data); i += 4 * usualStride {
			// Four at a time: hits are rare, and the four loads are independent.
			four := (*[reach]byte)(data[i:])
			a := hash(binary.LittleEndian.Uint64(four[0:]))
			b := hash(binary.LittleEndian.Uint64(four[usualStride:]))
			c := hash(binary.LittleEndian.Uint64(four[2*usualStride:]))
			d := hash(binary.LittleEndian.Uint64(four[3*usualStride:]))
			if (words[a&mask]>>(a>>58)|words[b&mask]>>(b>>58)|words[c&mask]>>(c>>58)|words[d&mask]>>(d>>58))&1 == 0 {
				continue
			}
			for at := i; at < i+4*usualStride; at += usualStride {
				if g.contains(data[at:]) {
					return at
				}
			}
		}
	}
	for ; i+gramSize <= len(data); i += stride {
		if g.contains(data[i:]) {
			break
		}
	}
	return i
}

// run returns the first and the last of the runs in a row around the one at data[i] that may
// have been added: up to stride, itself included, in either direction.
func (g *bloomFilter) run(data []byte, i, stride int) (first, last int) {
	first, last = i, i
	for first > max(0, i-stride+1) && g.contains(data[first-1:]) {
		first--
	}
	for last < i+stride-1 && last+1+gramSize <= len(data) && g.contains(data[last+1:]) {
		last++
	}
	return first, last
}

// usualStride is the stride of sets whose secrets all have Window bytes or more.
const usualStride = Window - gramSize + 1
