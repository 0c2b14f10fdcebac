// Package carrier lets a sandbox on an engine that no socket of this host reaches have its sockets all the same: an
// engine in a virtual machine, or on another machine.
//
// [Run] is the program of a container in that engine. It serves the sockets of a gateway, and carries each connection
// over its standard streams, which the engine's API attaches to this host. There, [Serve] connects it with the socket
// of the same name in the session's directory. The proxy stays on this host with all that it knows; what passes
// through the engine is what the sandbox sends and receives.
//
// The stream is HTTP/2 with the carrier as its client: a request a connection, its body what the sandbox sends. The
// response is in frames of a length and as many bytes. A length of 0 is the end of that direction, so that the other
// may go on, and a reset of the request is one of the connection.
package carrier

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Sockets are the names of the sockets that are carried, as the gateway knows them.
var Sockets = [...]string{"proxy.sock", "redirect.sock", "ports.sock"}

// isCarried reports whether a socket of this name is carried.
func isCarried(name string) bool { return slices.Contains(Sockets[:], name) }

const (
	// frameHead is the length of a frame, before its bytes.
	frameHead = 4
	maxFrame  = 64 << 10

	// maxConnections is more than a gateway opens: it would wait for another one's end otherwise.
	maxConnections = 8 << 10
	// streamWindow and connectionWindow bound what waits for a reader. Who does not read for long holds others up, of
	// the same sandbox.
	streamWindow     = 256 << 10
	connectionWindow = 128 << 20
)

// limits are those of HTTP/2 on both sides.
func limits() *http.HTTP2Config {
	return &http.HTTP2Config{MaxConcurrentStreams: maxConnections, MaxReadFrameSize: maxFrame,
		MaxReceiveBufferPerStream: streamWindow, MaxReceiveBufferPerConnection: connectionWindow}
}

// plain is HTTP/2 without TLS: the engine's API protects the stream, or nothing does.
func plain() *http.Protocols {
	p := &http.Protocols{}
	p.SetUnencryptedHTTP2(true)
	return p
}

// writeFrame writes a frame with p, which has room for its head in front.
func writeFrame(w io.Writer, p []byte) error {
	binary.BigEndian.PutUint32(p, uint32(len(p)-frameHead)) //nolint:gosec // at most maxFrame
	_, err := w.Write(p)
	return err
}

// readFrames copies the bytes of frames to w until the frame of the end.
func readFrames(w io.Writer, r io.Reader) error {
	var head [frameHead]byte
	buf := make([]byte, maxFrame)
	for {
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return err
		}
		n := binary.BigEndian.Uint32(head[:])
		if n == 0 {
			return nil
		}
		if n > maxFrame {
			return errors.New("a frame of the carrier is too long")
		}
		if _, err := io.ReadFull(r, buf[:n]); err != nil {
			return err
		}
		if _, err := w.Write(buf[:n]); err != nil {
			return err
		}
	}
}

// stream is a byte stream as a connection. It ends when it is closed, or cannot be read.
type stream struct {
	io.Reader
	io.Writer
	once  sync.Once
	ended chan struct{}
	close func()
}

func newStream(r io.Reader, w io.Writer, close func()) *stream {
	return &stream{Reader: r, Writer: w, ended: make(chan struct{}), close: close}
}

// Read reads from the stream.
func (s *stream) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if err != nil {
		_ = s.Close()
	}
	return n, err
}

// Close closes the stream, once.
func (s *stream) Close() error {
	s.once.Do(func() { close(s.ended); s.close() })
	return nil
}

type address struct{}

func (address) Network() string { return "carrier" }
func (address) String() string  { return "carrier" }

// LocalAddr and RemoteAddr are of no meaning.
func (*stream) LocalAddr() net.Addr  { return address{} }
func (*stream) RemoteAddr() net.Addr { return address{} }

// SetDeadline and its like do nothing: what waits for this stream ends with it.
func (*stream) SetDeadline(time.Time) error      { return nil }
func (*stream) SetReadDeadline(time.Time) error  { return nil }
func (*stream) SetWriteDeadline(time.Time) error { return nil }
