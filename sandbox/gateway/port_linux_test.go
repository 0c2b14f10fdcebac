package gateway

import (
	"net"
	"net/netip"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

// Node's servers listen on the first address of localhost, which is ::1 in a sandbox.
func TestAPortOfEitherLoopbackAddressIsReached(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Skip("this machine has no such address: ", err)
		}
		port := netip.MustParseAddrPort(l.Addr().String()).Port()
		conn := must.Get(dialPort(t.Context(), port))(t)
		if got := conn.RemoteAddr().String(); got != l.Addr().String() {
			t.Errorf("it reached %s, want %s", got, l.Addr())
		}
		_, _ = conn.Close(), l.Close()
		if _, err := dialPort(t.Context(), port); err == nil {
			t.Errorf("%s: a port on which nothing listens is reached", address)
		}
	}
}
