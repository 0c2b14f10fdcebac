package scrub

import "golang.org/x/sys/cpu"

//go:generate go run -C internal/asm . -pkg scrub -out ../../kernels_amd64.s

// classify writes the masks of src, which has blockSize bytes for each, to dst.
func classify(dst []masks, src []byte, t *classTables) {
	if !cpu.X86.HasAVX2 || len(dst) == 0 {
		classifyPortable(dst, src, t)
		return
	}
	_ = src[:len(dst)*blockSize]
	if cpu.X86.HasAVX512VBMI && cpu.X86.HasAVX512GFNI && cpu.X86.HasAVX512BW {
		classifyAVX512(&dst[0], &src[0], len(dst), &t.class)
		return
	}
	classifyAVX2(&dst[0], &src[0], len(dst), &t.class)
}

// sampleGroups returns the first of so many groups of samples in src with one that is in the
// filter, or groups. The samples of a group are usualStride apart.
func sampleGroups(src []byte, groups int, filter *bloomFilter) int {
	if !cpu.X86.HasBMI2 || groups == 0 {
		return sampleGroupsPortable(src, groups, filter)
	}
	_ = src[:groups*samplesAtOnce*usualStride]
	return sampleBMI2(&src[0], groups, &filter.words[0], filter.mask)
}

// gather writes the bytes of src whose bits are set, which has blockSize bytes for each mask, to
// dst, one behind the other. It returns their number. There is room for gatherSlack more in dst.
func gather(dst, src []byte, masks []uint64) int {
	if !cpu.X86.HasAVX2 || len(masks) == 0 {
		return gatherPortable(dst, src, masks)
	}
	_ = src[:len(masks)*blockSize]
	return gatherAVX2(&dst[0], &src[0], &masks[0], len(masks))
}

// classifyAVX512 writes the masks of so many blocks at src to dst.
//
//go:noescape
func classifyAVX512(dst *masks, src *byte, blocks int, class *[256]uint8)

// classifyAVX2 does the same.
//
//go:noescape
func classifyAVX2(dst *masks, src *byte, blocks int, class *[256]uint8)

// sampleBMI2 returns what sampleGroups does.
//
//go:noescape
func sampleBMI2(src *byte, groups int, words *uint64, mask uint64) int

// gatherAVX2 returns what gather does.
//
//go:noescape
func gatherAVX2(dst, src *byte, masks *uint64, blocks int) int
