// Command asm writes the assembly of proxy/scrub. It is a module of its own: what it is made of is no dependency of
// the program, and no build needs it. go generate ./proxy/scrub runs it.
package main

import (
	. "github.com/mmcloughlin/avo/build"   //nolint:staticcheck // avo reads as assembly this way
	. "github.com/mmcloughlin/avo/operand" //nolint:staticcheck // as above
	"github.com/mmcloughlin/avo/reg"
)

func main() {
	ConstraintExpr("amd64")
	classify()
	Generate()
}

// classify writes the masks of blocks of 64 bytes.
//
// The class of an ASCII byte is looked up by its lowest four bits in eight rows of 16, and the other bits select the
// row. The masks of the eight classes are the bits of these bytes, the highest first.
func classify() {
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
