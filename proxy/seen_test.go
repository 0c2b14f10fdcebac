package proxy

import (
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
)

// seenListener keeps the connections that it accepts, so that a test can wait
// for what the plane has read of them.
type seenListener struct {
	net.Listener
	mu    sync.Mutex
	conns map[string]*seenConn // by the client's address, the last of each
}

func (l *seenListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	seen := &seenConn{Conn: c}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conns == nil {
		l.conns = map[string]*seenConn{}
	}
	l.conns[clientOf(c.RemoteAddr())] = seen
	return seen, nil
}

// clientOf names a client by its address. Those of unix sockets have none.
func clientOf(a net.Addr) string {
	if a.Network() == "unix" {
		return "unix"
	}
	return a.String()
}

// of returns the plane's end of a client's connection.
func (l *seenListener) of(client net.Conn) *seenConn {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.conns[clientOf(client.LocalAddr())]
}

// seenConn is the plane's end of a connection.
type seenConn struct {
	net.Conn
	read    atomic.Int64 // bytes
	reading atomic.Bool  // it waits for more
}

func (c *seenConn) Read(p []byte) (int, error) {
	c.reading.Store(true)
	n, err := c.Conn.Read(p)
	c.reading.Store(false) // before read: who sees all bytes read and reading set sees the next Read
	c.read.Add(int64(n))
	return n, err
}

// NetConn is how the plane finds the socket.
func (c *seenConn) NetConn() net.Conn { return c.Conn }

// CloseWrite ends the plane's half.
func (c *seenConn) CloseWrite() error {
	return c.Conn.(interface{ CloseWrite() error }).CloseWrite() // TCP or a unix socket
}

// sentConn is a client's end, which counts what it sends.
type sentConn struct {
	net.Conn
	sent atomic.Int64
}

func (c *sentConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.sent.Add(int64(n))
	return n, err
}

// NetConn is the socket.
func (c *sentConn) NetConn() net.Conn { return c.Conn }

// CloseWrite ends the client's half.
func (c *sentConn) CloseWrite() error {
	return c.Conn.(interface{ CloseWrite() error }).CloseWrite() // TCP or a unix socket
}

// taken waits until the plane has read all that a client of w.connect has
// sent, and waits for more.
func (w *world) taken(client net.Conn) {
	w.t.Helper()
	sent, seen := w.endsOf(client)
	w.eventually(func() bool { return seen.read.Load() == sent.sent.Load() && seen.reading.Load() })
}

// halfClosed waits until the plane has read the end of a client's half, which
// is the last that it sent.
func (w *world) halfClosed(client *tls.Conn) {
	w.t.Helper()
	sent, seen := w.endsOf(client.NetConn())
	w.eventually(func() bool { return seen.read.Load() == sent.sent.Load() })
}

// endsOf returns both ends of a connection.
func (w *world) endsOf(client net.Conn) (*sentConn, *seenConn) {
	w.t.Helper()
	if secure, ok := client.(*tls.Conn); ok {
		client = secure.NetConn()
	}
	sent, ok := client.(*sentConn)
	if !ok {
		w.t.Fatalf("%T does not count what it sends", client)
	}
	return sent, w.seenOf(client)
}

func (w *world) seenOf(client net.Conn) *seenConn {
	w.t.Helper()
	for _, l := range w.listeners {
		if seen := l.of(client); seen != nil {
			return seen
		}
	}
	w.t.Fatalf("the plane has no connection of %s", client.LocalAddr())
	return nil
}
