package scrub

import "golang.org/x/sys/cpu"

//go:generate go run -C internal/asm . -pkg scrub -out ../../classify_amd64.s

// classify writes the masks of src, which has blockSize bytes for each, to dst.
func classify(dst []masks, src []byte, t *classTables) {
	if !cpu.X86.HasAVX2 || len(dst) == 0 {
		classifyPortable(dst, src, t)
		return
	}
	_ = src[:len(dst)*blockSize]
	classifyAVX2(&dst[0], &src[0], len(dst), &t.class)
}

// classifyAVX2 writes the masks of so many blocks at src to dst.
//
//go:noescape
func classifyAVX2(dst *masks, src *byte, blocks int, class *[256]uint8)
