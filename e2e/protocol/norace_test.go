//go:build !race

package protocol

const idleTunnels = 10000
