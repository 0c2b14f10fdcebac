package main

import (
	. "github.com/mmcloughlin/avo/build"   //nolint:staticcheck // avo reads as assembly this way
	. "github.com/mmcloughlin/avo/operand" //nolint:staticcheck // as above
	"github.com/mmcloughlin/avo/reg"
)

// These are those of sieve.go and bloom.go.
const (
	usualStride   = 12
	samplesAtOnce = 4
	sampleMask    = 1<<40 - 1
	oneCase       = 0x2020202020202020
	spread        = 0x9e3779b97f4a7c15
	wordAt        = 34
	secondAt      = 52
	firstAt       = 58
)

// sample looks the samples of text up in a filter, four at a time: their loads are independent.
func sample() {
	TEXT("sampleBMI2", NOSPLIT, "func(src *byte, groups int, words *uint64, mask uint64) int")
	Doc("sampleBMI2 returns the first of so many groups of samples at src with one that is in the filter, or groups.")
	Pragma("noescape")
	src := Load(Param("src"), GP64())
	groups := Load(Param("groups"), GP64())
	words := Load(Param("words"), GP64())
	mask := Load(Param("mask"), GP64())
	keep, fold, by, left := GP64(), GP64(), GP64(), GP64()
	MOVQ(U64(sampleMask), keep)
	MOVQ(U64(oneCase), fold)
	MOVQ(U64(spread), by)
	MOVQ(groups, left)

	Label("group")
	TESTQ(left, left)
	JZ(LabelRef("end"))
	var found reg.GPVirtual
	for i := range samplesAtOnce {
		hash, word, second := GP64(), GP64(), GP64()
		MOVQ(Mem{Base: src, Disp: usualStride * i}, hash)
		ANDQ(keep, hash)
		ORQ(fold, hash)
		IMULQ(by, hash)
		RORXQ(Imm(wordAt), hash, word)
		ANDQ(mask, word)
		MOVQ(Mem{Base: words, Index: word, Scale: 8}, word)
		RORXQ(Imm(secondAt), hash, second)
		SHRXQ(second, word, second)
		RORXQ(Imm(firstAt), hash, hash)
		SHRXQ(hash, word, word)
		ANDQ(second, word)
		if i == 0 {
			found = word
		} else {
			ORQ(word, found)
		}
	}
	TESTQ(U32(1), found)
	JNZ(LabelRef("end"))
	ADDQ(Imm(usualStride*samplesAtOnce), src)
	DECQ(left)
	JMP(LabelRef("group"))
	Label("end")
	SUBQ(left, groups)
	Store(groups, ReturnIndex(0))
	RET()
}
