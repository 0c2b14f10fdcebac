package front

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ALRubinger/aileron/proxy"
	"github.com/ALRubinger/aileron/proxy/wire"
)

// isTLSPassthrough reports whether the tunnel to a is passed through as it is:
// not decrypted, without any credential, and recorded. The owner of the session
// configures it for a host whose client pins its certificate. A host that a
// connector names is never passed through.
func (f *Front) isTLSPassthrough(a proxy.Authority) bool {
	return slices.Contains(f.cfg.TLSPassthrough, a.String()) && !f.plane.Grants().Index.Covers(a.Host, a.Port)
}

// passThroughTLS splices the client to the upstream. The only thing that is read
// is the ClientHello: its SNI must be the tunnel's host, or a shared front end
// could be asked for another one. Private addresses are denied as everywhere. It
// closes the client's connection.
func (f *Front) passThroughTLS(client net.Conn, at proxy.Arrival, r *http.Request) {
	defer client.Close()
	stop := endsWith(at.Life, client)
	defer stop()
	x := f.plane.Begin(at, r)
	hello, err := clientHello(client)
	switch {
	case err != nil:
		_ = x.Reject(proxy.ReasonNotTLS.Deny("the client does not speak TLS in its tunnel"))
		return
	case hello.name != at.Authority.Host:
		_ = x.Reject(proxy.ReasonAuthority.Deny("the client's SNI is not the host of its CONNECT"))
		return
	}
	server, d := f.plane.Connect(at.Life, x, wire.Exchange+2*spliceBuffer)
	if d != nil {
		return
	}
	var s splice
	defer func() { server.End(s.out.Load(), s.in.Load()) }()
	stop()
	_ = client.SetDeadline(time.Time{})
	ctx, cancel := context.WithCancel(at.Life)
	defer cancel()
	end := func() { _ = client.Close(); _ = server.Close() }
	defer context.AfterFunc(ctx, end)()
	defer context.AfterFunc(f.plane.Draining(), end)()
	s.run(&prefixedConn{Conn: client, prefix: hello.raw}, server.Conn, f.cfg.Limits.Idle)
	end()
}

// helloRead is a ClientHello: the SNI, and all bytes that were read.
type helloRead struct {
	name string
	raw  []byte
}

var errHelloRead = errors.New("read the ClientHello: it was read")

// clientHello reads a ClientHello and keeps its bytes.
func clientHello(c net.Conn) (helloRead, error) {
	rec := &recorder{Conn: c}
	var name string
	read := func(h *tls.ClientHelloInfo) (*tls.Config, error) {
		name = h.ServerName
		return nil, errHelloRead
	}
	server := tls.Server(rec, &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: read})
	err := server.Handshake() //nolint:noctx // the caller has set a deadline
	if !errors.Is(err, errHelloRead) {
		return helloRead{}, err
	}
	return helloRead{name: name, raw: rec.seen.Bytes()}, nil
}

// recorder keeps what is read and writes nothing.
type recorder struct {
	net.Conn
	seen bytes.Buffer
}

func (r *recorder) Read(p []byte) (int, error) {
	n, err := r.Conn.Read(p)
	r.seen.Write(p[:n])
	return n, err
}

func (r *recorder) Write(p []byte) (int, error) { return len(p), nil }

// spliceBuffer is how much a splice copies at once, in each direction.
const spliceBuffer = 16 << 10

// activity is when bytes last moved in either direction, by the monotonic
// clock: the wall clock may be set meanwhile.
type activity struct {
	began time.Time
	last  atomic.Int64 // nanoseconds since began
}

func (a *activity) mark()               { a.last.Store(int64(time.Since(a.began))) }
func (a *activity) idle() time.Duration { return time.Since(a.began) - time.Duration(a.last.Load()) }

// splice copies between two connections and counts the bytes of each.
type splice struct {
	out, in atomic.Int64
	moved   activity
}

// run copies in both directions until both have ended, or neither has sent
// anything for idle.
func (s *splice) run(client, upstream net.Conn, idle time.Duration) {
	s.moved.began = time.Now()
	var both sync.WaitGroup
	both.Go(func() { s.pump(upstream, client, &s.out, idle) })
	both.Go(func() { s.pump(client, upstream, &s.in, idle) })
	both.Wait()
}

func (s *splice) pump(to, from net.Conn, n *atomic.Int64, idle time.Duration) {
	buf := make([]byte, spliceBuffer)
	for {
		_ = from.SetReadDeadline(time.Now().Add(idle))
		got, err := from.Read(buf)
		if got > 0 {
			s.moved.mark()
			_ = to.SetWriteDeadline(time.Now().Add(idle))
			if _, err := to.Write(buf[:got]); err != nil {
				break
			}
			n.Add(int64(got))
		}
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() && s.moved.idle() < idle {
			continue // the other direction goes on
		}
		if err == io.EOF {
			if half, ok := to.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
				return
			}
		}
		if err != nil {
			break
		}
	}
	_ = to.Close()
	_ = from.Close()
}
