package scrub

import (
	"encoding/binary"
	"math/bits"
)

// blockSize is how many bytes one mask covers.
const blockSize = 64

// masks has, for each of eight classes of bytes, one bit for each byte of a block: bit j of
// masks[k] is set if byte j is of class k.
type masks [8]uint64

// classTables is the classes of all bytes. class[c]>>k&1 reports whether byte c is of class
// k. All bytes from 0x80 on have the same classes, so that a kernel needs a table for ASCII
// only.
type classTables struct{ class [256]uint8 }

func newClassTables(class [256]uint8) *classTables { return &classTables{class} }

// is reports whether c is of class k.
func (t *classTables) is(k int, c byte) bool { return t.class[c]>>k&1 != 0 }

// classifyPortable writes the masks of src, which has blockSize bytes for each, to dst.
func classifyPortable(dst []masks, src []byte, t *classTables) {
	class := &t.class
	for b := range dst {
		block := (*[blockSize]byte)(src[b*blockSize:])
		var m0, m1, m2, m3, m4, m5, m6, m7 uint64
		for j := blockSize - 8; j >= 0; j -= 8 {
			at := binary.LittleEndian.Uint64(block[j : j+8])
			x := uint64(class[at&255]) | uint64(class[at>>8&255])<<8 | uint64(class[at>>16&255])<<16 |
				uint64(class[at>>24&255])<<24 | uint64(class[at>>32&255])<<32 | uint64(class[at>>40&255])<<40 |
				uint64(class[at>>48&255])<<48 | uint64(class[at>>56])<<56
			// Transpose the 8 by 8 bits.
			y := (x ^ x>>7) & 0x00aa00aa00aa00aa
			x ^= y ^ y<<7
			y = (x ^ x>>14) & 0x0000cccc0000cccc
			x ^= y ^ y<<14
			y = (x ^ x>>28) & 0x00000000f0f0f0f0
			x ^= y ^ y<<28
			m0, m1, m2, m3 = m0<<8|x&255, m1<<8|x>>8&255, m2<<8|x>>16&255, m3<<8|x>>24&255
			m4, m5, m6, m7 = m4<<8|x>>32&255, m5<<8|x>>40&255, m6<<8|x>>48&255, m7<<8|x>>56
		}
		dst[b] = masks{m0, m1, m2, m3, m4, m5, m6, m7}
	}
}

// gatherSlack is how many bytes behind those that it gathers a kernel may write.
const gatherSlack = 8

// gatherPortable writes the bytes of src whose bits are set, which has blockSize bytes for each
// mask, to dst, one behind the other. It returns their number.
func gatherPortable(dst, src []byte, masks []uint64) int {
	n := 0
	for b, m := range masks {
		block := src[b*blockSize:]
		for ; m != 0; m &= m - 1 {
			dst[n] = block[bits.TrailingZeros64(m)]
			n++
		}
	}
	return n
}
