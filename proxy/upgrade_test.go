package proxy

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/proxy/modify"
	"github.com/ALRubinger/aileron/spec"
)

// live answers a handshake and then repeats the payload of each frame, which
// it finds masked, and on "who" sends the Authorization in two pieces.
func live(rw http.ResponseWriter, r *http.Request) {
	auth := r.Header.Get("Authorization")
	conn, rest, err := rw.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: "+
		"Upgrade\r\nSec-WebSocket-Accept: %s\r\nX-Echo: %s\r\nSet-Cookie: sid=1\r\n\r\n",
		modify.AcceptKey(r.Header.Get("Sec-WebSocket-Key")), auth)
	for {
		var h [6]byte
		if _, err := io.ReadFull(rest, h[:]); err != nil {
			return
		}
		payload := make([]byte, h[1]&0x7f)
		if _, err := io.ReadFull(rest, payload); err != nil || h[1]&0x80 == 0 {
			return
		}
		for i := range payload {
			payload[i] ^= h[2+i%4]
		}
		if string(payload) == "who" {
			first, second := auth[:20], auth[20:]
			_, _ = conn.Write(append([]byte{0x01, byte(len(first))}, first...))
			_, _ = conn.Write(append([]byte{0x80, byte(len(second))}, second...))
			continue
		}
		_, _ = conn.Write(append([]byte{h[0], byte(len(payload))}, payload...))
	}
}

const handshake = "GET /v1/live HTTP/1.1\r\nHost: api.good.example\r\nConnection: keep-alive, Upgrade\r\nUpgrade: " +
	"websocket\r\n" +
	"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Extensions: " +
	"permessage-deflate\r\n" +
	"Sec-WebSocket-Protocol: realtime, my-api-key.ATTACKER\r\n\r\n"

func (w *world) websocket() (*tls.Conn, *bufio.Reader, *http.Response) {
	w.t.Helper()
	conn := w.tunnel("api.good.example")
	w.t.Cleanup(func() { _ = conn.Close() })
	must.Get(io.WriteString(conn, handshake))(w.t)
	br := bufio.NewReader(conn)
	res := must.Get(http.ReadResponse(br, nil))(w.t)
	return conn, br, res
}

func sendText(t *testing.T, conn io.Writer, text string) {
	t.Helper()
	frame := []byte{0x81, 0x80 | byte(len(text)), 1, 2, 3, 4}
	for i := range len(text) {
		frame = append(frame, text[i]^byte(1+i%4))
	}
	must.Get(conn.Write(frame))(t)
}

// message reads one message, pieces put together, or "close N".
func readMessage(t *testing.T, br *bufio.Reader) string {
	t.Helper()
	var out strings.Builder
	for {
		var h [2]byte
		if _, err := io.ReadFull(br, h[:]); err != nil {
			return "closed"
		}
		payload := make([]byte, h[1])
		must.Get(io.ReadFull(br, payload))(t)
		if h[0]&0x0f == 8 {
			return fmt.Sprintf("close %d", int(payload[0])<<8|int(payload[1]))
		}
		out.Write(payload)
		if h[0]&0x80 != 0 {
			return out.String()
		}
	}
}

func TestADeclaredWebSocketIsInjectedRelayedAndScrubbed(t *testing.T) {
	w := newWorld(t, live)
	conn, br, res := w.websocket()
	if res.StatusCode != 101 || res.Header.Get("Sec-WebSocket-Accept") != "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" {
		t.Fatalf("got %d %v", res.StatusCode, res.Header)
	}
	if got := res.Header.Get("X-Echo"); got != "Bearer "+strings.Repeat("*", len(testSecret)) ||
		res.Header.Get("Set-Cookie") != "" {
		t.Errorf("the head of the 101 holds %v", res.Header)
	}
	if rows := w.rows(); rows[len(rows)-1].Event != audit.EventProxyStarted ||
		rows[len(rows)-1].Decision != "" {
		t.Errorf("the handshake's row is %+v", rows[len(rows)-1])
	}
	sendText(t, conn, "hello")
	if got := readMessage(t, br); got != "hello" {
		t.Errorf("the echo is %q", got)
	}
	sendText(t, conn, "who")
	if got, want := readMessage(t, br), "Bearer "+strings.Repeat("*", len(testSecret)); got != want {
		t.Errorf("the told secret came as %q, want %q", got, want)
	}
	seen := w.requests()[0]
	if got := seen.Header.Get("Sec-WebSocket-Protocol"); got != "realtime" ||
		seen.Header.Get("Sec-WebSocket-Extensions") != "" {
		t.Errorf("the origin was offered the protocols %q and the extensions %q", got,
			seen.Header.Get("Sec-WebSocket-Extensions"))
	}
	if seen.Header.Get("Sec-WebSocket-Key") == "dGhlIHNhbXBsZSBub25jZQ==" {
		t.Error("the client's own key reached the origin")
	}
	_ = conn.Close()
	w.eventually(func() bool { r := w.last(); return r.Event == audit.EventProxyProxied })
	if r := w.last(); r.Decision != audit.DecisionUpgrade || r.Status != 101 || r.Redactions < 2 ||
		r.RequestBytes != 8 || r.ResponseBytes == 0 {
		t.Errorf("the outcome row is %+v", r)
	}
}

func TestAWebSocketEndsWithWhatGrantedIt(t *testing.T) {
	for name, end := range map[string]func(*world){
		"revoked": func(w *world) {
			old := w.plane.grants.Load()
			w.plane.SetGrants(&Grants{Index: old.Index, Scrub: old.Scrub, Bound: map[spec.FQN]Bound{}})
		},
		"drained": func(w *world) { w.plane.Drain(t.Context()) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, live)
			conn, br, _ := w.websocket()
			_ = conn.SetDeadline(time.Now().Add(testPatience))
			end(w)
			want := map[string]string{"revoked": "close 1008", "drained": "close 1001"}[name]
			if got := readMessage(t, br); got != want {
				t.Errorf("the WebSocket ended with %q, want %q", got, want)
			}
		})
	}
	w := newWorld(t, live)
	conn, br, _ := w.websocket()
	old := w.plane.grants.Load()
	w.plane.SetGrants(&Grants{Index: old.Index, Scrub: old.Scrub, Bound: old.Bound})
	sendText(t, conn, "still there")
	if got := readMessage(t, br); got != "still there" {
		t.Errorf("grants that changed nothing ended the WebSocket: %q", got)
	}
}

// A byte now and then would hold the upstream's connection for as long as the sandbox likes.
func TestAFrameOfAWebSocketThatTricklesEndsIt(t *testing.T) {
	w := newWorldWith(t, false, func(c *Config) { c.Limits.Wire.Progress = 20 * time.Millisecond }, live)
	conn, br, _ := w.websocket()
	_ = conn.SetDeadline(time.Now().Add(testPatience))
	must.Get(conn.Write([]byte{0x81, 0x80 | 5, 1, 2, 3, 4, 'h' ^ 1}))(t)
	rest := time.AfterFunc(testPatience/20, func() { _, _ = conn.Write([]byte{'e' ^ 2, 'l' ^ 3, 'l' ^ 4, 'o' ^ 1}) })
	defer rest.Stop()
	if got := readMessage(t, br); got != "close 1008" {
		t.Fatalf("the WebSocket said %q, want %q before the frame's rest", got, "close 1008")
	}
	w.eventually(func() bool { return w.last().Event == audit.EventProxyProxied })
	if r := w.last(); r.Reason != string(ReasonSlow) || r.Status != 101 {
		t.Errorf("the outcome row is %+v, want the reason %s", r, ReasonSlow)
	}
}

func TestAnUnaskedUpgradeIsNotRelayed(t *testing.T) {
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		conn, _, err := rw.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		protocol := "foo"
		if r.Header.Get("Upgrade") == "" {
			protocol = "websocket" // for no key at all, and so with the right proof
		}
		fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: %s\r\nConnection: "+
			"Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\nRAW %s",
			protocol, modify.AcceptKey(r.Header.Get("Sec-WebSocket-Key")), r.Header.Get("Authorization"))
	})
	for _, path := range []string{"/v1/items", "/v1/live"} {
		request := strings.Replace(handshake, "/v1/live", path, 1)
		if path == "/v1/items" {
			request = "GET /v1/items HTTP/1.1\r\nHost: api.good.example\r\nConnection: close\r\n\r\n"
		}
		conn := w.tunnel("api.good.example")
		must.Get(io.WriteString(conn, request))(t)
		res := must.Get(http.ReadResponse(bufio.NewReader(conn), nil))(t)
		body, _ := io.ReadAll(res.Body)
		if class, why := reason(t, string(body)); res.StatusCode != 406 || class != "response_unsafe" || why != ReasonSwitch {
			t.Errorf("%s: got %d %s", path, res.StatusCode, body)
		}
		_ = conn.Close()
	}
}

// The client offered the subprotocols realtime and my-api-key.ATTACKER, of
// which the second carries a credential, and permessage-deflate, which is
// never offered on.
func TestAWebSocketIsAcceptedAsItWasOffered(t *testing.T) {
	const right = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n"
	for name, c := range map[string]struct {
		head   string
		status int
	}{
		"plain":                {right, 101},
		"offered subprotocol":  {right + "Sec-WebSocket-Protocol: realtime\r\n", 101},
		"extension":            {right + "Sec-WebSocket-Extensions: permessage-deflate\r\n", 406},
		"unknown extension":    {right + "Sec-WebSocket-Extensions: x-mux\r\n", 406},
		"other subprotocol":    {right + "Sec-WebSocket-Protocol: chat\r\n", 406},
		"withheld subprotocol": {right + "Sec-WebSocket-Protocol: my-api-key.ATTACKER\r\n", 406},
		"two subprotocols":     {right + "Sec-WebSocket-Protocol: realtime\r\nSec-WebSocket-Protocol: realtime\r\n", 406},
		"list of subprotocols": {right + "Sec-WebSocket-Protocol: realtime, chat\r\n", 406},
		"key of another": {"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " +
			"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\nX: %s\r\n", 406},
		"no key":                {"Upgrade: websocket\r\nConnection: Upgrade\r\nX: %s\r\n", 406},
		"two keys":              {right + "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n", 406},
		"another protocol":      {"Upgrade: foo\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n", 406},
		"two protocols":         {right + "Upgrade: foo\r\n", 406},
		"no Connection":         {"Upgrade: websocket\r\nSec-WebSocket-Accept: %s\r\n", 406},
		"Connection: something": {"Upgrade: websocket\r\nConnection: keep-alive\r\nSec-WebSocket-Accept: %s\r\n", 406},
	} {
		t.Run(name, func(t *testing.T) {
			gone := make(chan struct{})
			w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
				conn, _, err := rw.(http.Hijacker).Hijack()
				if err != nil {
					return
				}
				defer conn.Close()
				fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\n"+c.head+"\r\n",
					modify.AcceptKey(r.Header.Get("Sec-WebSocket-Key")))
				_, _ = io.Copy(io.Discard, conn)
				close(gone)
			})
			_, _, res := w.websocket()
			if res.StatusCode != c.status {
				t.Fatalf("got %d %v, want %d", res.StatusCode, res.Header, c.status)
			}
			if c.status == 101 {
				return
			}
			body, _ := io.ReadAll(res.Body)
			if class, why := reason(t, string(body)); class != "response_unsafe" || why != ReasonSwitch ||
				Reason(w.last().Reason) != ReasonSwitch {
				t.Errorf("refused with %s, the row says %s", body, w.last().Reason)
			}
			<-gone // the upstream connection is closed
		})
	}
}
