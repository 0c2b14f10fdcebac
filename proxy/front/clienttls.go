package front

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
			return h.front.cfg.CA.Leaf(h.at.Authority.Host)
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
	named, err := hostport.Parse(hello.ServerName, h.at.Authority.Port)
	if err == nil && h.at.Redirected && h.at.Authority.Addr.IsValid() && !named.Addr.IsValid() {
		h.at.Authority = named
	}
	if err != nil || named != h.at.Authority {
		return errServerName
	}
	return nil
}

// tunnelOf returns the tunnel of a handshake.
func tunnelOf(hello *tls.ClientHelloInfo) (*tunnel, error) {
	if c, ok := hello.Conn.(*ciphertext); ok {
		return c.tunnel, nil
	}
	return nil, errors.New("do the handshake: it is of no tunnel")
}
