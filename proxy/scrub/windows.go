package scrub

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
)

// windowTable is a hash table of parts of a text, of gramSize symbols or more. There are hundreds of
// thousands of them: a place takes four bytes, and nothing is copied. Most of what is looked
// up consists of runs of some encoding, and is in no window: two loads suffice to see that.
type windowTable struct {
	seeds [2]uint64 // unknown, so that no parts can be made that collide
	slots []uint32  // twice the place of a part, and one if it is a wide one; 0: none
}

// newWindowTable returns a table for n parts.
func newWindowTable(n int) windowTable {
	seeds := [2]uint64{rand.Uint64(), rand.Uint64()} //nolint:gosec // it protects time only
	return windowTable{seeds: seeds, slots: make([]uint32, 1<<bits.Len(uint(2*n)))}
}

// add adds the part text[place:place+n], unless the table has it. The place is not 0.
func (t *windowTable) add(text []byte, place, n int, wide bool) {
	if i, known := t.slot(text, text[place:place+n], wide); known == 0 {
		t.slots[i] = entry(place, wide)
	}
}

// find returns the place in the text of a part, in any case of its letters, or 0.
func (t *windowTable) find(text, part []byte, wide bool) int {
	_, place := t.slot(text, part, wide)
	return place
}

// slot returns where a part is in the table and in the text. If the table lacks it, it
// returns the slot for it, and 0.
func (t *windowTable) slot(text, part []byte, wide bool) (slot uint64, place int) {
	mask := uint64(len(t.slots)) - 1
	for i := t.hash(part) & mask; ; i = (i + 1) & mask {
		place := int(t.slots[i] / 2)
		if place == 0 || t.slots[i] == entry(place, wide) && beginsWith(text[place:], part) {
			return i, place
		}
	}
}

// hash mixes the first and the last symbols of a part, in any case.
func (t *windowTable) hash(part []byte) uint64 {
	first, last := binary.LittleEndian.Uint64(part), binary.LittleEndian.Uint64(part[len(part)-gramSize:])
	high, low := bits.Mul64((first|oneCase)^t.seeds[0], (last|oneCase)^t.seeds[1])
	return high ^ low
}

// beginsWith reports whether text, which is in lower case, begins with part in any case.
func beginsWith(text, part []byte) bool {
	if len(text) < len(part) {
		return false
	}
	for i, c := range part {
		if text[i] != foldedCase[c] {
			return false
		}
	}
	return true
}

// entry returns the entry of a slot. One part of another width is another part.
func entry(place int, wide bool) uint32 {
	n := uint32(2 * place) //nolint:gosec // some megabytes at most
	if wide {
		n++
	}
	return n
}
