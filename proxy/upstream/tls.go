package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
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
	secure := tls.Client(raw, config)
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, nil, handshakeFailure(err)
	}
	return secure, raw, nil
}

// handshakeError is returned for a handshake that failed because of what the host
// sent.
type handshakeError struct{ error }

// Unwrap returns the error of crypto/tls.
func (e *handshakeError) Unwrap() error { return e.error }

// handshakeFailure wraps the error of a host that cannot be trusted in a
// handshakeError, and returns that of a connection that broke or took too long
// as it is. crypto/tls has no type for most of the former.
func handshakeFailure(err error) error {
	var network *net.OpError
	if errors.As(err, &network) && (network.Op == "read" || network.Op == "write") {
		return err
	}
	for _, other := range []error{io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, other) {
			return err
		}
	}
	return &handshakeError{err}
}
