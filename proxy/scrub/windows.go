package scrub

import (
	"bytes"
	"hash/maphash"
	"math/bits"
)

// windowTable is a hash table of the fragments of a text. There are hundreds of thousands of
// them: a place takes four bytes, and nothing is copied.
type windowTable struct {
	seed  maphash.Seed
	slots []uint32 // twice the place of a fragment, and one if it is a wide one; 0: none
}

// newWindowTable returns a table for n fragments.
func newWindowTable(n int) windowTable {
	return windowTable{seed: maphash.MakeSeed(), slots: make([]uint32, 1<<bits.Len(uint(n+n/2)))}
}

// add adds the fragment text[place:place+n], unless the table has it. The place is not 0.
func (t *windowTable) add(text []byte, place, n int, wide bool) {
	if i, known := t.slot(text, text[place:place+n], wide); known == 0 {
		t.slots[i] = entry(place, wide)
	}
}

// find returns the place of a fragment in the text, or 0.
func (t *windowTable) find(text, fragment []byte, wide bool) int {
	_, place := t.slot(text, fragment, wide)
	return place
}

// slot returns where a fragment is in the table and in the text. If the table lacks it, it
// returns the slot for it, and 0.
func (t *windowTable) slot(text, fragment []byte, wide bool) (slot uint64, place int) {
	mask := uint64(len(t.slots)) - 1
	for i := maphash.Bytes(t.seed, fragment) & mask; ; i = (i + 1) & mask {
		place := int(t.slots[i] / 2)
		if place == 0 || t.slots[i] == entry(place, wide) && bytes.HasPrefix(text[place:], fragment) {
			return i, place
		}
	}
}

// entry returns the entry of a slot. One fragment of another width is another fragment.
func entry(place int, wide bool) uint32 {
	n := uint32(2 * place) //nolint:gosec // some megabytes at most
	if wide {
		n++
	}
	return n
}
