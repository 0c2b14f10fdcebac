package peer

import (
	"io"
	"net"
	"net/netip"
	"path/filepath"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/must"
)

type half interface {
	net.Conn
	CloseWrite() error
}

// pair is both ends of a connection: the client's, and the accepted one.
func pair(t *testing.T, network, address string) (client half, accepted net.Conn) {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Skipf("listen on %s: %v", address, err)
	}
	defer l.Close()
	c := must.Get(net.Dial(network, l.Addr().String()))(t)
	if accepted, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(); _ = accepted.Close() })
	return c.(half), accepted
}

// wrapped hides the system's connection as TLS does.
type wrapped struct{ inner net.Conn }

func (w wrapped) NetConn() net.Conn { return w.inner }

func TestAHalfCloseIsNoDeparture(t *testing.T) {
	for _, c := range []struct{ network, address string }{
		{"tcp", "127.0.0.1:0"}, {"tcp", "[::1]:0"}, {"tcp", "[::ffff:127.0.0.1]:0"},
		{"unix", filepath.Join(t.TempDir(), "s")},
	} {
		t.Run(c.network+" "+c.address, func(t *testing.T) {
			client, accepted := pair(t, c.network, c.address)
			there := func(when string) {
				t.Helper()
				if Gone(accepted, netip.AddrPort{}) {
					t.Errorf("the peer is gone %s", when)
				}
			}
			there("before anything")
			must.Do(t, client.CloseWrite())
			if _, err := accepted.Read(make([]byte, 1)); err != io.EOF {
				t.Fatal(err)
			}
			there("after its half-close")
			must.Get(accepted.Write([]byte("x")))(t)
			must.Get(io.ReadFull(client, make([]byte, 1)))(t)
			there("after it read a response")
			_ = client.Close()
			until(t, accepted)
		})
	}
}

// until waits for the peer to be known as gone: the kernel may still be closing its
// socket when close returns.
func until(t *testing.T, c net.Conn) {
	t.Helper()
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	deadline := time.After(5 * time.Minute)
	for !Gone(c, netip.AddrPort{}) {
		select {
		case <-again.C:
		case <-deadline:
			t.Fatal("the peer is still there")
		}
	}
}

func TestAClosedOrResetPeerIsGone(t *testing.T) {
	client, accepted := pair(t, "tcp", "127.0.0.1:0")
	_ = client.Close()
	until(t, accepted)

	client, accepted = pair(t, "tcp", "127.0.0.1:0")
	must.Do(t, client.(*net.TCPConn).SetLinger(0))
	_ = client.Close()
	until(t, accepted)

	client, accepted = pair(t, "tcp", "127.0.0.1:0")
	_ = client
	_ = accepted.Close()
	if !Gone(accepted, netip.AddrPort{}) {
		t.Error("a closed connection has a peer")
	}
}

func TestARedirectedPeerIsFoundByTheAddressThatItDialled(t *testing.T) {
	client, accepted := pair(t, "tcp", "127.0.0.1:0")
	dialled := netip.MustParseAddrPort(client.RemoteAddr().String())
	if Gone(accepted, dialled) {
		t.Error("the peer is gone")
	}
	if !Gone(accepted, netip.MustParseAddrPort("127.0.0.1:1")) {
		t.Error("a socket that dialled another address is taken for the peer's")
	}
}

func TestWrappersAreLookedThrough(t *testing.T) {
	client, accepted := pair(t, "tcp", "127.0.0.1:0")
	type tls struct {
		net.Conn
		wrapped
	}
	if Gone(tls{nil, wrapped{accepted}}, netip.AddrPort{}) {
		t.Error("the peer below a wrapper is gone")
	}
	_ = client.Close()
	a, b := net.Pipe()
	defer b.Close()
	if !Gone(a, netip.AddrPort{}) {
		t.Error("a pipe, which has no halves, has a peer after its end")
	}
}
