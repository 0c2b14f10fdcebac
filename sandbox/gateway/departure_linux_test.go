package gateway_test

import (
	"bufio"
	"io"
	"net"
	"net/netip"
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/internal/peer"
)

// A client's half-close arrives at the proxy as a half-close, and the end of a
// client that is gone as the end of the connection, though TCP sends the same for
// both.
func TestADepartedClientIsDistinguishedFromAHalfClosedOne(t *testing.T) {
	sealed(t, func(t *testing.T, b *box) {
		half, done := make(chan net.Conn), make(chan struct{})
		serve := func(conn net.Conn, r io.Reader) {
			_, _ = io.ReadAll(r)
			half <- conn
			<-done
		}
		b.explicit = func(conn net.Conn) { serve(conn, conn) }
		b.redirect = func(conn net.Conn, r *bufio.Reader) { serve(conn, r) }
		b.start()
		for _, to := range []string{"127.0.0.1:3128", "192.0.2.1:80"} {
			client := b.dial(to)
			if _, err := io.WriteString(client, "all I want"); err != nil {
				t.Fatal(err)
			}
			_ = client.(*net.TCPConn).CloseWrite()
			theirs := <-half
			if peer.Gone(theirs, netip.AddrPort{}) {
				t.Errorf("%s: a half-closed client is gone", to)
			}
			if _, err := io.WriteString(theirs, "response"); err != nil {
				t.Errorf("%s: %v", to, err)
			}
			if _, err := io.ReadFull(client, make([]byte, len("response"))); err != nil {
				t.Errorf("%s: a half-closed client has no response: %v", to, err)
			}
			_ = client.Close()
			harness.WaitFor(t, to+": the end of a client that closed", func() bool {
				return peer.Gone(theirs, netip.AddrPort{})
			})
			done <- struct{}{}
		}
	})
}
