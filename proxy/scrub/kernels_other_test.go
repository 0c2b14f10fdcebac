//go:build !amd64

package scrub

// classifiers returns every kernel that this processor can run, besides the one that is chosen for it.
func classifiers() map[string]func([]masks, []byte, *classTables) {
	return map[string]func([]masks, []byte, *classTables){"chosen": classify}
}
