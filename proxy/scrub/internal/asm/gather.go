package main

import (
	"math/bits"

	. "github.com/mmcloughlin/avo/build"   //nolint:staticcheck // avo reads as assembly this way
	. "github.com/mmcloughlin/avo/operand" //nolint:staticcheck // as above
)

// gather writes the bytes of some blocks whose bits are set in their masks one behind the other, eight bytes at a time:
// a table has the shuffle for each mask of eight.
func gather() {
	shuffles := GLOBL("shuffles", RODATA|NOPTR)
	for mask := range 256 {
		order := uint64(0)
		for m, n := mask, 0; m != 0; m, n = m&(m-1), n+1 {
			order |= uint64(bits.TrailingZeros(uint(m))) << (8 * n) //nolint:gosec // less than 256
		}
		DATA(8*mask, U64(order))
	}

	TEXT("gatherAVX2", NOSPLIT, "func(dst *byte, src *byte, masks *uint64, blocks int) int")
	Doc("gatherAVX2 writes the bytes at src whose bits are set to dst, and up to eight more. It returns their number.")
	Pragma("noescape")
	dst := Load(Param("dst"), GP64())
	src := Load(Param("src"), GP64())
	masks := Load(Param("masks"), GP64())
	blocks := Load(Param("blocks"), GP64())
	table, start := GP64(), GP64()
	LEAQ(shuffles, table)
	MOVQ(dst, start)

	Label("block")
	TESTQ(blocks, blocks)
	JZ(LabelRef("done"))
	mask := GP64()
	MOVQ(Mem{Base: masks}, mask)
	for i := range 8 {
		eight, n, x, order := GP64(), GP64(), XMM(), XMM()
		MOVBQZX(mask.As8(), eight)
		VMOVQ(Mem{Base: src, Disp: 8 * i}, x)
		VMOVQ(Mem{Base: table, Index: eight, Scale: 8}, order)
		VPSHUFB(order, x, x)
		VMOVQ(x, Mem{Base: dst})
		POPCNTQ(eight, n)
		ADDQ(n, dst)
		if i < 7 {
			SHRQ(Imm(8), mask)
		}
	}
	ADDQ(Imm(64), src)
	ADDQ(Imm(8), masks)
	DECQ(blocks)
	JMP(LabelRef("block"))
	Label("done")
	SUBQ(start, dst)
	Store(dst, ReturnIndex(0))
	RET()
}
