package harness

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"testing"
)

// FreePort returns a port of 127.0.0.1 on which nothing listens. It is none of those that the kernel gives to
// connections, or to listeners that ask for any port: one of these can be taken again before a program listens on it,
// by whatever runs beside the test.
func FreePort(t testing.TB) int {
	t.Helper()
	first, last := ephemeralPorts()
	const lowest, below = 10_000, 10_000
	for range 100 {
		port := 0
		if first > lowest {
			port = first - 1 - rand.IntN(min(below, first-lowest))
		} else if last < 65_535 {
			port = last + 1 + rand.IntN(65_535-last)
		} // else the kernel gives all of them
		l, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		port = l.Addr().(*net.TCPAddr).Port
		_ = l.Close()
		return port
	}
	t.Fatal("no port is free")
	return 0
}

// ephemeralPorts returns the first and the last port that the kernel gives away; see ip(7).
func ephemeralPorts() (first, last int) {
	text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err == nil {
		_, err = fmt.Sscan(string(text), &first, &last)
	}
	if err != nil {
		return 32_768, 60_999 // the kernel's default
	}
	return first, last
}
