package proxy

import (
	"crypto/rand"
	"crypto/tls"
	"errors"
	"net"
	"slices"

	"github.com/ALRubinger/aileron/internal/hostport"
)

// clientTLS is what the handshakes with clients share. A callback finds its tunnel
// by the connection: a tls.Config for each tunnel would cost a clone. The ticket
// keys are the session's, so that clients resume; every exchange is judged by its
// tunnel's authority all the same, resumed or not.
type clientTLS struct {
	remote *tls.Config
	// local is for clients on this machine. The post-quantum part of the key
	// exchange, a fifth of the handshake's cost, protects what is recorded on a
	// network now and decrypted in many years, and no network carries this.
	local *tls.Config
}

// classical are the key exchanges without a post-quantum part.
var classical = []tls.CurveID{tls.X25519, tls.CurveP256, tls.CurveP384, tls.CurveP521}

func newClientTLS() *clientTLS {
	c := &clientTLS{remote: &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1", "http/1.0"},
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			h, err := tunnelOf(hello)
			if err != nil {
				return nil, err
			}
			return h.p.cfg.CA.Leaf(h.authority.Host)
		},
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			return nil, checkServerName(hello)
		}}}
	var key [32]byte
	_, _ = rand.Read(key[:])
	c.remote.SetSessionTicketKeys([][32]byte{key})
	c.local = c.remote.Clone()
	c.local.CurvePreferences = classical
	c.local.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		known := func(id tls.CurveID) bool { return slices.Contains(classical, id) }
		if !slices.ContainsFunc(hello.SupportedCurves, known) {
			return c.remote, checkServerName(hello) // it insists on the post-quantum part
		}
		return nil, checkServerName(hello)
	}
	return c
}

// forClient returns the configuration for a client's connection.
func (c *clientTLS) forClient(conn net.Conn) *tls.Config {
	switch at := conn.RemoteAddr().(type) {
	case *net.UnixAddr:
		return c.local
	case *net.TCPAddr:
		if at.IP.IsLoopback() {
			return c.local
		}
	}
	return c.remote
}

var errServerName = errors.New("the client's SNI is not the authority of its tunnel")

// checkServerName returns an error unless the client's SNI is the tunnel's
// authority. A client that dialled a bare address, and was redirected, names its
// host with it: the proxy resolves the name, and the address is forgotten.
func checkServerName(hello *tls.ClientHelloInfo) error {
	h, err := tunnelOf(hello)
	if err != nil || hello.ServerName == "" {
		return err
	}
	named, err := hostport.Parse(hello.ServerName, h.authority.Port)
	if err == nil && h.listener.Redirected && h.authority.Addr.IsValid() && !named.Addr.IsValid() {
		h.authority = named
	}
	if err != nil || named != h.authority {
		return errServerName
	}
	return nil
}

// tunnelOf returns the tunnel of a handshake.
func tunnelOf(hello *tls.ClientHelloInfo) (*tunnelHandler, error) {
	if c, ok := hello.Conn.(*ciphertext); ok {
		return c.tunnel, nil
	}
	return nil, errors.New("do the handshake: it is of no tunnel")
}

// crypto/tls puts handshake messages of up to 64 KiB together, during the
// handshake and at any time after it, which the memory budget does not see.
// These are the most that is read from a client without any plain text coming of
// it: all in all, and in whole records once the handshake is over. A ClientHello
// with post-quantum key shares may have 16 KiB.
const (
	mostHandshake = 20 << 10
	mostRecord    = 5 + 16<<10 + 256 // RFC 8446 section 5.2; what TLS 1.2 adds is less
	mostWhole     = 1 << 10
)

var errUnread = errors.New("read TLS: the client's messages are too large")

// ciphertext is a client's connection below TLS.
type ciphertext struct {
	*prefixedConn
	tunnel      *tunnelHandler
	ahead       ahead
	established bool
	came        int // bytes since the last plain text
	whole       int // of them, those of records that have ended

	head [5]byte // of the current record
	n    int     // how much of it has come, its head included
}

func (c *ciphertext) Read(p []byte) (int, error) {
	most := mostHandshake
	if c.established {
		most = mostRecord
	}
	if c.came >= most || c.established && c.whole > mostWhole {
		return 0, errUnread
	}
	n, err := c.ahead.read(p[:min(len(p), most-c.came)], c.prefixedConn)
	c.came += n
	c.follow(p[:n])
	return n, err
}

// Close implements net.Conn.
func (c *ciphertext) Close() error {
	defer c.ahead.release() // not before nothing more can be read ahead
	return c.prefixedConn.Close()
}

// follow counts the records that end in data.
func (c *ciphertext) follow(data []byte) {
	for len(data) > 0 {
		took := 1
		if c.n < len(c.head) {
			c.head[c.n] = data[0]
		} else {
			took = min(len(data), c.size()-c.n)
		}
		data = data[took:]
		if c.n += took; c.n >= len(c.head) && c.n == c.size() {
			c.whole += c.n
			c.n = 0
		}
	}
}

// size returns the length of the current record, whose head is there.
func (c *ciphertext) size() int { return len(c.head) + int(c.head[3])<<8 + int(c.head[4]) }

// understood starts the counts anew: plain text came, or the handshake is over.
func (c *ciphertext) understood() { c.established, c.came, c.whole = true, 0, 0 }

// plaintext is a client's connection whose ciphertext is bounded.
type plaintext struct {
	*tls.Conn
	below *ciphertext
}

func (c *plaintext) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.below.understood()
	}
	return n, err
}
