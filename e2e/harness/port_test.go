package harness

import (
	"fmt"
	"net"
	"testing"
)

func TestAFreePortIsNoneThatTheKernelGives(t *testing.T) {
	first, last := ephemeralPorts()
	if first < 1 || last <= first {
		t.Fatalf("the kernel gives the ports from %d to %d", first, last)
	}
	for range 50 {
		port := FreePort(t)
		if first > 10_000 && port >= first && port <= last {
			t.Errorf("the port %d is one of those from %d to %d", port, first, last)
		}
		l, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			t.Fatalf("the port is not free: %v", err)
		}
		defer l.Close() // the next one is another
	}
}
