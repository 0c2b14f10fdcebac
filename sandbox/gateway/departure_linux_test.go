package gateway_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/internal/peer"
)

// The plane sees a client's half-close as one, and the end of a client that is
// gone as the end of the connection, though TCP sends the same for both.
func TestADepartedClientIsToldFromAHalfClosedOne(t *testing.T) {
	sealed(t, func(t *testing.T, b *box) {
		seen := make(chan error, 1)
		look := func(conn net.Conn, r io.Reader) {
			_, _ = io.ReadAll(r)
			if peer.Gone(conn, netip.AddrPort{}) {
				seen <- fmt.Errorf("a half-closed client is gone")
				return
			}
			fmt.Fprint(conn, "here")
			for deadline := time.Now().Add(30 * time.Second); !peer.Gone(conn, netip.AddrPort{}); time.Sleep(5 * time.Millisecond) {
				if time.Now().After(deadline) {
					seen <- fmt.Errorf("a client that closed is still there")
					return
				}
			}
			seen <- nil
		}
		b.explicit = func(conn net.Conn) { look(conn, conn) }
		b.redirect = func(conn net.Conn, r *bufio.Reader) { look(conn, r) }
		b.start()
		for _, to := range []string{"127.0.0.1:3128", "192.0.2.1:80"} {
			conn := b.dial(to)
			if _, err := io.WriteString(conn, "all I want"); err != nil {
				t.Fatal(err)
			}
			_ = conn.(*net.TCPConn).CloseWrite()
			if _, err := io.ReadFull(conn, make([]byte, len("here"))); err != nil {
				t.Errorf("%s: a half-closed client gets no answer: %v", to, err)
			}
			_ = conn.Close()
			if err := <-seen; err != nil {
				t.Errorf("%s: %v", to, err)
			}
		}
	})
}
