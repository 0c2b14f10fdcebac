package modify

import (
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // RFC 6455 section 4.2.2 asks for it; it protects nothing
	"encoding/base64"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/proxy/wire"
	"github.com/ALRubinger/aileron/spec"
)

// WebSocket is the handshake of a WebSocket (RFC 6455 section 4) that the proxy
// makes in place of the client's.
//
// Request: the handshake has a key of the proxy's own, no extension, and of the
// subprotocols those in Protocols.
//
// Response: one that is not the answer to that handshake fails. Its
// Sec-WebSocket-Accept becomes the answer to the client's key.
type WebSocket struct {
	Protocols []string // the subprotocols that are offered

	key       string // the proxy's; "": no handshake was sent
	clientKey string
}

// NewWebSocket returns a handshake in place of the client's, whose header is h.
// Of its subprotocols, those that carry a credential of the sandbox's own are
// not offered where the operation has one.
func NewWebSocket(h http.Header, credentialed bool) *WebSocket {
	var fresh [16]byte
	_, _ = rand.Read(fresh[:])
	m := &WebSocket{key: base64.StdEncoding.EncodeToString(fresh[:]), clientKey: h.Get("Sec-Websocket-Key")}
	for _, line := range h["Sec-Websocket-Protocol"] {
		for name := range strings.SplitSeq(line, ",") {
			if name = strings.TrimSpace(name); name == "" || credentialed && spec.NamesCredential(strings.ToLower(name)) {
				continue
			}
			m.Protocols = append(m.Protocols, name)
		}
	}
	return m
}

// ModifyRequest implements martian.RequestModifier.
func (m *WebSocket) ModifyRequest(r *http.Request) error {
	h := r.Header
	h["Connection"], h["Upgrade"] = []string{"Upgrade"}, []string{"websocket"}
	h["Sec-Websocket-Key"], h["Sec-Websocket-Version"] = []string{m.key}, []string{"13"}
	delete(h, "Sec-Websocket-Extensions")
	delete(h, "Sec-Websocket-Protocol")
	if len(m.Protocols) > 0 {
		h["Sec-Websocket-Protocol"] = []string{strings.Join(m.Protocols, ", ")}
	}
	return nil
}

// ModifyResponse implements martian.ResponseModifier. A nil WebSocket is that of
// a request which did not ask for one: it takes no response.
func (m *WebSocket) ModifyResponse(res *http.Response) error {
	h := res.Header
	accept, chosen := h["Sec-Websocket-Accept"], h["Sec-Websocket-Protocol"]
	switch {
	case m == nil, len(h["Upgrade"]) != 1, !strings.EqualFold(h.Get("Upgrade"), "websocket"),
		!wire.HasToken(h, "Connection", "upgrade"):
		return fail(Switch, "the upstream switched protocols unasked, or to another one")
	case len(accept) != 1 || accept[0] != AcceptKey(m.key):
		return fail(Switch, "the upstream did not prove that it took the handshake for one of a WebSocket")
	case len(h["Sec-Websocket-Extensions"]) > 0:
		return fail(Switch, "the upstream chose an extension of WebSockets that it was not offered")
	case len(chosen) > 1, len(chosen) == 1 && !slices.Contains(m.Protocols, chosen[0]):
		return fail(Switch, "the upstream chose a subprotocol that it was not offered")
	}
	if _, ok := res.Body.(io.ReadWriteCloser); !ok {
		return fail(Switch, "the upstream's connection cannot be taken over")
	}
	h["Sec-Websocket-Accept"] = []string{AcceptKey(m.clientKey)}
	return nil
}

// AcceptKey returns the Sec-WebSocket-Accept that answers key: RFC 6455 section
// 4.2.2.
func AcceptKey(key string) string {
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11")) //nolint:gosec // see the import
	return base64.StdEncoding.EncodeToString(sum[:])
}
