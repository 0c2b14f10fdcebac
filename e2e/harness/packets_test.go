package harness

import (
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"syscall"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

// A watch that saw less would make every suite that trusts it green.
func TestPacketsAreSeenWithAndWithoutAListener(t *testing.T) {
	const inside = "AILERON_HARNESS_INSIDE"
	if os.Getenv(inside) == "" {
		TestApart(t, inside+"=1", syscall.CLONE_NEWNET)
		return
	}
	must.Get(Loopback(netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")))(t)
	watch := must.Get(WatchPackets())(t)
	defer watch.Close()
	var want []string
	for _, host := range []string{"192.0.2.1", "2001:db8::1"} {
		l := must.Get(net.Listen("tcp", net.JoinHostPort(host, "8443")))(t)
		defer l.Close()
		for _, to := range []struct{ network, port string }{{"tcp", "8443"}, {"tcp", "9"}, {"udp", "53"}} {
			at := net.JoinHostPort(host, to.port)
			want = append(want, to.network+" "+at)
			if conn, err := net.Dial(to.network, at); err == nil {
				_, _ = io.WriteString(conn, "a stream is one packet")
				_ = conn.Close()
			}
		}
	}
	if conn, err := net.Dial("ip4:253", "192.0.2.1"); err != nil {
		t.Error(err)
	} else {
		_, _ = io.WriteString(conn, "a protocol of its own")
		_ = conn.Close()
	}
	want = append(want, "protocol 253 192.0.2.1")

	packets := must.Get(watch.Take())(t)
	var got []string
	for _, p := range packets {
		if p.Network != "protocol 1" { // the kernel's own "port unreachable"
			got = append(got, p.String())
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("seen: %q, want %q", got, want)
	}
	if again, err := watch.Take(); err != nil || len(again) != 0 {
		t.Errorf("seen again: %v, %v", again, err)
	}
}
