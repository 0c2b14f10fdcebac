package proxy

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"testing"
	"testing/iotest"
	"time"
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

// A ClientHello that is too large ends its tunnel, and its row has the reason.
func TestALargeHandshakeIsRefused(t *testing.T) {
	w := newWorld(t, nil)
	conn := w.connect("api.good.example")
	hello := append([]byte{22, 3, 1, 0x60, 0, 1, 0, 0xff, 0xff}, make([]byte, mostHandshake)...)
	_, _ = conn.Write(hello)
	_, _ = io.Copy(io.Discard, conn)
	w.eventually(func() bool { return len(w.outcomes()) == 1 })
	if row := w.outcomes()[0]; Reason(row.Reason) != reasonTLSClient || row.Host != "api.good.example" {
		t.Errorf("the row says %s for %s", row.Reason, row.Host)
	}
}

// A client that stops in its handshake is closed, and its row says that it was slow, not
// that it does not trust the session.
func TestASlowHandshakeIsClosedAsSlow(t *testing.T) {
	var w *world
	// On a busy machine what begins the handshake may come when its time is over: then it has no row.
	for limit := 200 * time.Millisecond; w == nil || len(w.outcomes()) == 0; limit *= 2 {
		if limit > testPatience {
			t.Fatal("a handshake that stops has no row")
		}
		w = newWorldWith(t, false, func(c *Config) { c.Limits.Handshake = limit }, hello)
		conn := w.connect("api.good.example")
		_, err := io.WriteString(conn, "\x16\x03\x01\x02\x00\x01")
		must(t, err)
		_, _ = io.Copy(io.Discard, conn)
		w.eventually(func() bool { return len(w.plane.slots) == 0 }) // it is over, and recorded
	}
	if row := w.outcomes()[0]; Reason(row.Reason) != reasonSlow || row.Host != "api.good.example" {
		t.Errorf("the row says %s for %s", row.Reason, row.Host)
	}
}

// A client on a busy machine takes as long for its handshake and for a head as one that
// is idle may: a limit of seconds would end it, and bounds nothing that Idle does not.
func TestABusyMachineIsNoSlowClient(t *testing.T) {
	l := Limits{}.withDefaults()
	if l.Wire = l.Wire.WithDefaults(); l.Handshake < l.Wire.Idle || l.Wire.Header < l.Wire.Idle {
		t.Errorf("a handshake has %v, a head %v, an idle client %v", l.Handshake, l.Wire.Header, l.Wire.Idle)
	}
}

// A handshake has no context of its own: the end of the session must end it all the
// same, long before its time-out.
func TestTheEndOfASessionEndsHandshakes(t *testing.T) {
	var open []net.Conn
	t.Cleanup(func() { // after that of the world, which waits for Serve
		for _, conn := range open {
			_ = conn.Close()
		}
	})
	w := newWorldWith(t, false, func(c *Config) { c.Limits.Handshake = time.Hour }, hello)
	for _, sent := range []string{"", "\x16", "\x16\x03\x01\x02\x00\x01"} {
		conn := w.connect("api.good.example")
		open = append(open, conn)
		_, err := io.WriteString(conn, sent)
		must(t, err)
	}
	w.tunnel("api.good.example")
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
	w := newWorld(t, hello)
	for offered, want := range map[tls.CurveID]tls.CurveID{0: tls.X25519, tls.X25519MLKEM768: tls.X25519MLKEM768,
		tls.CurveP256: tls.CurveP256} {
		cfg := &tls.Config{ServerName: "api.good.example", RootCAs: w.trusted(), MinVersion: tls.VersionTLS12}
		if offered != 0 {
			cfg.CurvePreferences = []tls.CurveID{offered}
		}
		conn := tls.Client(w.connect("api.good.example"), cfg)
		must(t, conn.Handshake())
		if got := conn.ConnectionState().CurveID; got != want {
			t.Errorf("with a client that offers %v, the key exchange is %v, want %v", offered, got, want)
		}
		_ = conn.Close()
	}
}
