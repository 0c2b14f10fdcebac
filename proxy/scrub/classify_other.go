//go:build !amd64

package scrub

// classify writes the masks of src, which has blockSize bytes for each, to dst.
func classify(dst []masks, src []byte, t *classTables) { classifyPortable(dst, src, t) }
