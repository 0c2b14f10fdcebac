//go:build race

package protocol

// The race detector makes the clients here slow.
const (
	idleTunnels = 2000
	largeBody   = 150 * mib
)
