package proxy

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/proxy/wire"
)

// isTLSPassthrough reports whether the tunnel to a is passed through as it is:
// not decrypted, without any credential, and recorded. The owner of the session
// configures it for a host whose client pins its certificate. A host that a
// connector names is never passed through.
func (p *Plane) isTLSPassthrough(a Authority) bool {
	return slices.Contains(p.cfg.TLSPassthrough, a.String()) && !p.grants.Load().Index.Covers(a.Host, a.Port)
}

// passThroughTLS splices the client to the upstream. The only thing that is read
// is the ClientHello: its SNI must be the tunnel's host, or a shared front end
// could be asked for another one. Private addresses are denied as everywhere. It
// closes the client's connection.
func (p *Plane) passThroughTLS(ctx context.Context, client net.Conn, a Authority, listener Listener, r *http.Request) {
	defer client.Close()
	stop := endsWith(ctx, client)
	defer stop()
	x := p.newExchange(listener, audit.SourceConnectTLS, a, "", r)
	x.row.Path = ""
	hello, err := clientHello(client)
	switch {
	case err != nil:
		_ = x.reject(deny(reasonNotTLS, "the client does not speak TLS in its tunnel"))
		return
	case hello.name != a.Host:
		_ = x.reject(deny(reasonAuthority, "the client's SNI is not the host of its CONNECT"))
		return
	}
	if d := x.enter(); d != nil {
		_ = x.reject(d)
		return
	}
	hold := p.budget.Conn().Hold(nil)
	defer hold.Release()
	if !hold.Take(wire.Exchange + 2*spliceBuffer) {
		_ = x.reject(denyMemory())
		return
	}
	// It may last for days, so that the intent is recorded as well.
	if d := x.recordIntent(); d != nil {
		_ = x.reject(d)
		return
	}
	server, err := p.upstream.Dial(ctx, a.String())
	if err != nil {
		_ = x.reject(denyUpstream(a.Host, err))
		return
	}
	x.row.Event, x.row.Decision = audit.EventSandboxPassthrough, audit.DecisionPassthrough
	x.row.Reason = ReasonTunnelHost
	var s splice
	defer func() {
		x.row.RequestBytes, x.row.ResponseBytes = s.out.Load(), s.in.Load()
		x.recordAsync()
		x.endCapture()
		x.leave()
	}()
	stop()
	_ = client.SetDeadline(time.Time{})
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	end := func() { _ = client.Close(); _ = server.Close() }
	defer context.AfterFunc(ctx, end)()
	defer context.AfterFunc(p.draining, end)()
	s.run(&prefixedConn{Conn: client, prefix: hello.raw}, server, p.cfg.Limits.Idle)
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
