package scrub

import (
	"encoding/binary"
	"math/bits"
)

// gramSize is the length of the runs in a filter: no encoding may be shorter.
const gramSize = 8

// bloomFilter is a Bloom filter of runs of symbols, in any case of their letters. Both
// bits of a run are in one word, so that a lookup is one load.
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

// put adds the run with this hash.
func (g *bloomFilter) put(h uint64) { g.words[h&g.mask] |= pair(h) }

// has reports whether the run with this hash may have been added.
func (g *bloomFilter) has(h uint64) bool {
	both := pair(h)
	return g.words[h&g.mask]&both == both
}

// sampleHash mixes the sampleSize bytes at the beginning of a word, whatever their case. Only
// its higher bits depend on all of them: see putSample.
func sampleHash(gram uint64) uint64 { return (gram&sampleMask | oneCase) * spread }

// putSample adds the run with this hash to a filter of samples. The bits that choose the word,
// and those in it, are the same for each size of the filter: kernels shift by constants.
func (g *bloomFilter) putSample(h uint64) { g.words[h>>34&g.mask] |= pair(h) }

// hasSample reports whether the run with this hash may have been added.
func (g *bloomFilter) hasSample(h uint64) bool {
	word := g.words[h>>34&g.mask]
	return word>>(h>>58)&(word>>(h>>52&63))&1 != 0
}

// addShort adds the run of four bytes at the beginning of at, to a filter of such runs.
func (g *bloomFilter) addShort(at []byte) { g.put(hash(uint64(binary.LittleEndian.Uint32(at)))) }

// hasShort reports whether the run of four bytes at the beginning of at may have been added.
func (g *bloomFilter) hasShort(at []byte) bool {
	return g.has(hash(uint64(binary.LittleEndian.Uint32(at))))
}
