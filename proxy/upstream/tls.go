package upstream

import (
	"context"
	"crypto/tls"
	"net"
	"time"
)

// tlsDialer connects to hosts over verified TLS.
type tlsDialer struct {
	dial    func(ctx context.Context, hostport string) (*countedConn, error)
	config  *tls.Config // of all hosts; server name and protocols are the connection's
	timeout time.Duration
}

// connect returns a connection to "host:port" whose handshake is complete, and
// the connection below it.
func (d *tlsDialer) connect(
	ctx context.Context, hostport string, protocols ...string,
) (*tls.Conn, *countedConn, error) {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		return nil, nil, err
	}
	raw, err := d.dial(ctx, hostport)
	if err != nil {
		return nil, nil, err
	}
	config := d.config.Clone()
	config.ServerName, config.NextProtos = host, protocols
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		raw.asked.Store(true)
		return new(tls.Certificate), nil // there is none
	}
	secure := tls.Client(raw, config)
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, nil, handshakeFailure(err, raw.asked.Load())
	}
	return secure, raw, nil
}
