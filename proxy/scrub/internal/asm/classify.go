package main

import (
	. "github.com/mmcloughlin/avo/build"   //nolint:staticcheck // avo reads as assembly this way
	. "github.com/mmcloughlin/avo/operand" //nolint:staticcheck // as above
	"github.com/mmcloughlin/avo/reg"
)

// classifyAVX2 writes the masks of blocks of 64 bytes.
//
// The class of an ASCII byte is looked up by its lowest four bits in eight rows of 16, and the other bits select the
// row. The masks of the eight classes are the bits of these bytes, the highest first.
func classifyAVX2() {
	TEXT("classifyAVX2", NOSPLIT, "func(dst *uint64, src *byte, blocks int, class *uint8)")
	Doc("classifyAVX2 writes the masks of so many blocks at src to dst.")
	Pragma("noescape")
	dst := Load(Param("dst"), GP64())
	src := Load(Param("src"), GP64())
	blocks := Load(Param("blocks"), GP64())
	class := Load(Param("class"), GP64())

	var rows [8]reg.VecVirtual
	for i := range rows {
		rows[i] = YMM()
		VBROADCASTI128(Mem{Base: class, Disp: 16 * i}, rows[i])
	}
	other := YMM() // the class of all bytes that are not ASCII
	VPBROADCASTB(Mem{Base: class, Disp: 0x80}, other)

	Label("block")
	TESTQ(blocks, blocks)
	JZ(LabelRef("done"))
	for half := range 2 {
		x, by := YMM(), YMM()
		VMOVDQU(Mem{Base: src, Disp: 32 * half}, x)
		var at [4]reg.VecVirtual
		VPSLLW(Imm(3), x, by) // bit 4 is the highest of each byte
		for i := range at {
			odd := YMM()
			at[i] = YMM()
			VPSHUFB(x, rows[2*i], at[i])
			VPSHUFB(x, rows[2*i+1], odd)
			VPBLENDVB(by, odd, at[i], at[i])
		}
		VPSLLW(Imm(2), x, by)
		VPBLENDVB(by, at[1], at[0], at[0])
		VPBLENDVB(by, at[3], at[2], at[2])
		VPADDB(x, x, by)
		VPBLENDVB(by, at[2], at[0], at[0])
		VPBLENDVB(x, other, at[0], at[0])
		for k := 7; k >= 0; k-- {
			mask := GP32()
			VPMOVMSKB(at[0], mask)
			MOVL(mask, Mem{Base: dst, Disp: 8*k + 4*half})
			if k > 0 {
				VPADDB(at[0], at[0], at[0])
			}
		}
	}
	ADDQ(Imm(64), src)
	ADDQ(Imm(64), dst)
	DECQ(blocks)
	JMP(LabelRef("block"))
	Label("done")
	VZEROUPPER()
	RET()
}

// classifyAVX512 writes the masks of blocks of 64 bytes as classifyAVX2 does.
//
// The classes of ASCII bytes are looked up in one table. Those of eight bytes are a matrix of 8 by 8 bits, which a
// product with the matrix of ones on the diagonal transposes: a byte of the result has the bits of one class for these
// eight bytes. The last permutation writes those of the same class beside each other.
func classifyAVX512() {
	transposed := GLOBL("transposed", RODATA|NOPTR)
	for k := range 8 {
		for group := range 8 {
			DATA(8*k+group, U8(uint8(8*group+k))) //nolint:gosec // less than 64
		}
	}
	reversed := GLOBL("reversed", RODATA|NOPTR)
	DATA(0, U64(0x0001020304050607))
	DATA(8, U64(0x08090a0b0c0d0e0f))

	TEXT("classifyAVX512", NOSPLIT, "func(dst *uint64, src *byte, blocks int, class *uint8)")
	Doc("classifyAVX512 writes the masks of so many blocks at src to dst.")
	Pragma("noescape")
	dst := Load(Param("dst"), GP64())
	src := Load(Param("src"), GP64())
	blocks := Load(Param("blocks"), GP64())
	class := Load(Param("class"), GP64())

	low, high, other := ZMM(), ZMM(), ZMM()
	VMOVDQU64(Mem{Base: class}, low)
	VMOVDQU64(Mem{Base: class, Disp: 64}, high)
	VPBROADCASTB(Mem{Base: class, Disp: 0x80}, other)
	order, groups, diagonal, ones := ZMM(), ZMM(), ZMM(), GP64()
	VBROADCASTI32X4(reversed, order)
	VMOVDQU64(transposed, groups)
	MOVQ(U64(0x8040201008040201), ones)
	VPBROADCASTQ(ones, diagonal)

	Label("block")
	TESTQ(blocks, blocks)
	JZ(LabelRef("done"))
	x, classes, notASCII := ZMM(), ZMM(), K()
	VMOVDQU64(Mem{Base: src}, x)
	VPSHUFB(order, x, x) // the product has the bits of a byte in the opposite order
	VPMOVB2M(x, notASCII)
	VMOVDQA64(x, classes)
	VPERMI2B(high, low, classes)
	VMOVDQU8(other, notASCII, classes)
	VGF2P8AFFINEQB(Imm(0), classes, diagonal, classes)
	VPERMB(classes, groups, classes)
	VMOVDQU64(classes, Mem{Base: dst})
	ADDQ(Imm(64), src)
	ADDQ(Imm(64), dst)
	DECQ(blocks)
	JMP(LabelRef("block"))
	Label("done")
	VZEROUPPER()
	RET()
}
