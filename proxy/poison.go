//go:build !race

package proxy

// poisonAll is true in builds with the race detector.
const poisonAll = false
