//go:build !race

package protocol

const (
	idleTunnels = 10000
	largeBody   = 500 * mib
)
