package proxy

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

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/proxy/wire"
)

// bypasses reports a host whose client pins its certificate, so that the
// owner of the session has it tunnelled as it is: not decrypted, without any
// credential, written down. A host that a connector names is never bypassed.
func (p *Plane) bypasses(a Authority) bool {
	return slices.Contains(p.cfg.Tunnel, a.String()) && !p.grants.Load().Index.Covers(a.Host, a.Port)
}

// bypass joins the client to the upstream. The only thing that is read is the
// ClientHello: its SNI must be the tunnel's host, or a shared front end could
// be asked for another one. The address floor holds as everywhere.
func (p *Plane) bypass(ctx context.Context, client net.Conn, a Authority, door Door, r *http.Request) {
	x := p.newExchange(door, audit.SourceConnectTLS, a, "", r)
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
	if !hold.Take(wire.Exchange + 2*jointPiece) {
		_ = x.reject(exhausted())
		return
	}
	// It may last for days, so that it is written down before as well.
	if d := x.intend(); d != nil {
		_ = x.reject(d)
		return
	}
	upstream, err := p.upstream.Dial(ctx, a.String())
	if err != nil {
		_ = x.reject(upstreamDenial(a.Host, err))
		return
	}
	x.row.Event, x.row.Decision, x.row.Reason = audit.EventSandboxPassthrough, audit.DecisionPassthrough, noteTunnel
	var j joint
	defer func() {
		x.row.RequestBytes, x.row.ResponseBytes = j.out.Load(), j.in.Load()
		x.note()
		x.leave()
	}()
	_ = client.SetDeadline(time.Time{})
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	end := func() { _ = client.Close(); _ = upstream.Close() }
	defer context.AfterFunc(ctx, end)()
	defer context.AfterFunc(p.draining, end)()
	j.run(&peeked{Conn: client, first: hello.raw}, upstream, p.cfg.Limits.Idle)
	end()
}

type helloRead struct {
	name string
	raw  []byte
}

var errHelloRead = errors.New("read the ClientHello: it was read")

// clientHello reads a ClientHello and keeps its bytes.
func clientHello(c net.Conn) (helloRead, error) {
	rec := &recorder{Conn: c}
	var name string
	err := tls.Server(rec, &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
		name = h.ServerName
		return nil, errHelloRead
	}}).Handshake() //nolint:noctx // the caller has set a deadline
	if !errors.Is(err, errHelloRead) {
		return helloRead{}, err
	}
	return helloRead{name: name, raw: rec.seen.Bytes()}, nil
}

// recorder keeps what is read and says nothing.
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

// jointPiece is how much a joint copies at once, in each direction.
const jointPiece = 16 << 10

// activity is when bytes last moved in either direction, by the monotonic
// clock: the wall clock may be set meanwhile.
type activity struct {
	began time.Time
	last  atomic.Int64 // nanoseconds since began
}

func (a *activity) mark()               { a.last.Store(int64(time.Since(a.began))) }
func (a *activity) idle() time.Duration { return time.Since(a.began) - time.Duration(a.last.Load()) }

// joint joins two connections and counts what each says.
type joint struct {
	out, in atomic.Int64
	moved   activity
}

// run copies in both directions until both have ended, or neither says
// anything for idle.
func (j *joint) run(client, upstream net.Conn, idle time.Duration) {
	j.moved.began = time.Now()
	var both sync.WaitGroup
	both.Go(func() { j.copy(upstream, client, &j.out, idle) })
	both.Go(func() { j.copy(client, upstream, &j.in, idle) })
	both.Wait()
}

func (j *joint) copy(to, from net.Conn, n *atomic.Int64, idle time.Duration) {
	buf := make([]byte, jointPiece)
	for {
		_ = from.SetReadDeadline(time.Now().Add(idle))
		got, err := from.Read(buf)
		if got > 0 {
			j.moved.mark()
			_ = to.SetWriteDeadline(time.Now().Add(idle))
			if _, err := to.Write(buf[:got]); err != nil {
				break
			}
			n.Add(int64(got))
		}
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() && j.moved.idle() < idle {
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
