//go:build !amd64

package scrub

func classify(dst []masks, src []byte, t *classTables) { classifyPortable(dst, src, t) }

func sampleGroups(src []byte, groups int, filter *bloomFilter) int {
	return sampleGroupsPortable(src, groups, filter)
}

func gather(dst, src []byte, masks []uint64) int { return gatherPortable(dst, src, masks) }
