package proxy

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/proxy/modify"
	"github.com/ALRubinger/aileron/proxy/websocket"
	"github.com/ALRubinger/aileron/proxy/wire"
)

// asksForUpgrade reports whether the request asks to leave HTTP for a WebSocket or
// something else. An h2c offer (RFC 7540 section 3.2) is only dropped.
func (x *Exchange) asksForUpgrade() bool {
	return wire.HasToken(x.request.Header, "Connection", "upgrade") && x.request.Header.Get("Upgrade") != "" &&
		!wire.HasToken(x.request.Header, "Upgrade", "h2c") && x.request.Method == http.MethodGet
}

// admitUpgrade checks the form of a request that was allowed to leave HTTP.
// Only a WebSocket may, by RFC 6455 section 4.2.1 to the letter.
func (x *Exchange) admitUpgrade() *Denial {
	h := x.request.Header
	key, err := base64.StdEncoding.DecodeString(h.Get("Sec-Websocket-Key"))
	switch {
	case x.row.Source == audit.SourceForwardHTTP, x.row.Source == audit.SourceRequestBoundary,
		x.request.ProtoMajor != 1, len(h["Upgrade"]) != 1 || !strings.EqualFold(h["Upgrade"][0], "websocket"):
		return ReasonUpgrade.Deny("the only upgrade that is relayed is that to a WebSocket, inside a tunnel")
	case len(h["Sec-Websocket-Version"]) != 1 || h["Sec-Websocket-Version"][0] != "13":
		return ReasonUpgrade.Deny("the WebSocket's version is not 13")
	case err != nil, len(key) != 16, len(h["Sec-Websocket-Key"]) != 1:
		return ReasonMalformed.Deny("the WebSocket's key is not one of 16 bytes")
	}
	x.websocket = modify.NewWebSocket(h, x.credentialed())
	return nil
}

// switched returns the response with a body that relays, when it is written.
func (x *Exchange) switched(res *http.Response) *http.Response {
	x.row.Event, x.row.Decision = audit.EventProxyProxied, audit.DecisionUpgrade
	if x.match.Operation == nil {
		x.row.Event = audit.EventSandboxPassthrough
	}
	res.Body = &Upgraded{ReadWriteCloser: res.Body.(io.ReadWriteCloser), x: x}
	return res
}

// Upgraded is the body of a response that switched protocols.
type Upgraded struct {
	io.ReadWriteCloser
	x *Exchange
}

// Serve takes over the client's connection and relays until one side ends it, the
// session does, or its grant is withdrawn.
func (u *Upgraded) Serve(w *wire.ResponseWriter, res *http.Response) {
	x := u.x
	relay := &websocket.Relay{Upstream: u.ReadWriteCloser}
	x.relayInTurns(relay)
	reason := Reason("")
	shed := make(chan struct{})
	account, once := x.p.budget.Conn(), sync.OnceFunc(func() { close(shed) })
	relay.ToClient, relay.ToUpstream = account.Hold(once), account.Hold(once)
	defer func() {
		defer x.leave()
		_ = u.Close()
		if relay.ToClient.Shed() || relay.ToUpstream.Shed() {
			reason = ReasonMemory
		}
		relay.ToClient.Release()
		relay.ToUpstream.Release()
		if x.sent == nil {
			x.row.RequestBytes = relay.Sent
		}
		x.row.ResponseBytes, x.row.Reason = relay.Received, string(reason)
		x.redactions.Add(relay.Hits)
		x.recordAsync()
		x.endCapture()
	}()
	if !relay.ToClient.Take(websocket.IdleMemory) || !relay.ToUpstream.Take(websocket.IdleMemory) {
		reason = ReasonMemory
		_ = w.Respond(DenyMemory().Response(x.request))
		return
	}
	conn, _, err := w.Hijack()
	if err != nil {
		reason = ReasonPanic
		return
	}
	defer conn.Close()
	_ = conn.SetWriteDeadline(time.Now().Add(10 * time.Second))
	if _, err := conn.Write(switchHead(res.Header)); err != nil {
		reason = ReasonUndelivered
		return
	}
	_ = conn.SetWriteDeadline(time.Time{})
	relay.Client, relay.Pace = conn, w.Pace()
	over := make(chan struct{})
	watched := make(chan struct{})
	go func() { defer close(watched); x.watch(relay, over, shed) }()
	switch err := relay.Run(); {
	case errors.Is(err, websocket.ErrSlow):
		reason = ReasonSlow
	case err != nil:
		reason = ReasonNotTLS
	}
	close(over)
	<-watched
}

// watch ends the relay when the session ends, when it must free memory, or when a
// change of the grants withdraws what the relay was allowed by.
func (x *Exchange) watch(relay *websocket.Relay, over, shed <-chan struct{}) {
	g := x.grants
	for {
		select {
		case <-over:
			return
		case <-shed:
			relay.End(websocket.TryAgainLater)
			return
		case <-x.p.draining.Done():
			relay.End(websocket.GoingAway)
			return
		case <-x.at.Life.Done():
			relay.End(websocket.GoingAway)
			return
		case <-g.inForce.Done():
			if g = x.p.grants.Load(); !x.stillGranted(g) {
				relay.End(websocket.PolicyEnded)
				return
			}
		}
	}
}

// stillGranted reports whether g allows the exchange with the same credential.
func (x *Exchange) stillGranted(g *Grants) bool {
	op := x.match.Operation
	if op == nil { // passthrough
		return !g.Index.Covers(x.target.Host, x.target.Port)
	}
	m, no := g.Index.Match(x.target)
	if no != nil || m.Operation.String() != op.String() || (m.Operation.Injection == nil) != (op.Injection == nil) {
		return false
	}
	if op.Injection == nil {
		return true
	}
	fqn := op.Connector.FQN
	return x.grants.Bound[fqn].Binding == g.Bound[fqn].Binding && x.grants.keys[fqn] == g.keys[fqn]
}

// switchHead returns the head of the 101 for the client.
func switchHead(h http.Header) []byte {
	out := []byte("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n")
	for name, values := range h {
		if name == "Connection" || name == "Upgrade" {
			continue
		}
		for _, v := range values {
			out = append(append(append(append(out, name...), ": "...), v...), "\r\n"...)
		}
	}
	return append(out, "\r\n"...)
}

// Tunnel is a connection to the host of a tunnel that is not decrypted.
type Tunnel struct {
	net.Conn
	x       *Exchange
	release func()
}

// Connect is Do for a tunnel that is not decrypted: it carries no credential, and its bytes are the client's own.
// memory is what it takes of the session's. A denial has been recorded when it is returned.
func (p *Plane) Connect(ctx context.Context, x *Exchange, memory int64) (*Tunnel, *Denial) {
	if d := x.enter(); d != nil {
		return nil, x.Reject(d)
	}
	hold := p.budget.Conn().Hold(nil)
	server, d := x.connect(ctx, hold.Take(memory))
	if d != nil {
		hold.Release()
		return nil, x.Reject(d)
	}
	x.row.Event, x.row.Decision = audit.EventSandboxPassthrough, audit.DecisionPassthrough
	x.row.Reason = ReasonTunnelHost
	return &Tunnel{server, x, hold.Release}, nil
}

func (x *Exchange) connect(ctx context.Context, room bool) (net.Conn, *Denial) {
	if !room {
		return nil, DenyMemory()
	}
	// It may last for days, so that the intent is recorded as well.
	if d := x.recordIntent(); d != nil {
		return nil, d
	}
	a := x.at.Authority
	server, err := x.p.upstream.Dial(ctx, a.String())
	if err != nil {
		return nil, denyUpstream(a.Host, err, false)
	}
	return server, nil
}

// End records the outcome, with the bytes that each side sent.
func (t *Tunnel) End(sent, received int64) {
	defer t.release()
	x := t.x
	x.row.RequestBytes, x.row.ResponseBytes = sent, received
	x.recordAsync()
	x.endCapture()
	x.leave()
}
