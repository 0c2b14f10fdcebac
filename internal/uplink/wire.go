package uplink

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"syscall"
	"time"
)

// Kind is what a client's connection is for: which of the plane's listeners accepts it.
type Kind byte

// The kinds. Clients that are configured for a proxy use Proxy; connections that were meant for a server are preceded
// by a CONNECT and go to Redirect.
const (
	Proxy    Kind = 'P'
	Redirect Kind = 'R'
)

// The first byte that the dialling side sends.
const (
	purposeHello  = 'H' // the plane introduces itself, and both sides see whether the other lives
	purposeStream = 'S' // followed by the plane's instance: one client
)

const (
	taken         = 'K' // the plane's answer to the kind of a client
	instanceSize  = 8   // bytes, written in hexadecimal
	maxMessage    = 6 << 20
	maxFiles      = 4 << 20
	handshakeTime = 10 * time.Second
	beatTime      = 5 * time.Second
	silence       = 4 * beatTime
)

// hello is how a plane introduces itself.
type hello struct {
	Instance string            `json:"instance"`
	Files    map[string][]byte `json:"files,omitempty"`
	Ports    []uint16          `json:"ports,omitempty"`
}

// verdict is the relay's response to a hello.
type verdict struct {
	Error string `json:"error,omitempty"`
}

// hello returns the message of this plane with files.
func (u *Uplink) hello(files map[string][]byte) ([]byte, error) {
	size := 0
	for name, data := range files {
		if !isFileName(name) {
			return nil, fmt.Errorf("open the uplink: %q is no name of a file", name)
		}
		size += len(data)
	}
	if size > maxFiles {
		return nil, fmt.Errorf("open the uplink: its files have %d bytes, at most %d", size, maxFiles)
	}
	return json.Marshal(hello{Instance: u.instance, Files: files, Ports: u.cfg.Ports})
}

// isFileName reports whether the name is one of a file in a directory, and an ordinary one.
func isFileName(name string) bool {
	for _, r := range name {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '.' && r != '-' && r != '_' {
			return false
		}
	}
	return name != "" && name[0] != '.' && len(name) <= 64
}

// introduce sends the plane's hello, and returns the relay's objection. Until left is called, Publish ends conn.
func (u *Uplink) introduce(conn *tls.Conn) (left func(), err error) {
	u.mu.Lock()
	files := u.files
	u.controls[conn] = true
	u.mu.Unlock()
	left = func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		delete(u.controls, conn)
	}
	if err := u.introduceWith(conn, files); err != nil {
		left()
		return nil, err
	}
	return left, nil
}

func (u *Uplink) introduceWith(conn *tls.Conn, files map[string][]byte) error {
	message, err := u.hello(files)
	if err != nil {
		return err
	}
	_ = conn.SetDeadline(time.Now().Add(3 * handshakeTime)) // the relay tries whether it reaches this plane
	defer func() { _ = conn.SetDeadline(time.Time{}) }()
	if err := writeMessage(conn, message); err != nil {
		return err
	}
	reply, err := readMessage(conn)
	if err != nil {
		return err
	}
	var v verdict
	if err := json.Unmarshal(reply, &v); err != nil {
		return fmt.Errorf("read the relay's response: %w", err)
	}
	if v.Error != "" {
		return fmt.Errorf("the relay refuses this plane: %s", v.Error)
	}
	return nil
}

func writeMessage(w io.Writer, data []byte) error {
	_, err := w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(data))), data...)) //nolint:gosec // bounded
	return err
}

func readMessage(r io.Reader) ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > maxMessage {
		return nil, fmt.Errorf("a message has %d bytes, at most %d", n, maxMessage)
	}
	data := make([]byte, n)
	_, err := io.ReadFull(r, data)
	return data, err
}

// beat sends a byte every few seconds and returns when none has come for a while, or the connection has ended.
func beat(conn net.Conn) error {
	ended := make(chan struct{})
	var sending sync.WaitGroup
	sending.Go(func() {
		tick := time.NewTicker(beatTime)
		defer tick.Stop()
		for {
			select {
			case <-ended:
				return
			case <-tick.C:
			}
			_ = conn.SetWriteDeadline(time.Now().Add(silence))
			if _, err := conn.Write([]byte{0}); err != nil {
				return // the reader sees it too
			}
		}
	})
	defer sending.Wait()
	defer close(ended)
	buf := make([]byte, 16)
	for {
		_ = conn.SetReadDeadline(time.Now().Add(silence))
		if _, err := conn.Read(buf); err != nil {
			return fmt.Errorf("the connection has ended: %w", err)
		}
	}
}

// isInstance reads the instance of a stream's plane, and reports whether it is want.
func isInstance(conn *tls.Conn, want string) bool {
	_ = conn.SetReadDeadline(time.Now().Add(handshakeTime))
	defer func() { _ = conn.SetReadDeadline(time.Time{}) }()
	got := make([]byte, 2*instanceSize)
	_, err := io.ReadFull(conn, got)
	return err == nil && string(got) == want
}

// connect dials, authenticates both sides, and sends what the connection is for.
func connect(ctx context.Context, address string, c *tls.Config, purpose byte) (*tls.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTime)
	defer cancel()
	d := net.Dialer{KeepAliveConfig: keepAlive}
	raw, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	conn := tls.Client(raw, c)
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, fmt.Errorf("authenticate %s: %s", address, refusal(err))
	}
	_ = conn.SetWriteDeadline(time.Now().Add(handshakeTime))
	if _, err := conn.Write([]byte{purpose}); err != nil {
		_ = raw.Close()
		return nil, err
	}
	_ = conn.SetWriteDeadline(time.Time{})
	return conn, nil
}

// keepAlive finds a peer that is gone without a word in a minute.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 15 * time.Second, Count: 3}

// maxHandshakes may be under way at once; more wait in the kernel.
const maxHandshakes = 256

// serveTLS authenticates each connection of l and has it served, until l is closed. It returns when all have ended,
// which they do when ctx does.
func serveTLS(
	ctx context.Context, l net.Listener, c *tls.Config, refused *complaints, serve func(*tls.Conn, byte),
) {
	slots := make(chan struct{}, maxHandshakes)
	var running sync.WaitGroup
	defer running.Wait()
	for {
		raw, err := l.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) || ctx.Err() != nil {
				return
			}
			refused.note("", err.Error())
			if wait(ctx, 20*time.Millisecond) != nil { // of descriptors, for now
				return
			}
			continue
		}
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			_ = raw.Close()
			return
		}
		running.Go(func() {
			conn, purpose, err := authenticate(ctx, raw, c)
			<-slots
			if err != nil {
				_ = raw.Close()
				if ctx.Err() == nil && !isProbe(err) {
					refused.note(raw.RemoteAddr().String(), refusal(err))
				}
				return
			}
			stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
			defer stop()
			serve(conn, purpose)
		})
	}
}

// isProbe reports whether a client has connected and sent nothing, as a probe of a port does.
func isProbe(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) }

// authenticate makes the handshake and reads the purpose of a connection.
func authenticate(ctx context.Context, raw net.Conn, c *tls.Config) (*tls.Conn, byte, error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTime)
	defer cancel()
	if tcp, ok := raw.(*net.TCPConn); ok {
		_ = tcp.SetKeepAliveConfig(keepAlive)
	}
	conn := tls.Server(raw, c)
	if err := conn.HandshakeContext(ctx); err != nil {
		return nil, 0, err
	}
	_ = conn.SetReadDeadline(time.Now().Add(handshakeTime))
	var purpose [1]byte
	if _, err := io.ReadFull(conn, purpose[:]); err != nil {
		return nil, 0, err
	}
	_ = conn.SetReadDeadline(time.Time{})
	if purpose[0] != purposeHello && purpose[0] != purposeStream {
		return nil, 0, fmt.Errorf("the purpose %q is not known", purpose[0])
	}
	return conn, purpose[0], nil
}

// complaints logs refused clients, at most ten in ten seconds: an unauthenticated client must not fill the log.
type complaints struct {
	log    *slog.Logger
	mu     sync.Mutex
	since  time.Time
	noted  int
	silent int
}

func (c *complaints) note(from, why string) {
	const most, period = 10, 10 * time.Second
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.since) > period {
		if c.silent > 0 {
			c.log.Warn("more clients of the uplink were refused", "clients", c.silent)
		}
		c.since, c.noted, c.silent = now, 0, 0
	}
	if c.noted++; c.noted > most {
		c.silent++
		return
	}
	c.log.Warn("a client of the uplink was refused", "from", from, "reason", why)
}

// listener accepts the connections that it is given.
type listener struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
	addr  net.Addr
}

func newListener() *listener {
	return &listener{conns: make(chan net.Conn), done: make(chan struct{}), addr: &net.TCPAddr{}}
}

func (l *listener) deliver(conn net.Conn) {
	select {
	case l.conns <- conn:
	case <-l.done:
		_ = conn.Close()
	}
}

// Accept returns the next client's connection.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close ends Accept. The uplink stays until it is closed itself.
func (l *listener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

// Addr is the address to which the relay connects, if it does.
func (l *listener) Addr() net.Addr { return l.addr }

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
