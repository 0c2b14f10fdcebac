//go:build !race

package proxy

// racing is whether the race detector is on, which takes memory of its own.
const racing = false
