//go:build race

package protocol

// The race detector makes the client's handshakes slow.
const idleTunnels = 2000
