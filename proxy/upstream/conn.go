package upstream

import (
	"errors"
	"net"
	"os"
	"sync/atomic"
	"syscall"
)

// countedConn counts the bytes of a connection: a request of which none was written
// did not arrive, and may be sent again.
type countedConn struct {
	net.Conn
	written atomic.Int64
	read    atomic.Int64
	reset   atomic.Bool // its peer reset it, which only one of reading and writing sees
	asked   atomic.Bool // its host asked for a certificate of its client
	shut    bool        // Read reads nothing, as after a deadline; its reader's own
	release func()      // releases its descriptor; nil: it has none
	onClose func()      // nil: nothing is to be done
	outbox  *outbox     // of a connection of HTTP/2; nil: pieces are written as they come
}

// Close implements net.Conn.
func (c *countedConn) Close() error {
	err := c.Conn.Close()
	if c.release != nil {
		c.release()
	}
	if c.onClose != nil {
		c.onClose()
	}
	return err
}

// CloseWrite ends the outbound half where the connection can.
func (c *countedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// Read implements net.Conn.
func (c *countedConn) Read(p []byte) (int, error) {
	if c.shut {
		return 0, os.ErrDeadlineExceeded // TLS does not keep this error
	}
	n, err := c.Conn.Read(p)
	c.read.Add(int64(n))
	c.noteReset(err)
	return n, err
}

// Write implements net.Conn.
func (c *countedConn) Write(p []byte) (int, error) {
	if c.outbox != nil {
		if taken, err := c.outbox.put(p); err != nil {
			return 0, err
		} else if taken {
			return len(p), nil
		}
	}
	return c.write(p)
}

// send writes what waited in the outbox. The writer of a piece does not learn that
// this failed: the connection is closed, which its reader notices.
func (c *countedConn) send(p []byte) (int, error) {
	n, err := c.write(p)
	if err != nil {
		_ = c.Conn.Close()
	}
	return n, err
}

func (c *countedConn) write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.written.Add(int64(n))
	c.noteReset(err)
	return n, err
}

func (c *countedConn) noteReset(err error) {
	if err != nil && errors.Is(err, syscall.ECONNRESET) {
		c.reset.Store(true)
	}
}
