package scrub

import "golang.org/x/sys/cpu"

// classifiers returns every kernel that this processor can run, besides the one that is chosen for it.
func classifiers() map[string]func([]masks, []byte, *classTables) {
	kernels := map[string]func([]masks, []byte, *classTables){"chosen": classify}
	if cpu.X86.HasAVX2 {
		kernels["AVX2"] = func(dst []masks, src []byte, t *classTables) {
			if len(dst) > 0 {
				classifyAVX2(&dst[0], &src[0], len(dst), &t.class)
			}
		}
	}
	return kernels
}
