package gateway_test

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/must"
)

func TestAClientWithoutAProxyReachesTheProxyByName(t *testing.T) {
	sealed(t, func(t *testing.T, b *box) {
		b.start()
		long := strings.Repeat("a", 63) + "." + strings.Repeat("b", 63) + ".test"
		for _, c := range []struct{ name, port, want string }{
			{"example.test", "443", "example.test:443"},
			{"Example.Test", "8443", "example.test:8443"},
			{"example.test", "22", "example.test:22"},
			{"aileron.internal", "80", "aileron.internal:80"},
			{long, "1", long + ":1"},
		} {
			conn := b.dial(net.JoinHostPort(b.address(c.name).String(), c.port))
			if err := exchange(conn, "hello "+c.want); err != nil {
				t.Errorf("%s: %v", c.want, err)
			}
			if got := <-b.targets; got != c.want {
				t.Errorf("%s:%s became CONNECT %s, want %s", c.name, c.port, got, c.want)
			}
		}
	})
}

func TestABareAddressIsNamedAsItIs(t *testing.T) {
	sealed(t, func(t *testing.T, b *box) {
		b.start()
		for _, to := range []string{
			"192.0.2.1:443", "1.1.1.1:22", "169.254.169.254:80", "198.18.200.1:443", "198.19.255.254:80", "10.0.0.1:3128",
		} {
			if err := exchange(b.dial(to), "hello"); err != nil {
				t.Errorf("%s: %v", to, err)
			}
			if got := <-b.targets; got != to {
				t.Errorf("%s became CONNECT %s", to, got)
			}
		}
		// An IPv4-mapped IPv6 address is IPv4.
		if err := exchange(b.dial("[::ffff:192.0.2.7]:443"), "hello"); err != nil {
			t.Error(err)
		}
		if got := <-b.targets; got != "192.0.2.7:443" {
			t.Errorf("the mapped address became CONNECT %s", got)
		}
	})
}

// The kernel has no original destination for an MPTCP connection.
func TestAClientThatSpeaksMPTCPIsRedirectedToo(t *testing.T) {
	sealed(t, func(t *testing.T, b *box) {
		b.start()
		dialer := net.Dialer{Timeout: patience}
		dialer.SetMultipathTCP(true)
		conn := must.Get(dialer.Dial("tcp4", "192.0.2.9:443"))(t)
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(patience))
		if err := exchange(conn, "hello"); err != nil {
			t.Error(err)
		}
		if got := <-b.targets; got != "192.0.2.9:443" {
			t.Errorf("it became CONNECT %s", got)
		}
	})
}

func TestAnExplicitClientIsRelayedRaw(t *testing.T) {
	sealed(t, func(t *testing.T, b *box) {
		b.start()
		if err := exchange(b.dial("127.0.0.1:3128"), "CONNECT x:1 HTTP/1.1\r\n\r\n\x00\xff"); err != nil {
			t.Error(err)
		}
		if len(b.targets) != 0 {
			t.Errorf("an explicit client became CONNECT %s", <-b.targets)
		}
	})
}

func TestEveryResolverIsTheStub(t *testing.T) {
	sealed(t, func(t *testing.T, b *box) {
		b.start()
		want := b.address("example.test")
		for _, network := range []string{"udp", "tcp"} {
			for _, server := range []string{"127.0.0.53:53", "8.8.8.8:53", "10.0.0.1:53"} {
				got, err := resolver(network, server).LookupNetIP(t.Context(), "ip4", "example.test.")
				if err != nil || len(got) != 1 || got[0].Unmap() != want {
					t.Errorf("%s %s: %v, %v, want %s", network, server, got, err, want)
				}
			}
		}
		txt, err := resolver("udp", "9.9.9.9:53").LookupTXT(t.Context(), "secret.exfil.example.")
		var dns *net.DNSError
		if !errors.As(err, &dns) || !dns.IsNotFound {
			t.Errorf("TXT: %q, %v, want nothing", txt, err)
		}
		names, err := resolver("udp", "127.0.0.53:53").LookupAddr(t.Context(), want.String())
		if err != nil || len(names) != 1 || names[0] != "example.test." {
			t.Errorf("the reverse of %s: %q, %v", want, names, err)
		}
	})
}

// It must not time out: clients that try QUIC or IPv6 first have to go on at once.
// A failure that takes longer than patience is a time-out here.
func TestWhatIsNeitherTCPNorDNSFailsAtOnce(t *testing.T) {
	sealed(t, func(t *testing.T, b *box) {
		b.start()
		for _, c := range []struct{ network, to string }{
			{"udp4", "192.0.2.1:443"}, {"udp4", "8.8.8.8:123"}, {"udp4", "169.254.169.254:80"}, {"udp4", "198.18.0.1:443"},
			{"udp6", "[2001:db8::1]:443"}, {"udp6", "[2001:db8::1]:53"},
			{"tcp6", "[2001:db8::1]:443"}, {"tcp6", "[2001:db8::1]:53"},
			{"tcp6", "[fe80::1%lo]:80"}, {"udp6", "[ff02::1%lo]:53"},
			{"ip4:icmp", "192.0.2.1"}, {"ip4:gre", "192.0.2.1"}, {"ip6:ipv6-icmp", "2001:db8::1"},
		} {
			err := send(c.network, c.to)
			if err == nil || isTimeout(err) {
				t.Errorf("%s to %s: %v, want a refusal at once", c.network, c.to, err)
			}
		}
		if len(b.targets) != 0 {
			t.Errorf("something reached the proxy: %s", <-b.targets)
		}
	})
}

// send returns the first error of connecting, sending and waiting for an answer.
func send(network, to string) error {
	conn, err := net.DialTimeout(network, to, patience)
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err = conn.Write([]byte("\x08\x00\xf7\xff\x00\x00\x00\x00")); err != nil {
		return err
	}
	_, err = conn.Read(make([]byte, 64))
	return err
}

func TestLoopbackIsTheSandboxsOwn(t *testing.T) {
	sealed(t, func(t *testing.T, b *box) {
		b.start()
		for _, at := range []string{"127.0.0.1:0", "[::1]:0"} {
			l := must.Get(net.Listen("tcp", at))(t)
			defer l.Close()
			go func() {
				if conn, err := l.Accept(); err == nil {
					echo(conn)
				}
			}()
			if err := exchange(b.dial(l.Addr().String()), "own server"); err != nil {
				t.Errorf("%s: %v", at, err)
			}
		}
		if len(b.targets) != 0 {
			t.Errorf("a connection to the box itself became CONNECT %s", <-b.targets)
		}
	})
}

func TestTheRedirectsOwnPortIsClosed(t *testing.T) {
	sealed(t, func(t *testing.T, b *box) {
		b.start()
		if err := exchange(b.dial("127.0.0.1:15001"), "hello"); err == nil || isTimeout(err) {
			t.Errorf("a connection that was not redirected: %v, want it closed", err)
		}
	})
}
