package front

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/proxy"
)

type piecesOf struct {
	net.Conn
	r io.Reader
}

func (c piecesOf) Read(p []byte) (int, error) { return c.r.Read(p) }

// What a client sends without plain text coming of it is bounded: before the
// handshake is over, in one record, and in many.
func TestCiphertextWithoutPlaintextIsBounded(t *testing.T) {
	record := func(n int) []byte { return append([]byte{23, 3, 3, byte(n >> 8), byte(n)}, make([]byte, n)...) }
	var small []byte
	for range 100 {
		small = append(small, record(100)...)
	}
	for name, c := range map[string]struct {
		established bool
		data        []byte
		least, most int
	}{
		"a handshake":               {false, record(32 << 10), mostHandshake, mostHandshake},
		"a record that is too long": {true, record(40 << 10), mostRecord, mostRecord},
		"many records":              {true, small, mostWhole, mostWhole + 1024},
		"a record and another":      {true, append(record(2000), record(2000)...), 2005, 2005 + 1024},
	} {
		for how, reader := range map[string]func(io.Reader) io.Reader{"whole": func(r io.Reader) io.Reader { return r },
			"bytes": iotest.OneByteReader} {
			below := &ciphertext{prefixedConn: &prefixedConn{}, established: c.established}
			client, server := net.Pipe()
			go func() { _, _ = client.Write(c.data) }()
			below.Conn = piecesOf{server, reader(server)}
			n, buf := 0, make([]byte, 512)
			var err error
			for k := 0; err == nil; n += k {
				k, err = below.Read(buf)
			}
			if n < c.least || n > c.most || !errors.Is(err, errUnread) {
				t.Errorf("%s, %s: %d bytes were read, want %d to %d; %v", name, how, n, c.least, c.most, err)
			}
			below.understood()
			if k, err := below.Read(buf[:1]); err != nil && n < len(c.data) {
				t.Errorf("%s, %s: it does not go on: %d, %v", name, how, k, err)
			}
			_ = client.Close()
		}
	}
}

// addressedConn is a connection from an address.
type addressedConn struct {
	net.Conn
	at net.Addr
}

func (c addressedConn) RemoteAddr() net.Addr { return c.at }

func TestOnlyClientsOnThisMachineGoWithoutPostQuantum(t *testing.T) {
	c := newClientTLS()
	for at, local := range map[net.Addr]bool{
		&net.UnixAddr{Name: "proxy.sock"}:                 true,
		&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}: true,
		&net.TCPAddr{IP: net.IPv6loopback, Port: 1}:       true,
		&net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1}: false,
		&net.TCPAddr{IP: net.ParseIP("fe80::1"), Port: 1}: false,
		&net.IPAddr{IP: net.IPv4(127, 0, 0, 1)}:           false,
	} {
		if got := c.forClient(addressedConn{at: at}) == c.local; got != local {
			t.Errorf("a client at %s %s is local: %t, want %t", at.Network(), at, got, local)
		}
	}
	s := newSession(t, Listener{}, unchanged)
	for offered, want := range map[tls.CurveID]tls.CurveID{0: tls.X25519, tls.X25519MLKEM768: tls.X25519MLKEM768,
		tls.CurveP256: tls.CurveP256} {
		cfg := &tls.Config{ServerName: "api.good.example", RootCAs: s.trusted(), MinVersion: tls.VersionTLS12}
		if offered != 0 {
			cfg.CurvePreferences = []tls.CurveID{offered}
		}
		conn := tls.Client(s.connect("api.good.example:443"), cfg)
		must.Do(t, conn.Handshake())
		if got := conn.ConnectionState().CurveID; got != want {
			t.Errorf("with a client that offers %v, the key exchange is %v, want %v", offered, got, want)
		}
		_ = conn.Close()
	}
}

// A handshake that fails ends its tunnel, and its row has the reason: one that stops was slow, and is not that of a
// client that does not trust the session.
func TestAHandshakeThatFailsHasItsReason(t *testing.T) {
	for sent, want := range map[string]proxy.Reason{
		"\x16\x03\x01\x60\x00\x01\x00\xff\xff" + strings.Repeat("\x00", mostHandshake): proxy.ReasonTLSClient,
		"\x16\x03\x01\x02\x00\x01": proxy.ReasonSlow,
	} {
		var got []audit.Row
		// On a busy machine what begins the handshake may come when its time is over: then it has no row.
		for limit := 200 * time.Millisecond; len(got) == 0; limit *= 2 {
			if limit > testPatience {
				t.Fatal("the handshake has no row")
			}
			s := newSession(t, Listener{}, func(c *proxy.Config) { c.Limits.Handshake = limit })
			conn := s.connect("api.good.example:443")
			_, _ = io.WriteString(conn, sent)
			_, _ = io.Copy(io.Discard, conn)
			s.end()
			got = s.list()
		}
		if proxy.Reason(got[0].Reason) != want || got[0].Host != "api.good.example" {
			t.Errorf("the row says %s for %s, want %s", got[0].Reason, got[0].Host, want)
		}
	}
}

// A handshake has no context of its own: the end of the session must end it all the
// same, long before its time-out.
func TestTheEndOfASessionEndsHandshakes(t *testing.T) {
	s := newSession(t, Listener{}, unchanged)
	for _, sent := range []string{"", "\x16", "\x16\x03\x01\x02\x00\x01"} {
		must.Get(io.WriteString(s.connect("api.good.example:443"), sent))(t)
	}
	s.end()
}

// cutConn fails one write before its last bytes, as a deadline does while a client does not read.
type cutConn struct {
	net.Conn
	cutNext bool
}

func (c *cutConn) Write(p []byte) (int, error) {
	if !c.cutNext {
		return c.Conn.Write(p)
	}
	c.cutNext = false
	n, _ := c.Conn.Write(p[:len(p)-9])
	return n, os.ErrDeadlineExceeded
}

// A client whose connection is cut in a record sees an end, not a record that was tampered with.
func TestACutRecordIsNotCompletedByAnAlert(t *testing.T) {
	origin := httptest.NewTLSServer(nil)
	defer origin.Close()
	theirs, ours := net.Pipe()
	cut := &cutConn{Conn: ours}
	below := &ciphertext{prefixedConn: &prefixedConn{Conn: cut}}
	server := &plaintext{tls.Server(below, &tls.Config{Certificates: origin.TLS.Certificates}), below}
	go func() {
		_, _ = io.WriteString(server, "a whole record")
		cut.cutNext = true
		_, _ = io.WriteString(server, strings.Repeat("a record whose end is missing ", 30))
		_ = server.Close()
	}()
	client := tls.Client(theirs, &tls.Config{RootCAs: origin.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs,
		ServerName: "example.com"})
	got, err := io.ReadAll(client)
	if string(got) != "a whole record" || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("the client reads %q, %v; want one record, and the end of a connection in the second", got, err)
	}
}
