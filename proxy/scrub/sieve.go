package scrub

import "encoding/binary"

// sieve finds the places where a hit may begin, in two steps. The runs of 5 symbols of all
// encodings are in one filter, and symbols are looked up in it that are so far apart that
// every hit contains such a run. Around those that are in it, the runs of 8 symbols are
// looked up in another one: a hit consists of them.
type sieve struct {
	samples bloomFilter // of runs of sampleSize symbols
	grams   bloomFilter // of runs of gramSize
	least   int         // the length of the shortest hit
}

const (
	sampleSize = 5
	// sampleMask has the bytes of a sample in a word of eight.
	sampleMask = 1<<(8*sampleSize) - 1
	// usualStride is the stride of sets whose secrets all have Window bytes or more.
	usualStride = Window - sampleSize + 1
)

// newSieve returns a sieve for n symbols. Its shortest hit is to be set.
func newSieve(n int) sieve {
	return sieve{samples: newBloomFilter(n, 16), grams: newBloomFilter(n, 16)}
}

// add adds an encoding of gramSize symbols or more.
func (v *sieve) add(symbols []byte) {
	i := 0
	for ; i+gramSize <= len(symbols); i++ {
		gram := binary.LittleEndian.Uint64(symbols[i:])
		v.samples.putSample(sampleHash(gram))
		v.grams.put(hash(gram))
	}
	for ; i+sampleSize <= len(symbols); i++ {
		v.samples.putSample(sampleHash(eight(symbols, i)))
	}
}

// contains reports whether the run of gramSize symbols at the beginning of at may have been
// added.
func (v *sieve) contains(at []byte) bool { return v.grams.has(hash(binary.LittleEndian.Uint64(at))) }

// containsSample reports whether the run of sampleSize symbols at the beginning of at may have
// been added.
func (v *sieve) containsSample(at []byte) bool {
	gram := uint64(binary.LittleEndian.Uint32(at)) | uint64(at[4])<<32
	return v.samples.hasSample(sampleHash(gram))
}

// eight returns the eight bytes at symbols[i], with zeros behind the end. There are eight
// symbols or more.
func eight(symbols []byte, i int) uint64 {
	if i+8 <= len(symbols) {
		return binary.LittleEndian.Uint64(symbols[i:])
	}
	return binary.LittleEndian.Uint64(symbols[len(symbols)-8:]) >> (8 * (i + 8 - len(symbols)) & 63)
}

// next returns the first place from at on where a hit may begin, or len(symbols). It also
// returns where the run of symbols ends that are known to be in the filter of grams from
// there on: the next call needs to look up only what follows, if it is passed in as known.
func (v *sieve) next(symbols []byte, at, known int) (place, until int) {
	stride, last := v.least-sampleSize, v.least-gramSize
	sampled := at - 1 // a hit may begin before, as far as samples show
	if known > at {
		sampled = at
	}
	for at+v.least <= len(symbols) {
		if at > sampled {
			if sampled = v.sample(symbols, at+stride, stride+1); sampled == len(symbols) {
				break
			}
			at = sampled - stride
			continue
		}
		first, i := max(at, known), at+last
		for i >= first && v.contains(symbols[i:]) {
			i--
		}
		known = at + last + 1
		if i < first {
			return at, known
		}
		at = i + 1
	}
	return len(symbols), 0
}

// sample returns the index, from i on in steps of stride, of the first sample in symbols
// that may have been added, or len(symbols).
func (v *sieve) sample(symbols []byte, i, stride int) int {
	if stride == usualStride {
		// A word is read for each sample, so three more bytes than samples have.
		const group = samplesAtOnce * usualStride
		for n := (len(symbols) - i) / group; n > 0; {
			clean := sampleGroups(symbols[i:], n, &v.samples)
			i += clean * group
			if n -= clean; n == 0 {
				break
			}
			for end := i + group; i < end; i += stride {
				if v.samples.hasSample(sampleHash(binary.LittleEndian.Uint64(symbols[i:]))) {
					return i
				}
			}
			n--
		}
	}
	for ; i+8 <= len(symbols); i += stride {
		if v.samples.hasSample(sampleHash(binary.LittleEndian.Uint64(symbols[i:]))) {
			return i
		}
	}
	for ; i+sampleSize <= len(symbols); i += stride {
		if v.samples.hasSample(sampleHash(eight(symbols, i))) {
			return i
		}
	}
	return len(symbols)
}

// samplesAtOnce is how many samples are looked up before the results are: hits are rare, and
// the loads are independent.
const samplesAtOnce = 4

// sampleGroupsPortable returns what sampleGroups does.
func sampleGroupsPortable(src []byte, groups int, filter *bloomFilter) int {
	words, mask := filter.words, filter.mask
	const group = samplesAtOnce * usualStride
	for n := range groups {
		four := (*[group]byte)(src[n*group:])
		a := sampleHash(binary.LittleEndian.Uint64(four[0:]))
		b := sampleHash(binary.LittleEndian.Uint64(four[usualStride:]))
		c := sampleHash(binary.LittleEndian.Uint64(four[2*usualStride:]))
		d := sampleHash(binary.LittleEndian.Uint64(four[3*usualStride:]))
		ab := words[a>>34&mask]>>(a>>58) | words[b>>34&mask]>>(b>>58)
		cd := words[c>>34&mask]>>(c>>58) | words[d>>34&mask]>>(d>>58)
		if (ab|cd)&1 == 0 {
			continue
		}
		if filter.hasSample(a) || filter.hasSample(b) || filter.hasSample(c) || filter.hasSample(d) {
			return n
		}
	}
	return groups
}
