package proxy

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/proxy/fair"
	"github.com/ALRubinger/aileron/proxy/modify"
)

// newTurns returns a world whose plane has one turn at a time.
func newTurns(t *testing.T, answer http.HandlerFunc) *world {
	w := newWorldWith(t, false, func(c *Config) { c.Limits.CPUs, c.Passthrough = 1, true }, answer)
	w.eventually(func() bool { return w.plane.Turns().Waiting() == 0 })
	return w
}

// occupy takes the only turn.
func (w *world) occupy() (release func()) {
	w.t.Helper()
	var s fair.Stream
	s.Reset(w.plane.Turns(), context.Background())
	must.Do(w.t, s.Begin(1<<20))
	return s.End
}

// waiting waits until so many bodies wait for their turn.
func (w *world) waiting(n int) {
	w.t.Helper()
	w.eventually(func() bool { return w.plane.Turns().Waiting() == n })
}

func repeats(rw http.ResponseWriter, r *http.Request) {
	_, _ = io.WriteString(rw, "begin "+strings.Repeat(r.Header.Get("Authorization")+" is said. ", 3000)+"end")
}

// While another body has the turn, nothing of a response leaves: that of an operation, what is passed through, and what
// is sent up. When it ends, all of them arrive, and are searched.
func TestBodiesWaitForTheirTurn(t *testing.T) {
	w := newTurns(t, repeats)
	release := w.occupy()
	upload := strings.Repeat("an upload", 1000)
	var all sync.WaitGroup
	for _, target := range []string{"https://api.good.example/v1/items", "https://other.example/file"} {
		for range 2 {
			all.Go(func() {
				_, body := w.do(http.MethodGet, target, "")
				if !strings.HasPrefix(body, "begin ") || !strings.HasSuffix(body, "end") || strings.Contains(body, testSecret) {
					t.Errorf("%s: got %d bytes, %.60q", target, len(body), body)
				}
			})
		}
	}
	all.Go(func() { _, _ = w.do(http.MethodPost, "https://api.good.example/v1/items", upload) })
	w.waiting(5)
	release()
	all.Wait()
	w.waiting(0)
	for _, body := range w.bodies {
		if body != "" && body != upload {
			t.Errorf("the origin was sent %q", body)
		}
	}
}

// A message of a WebSocket takes a turn: what the upstream sends unasked, and what the client sends.
func TestMessagesWaitForTheirTurn(t *testing.T) {
	say := make(chan struct{})
	w := newTurns(t, func(rw http.ResponseWriter, r *http.Request) {
		conn, rest, err := rw.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
			"Sec-WebSocket-Accept: %s\r\n\r\n", modify.AcceptKey(r.Header.Get("Sec-WebSocket-Key")))
		said := r.Header.Get("Authorization")
		for range 2 {
			_, _ = conn.Write(append([]byte{0x81, byte(len(said))}, said...))
			<-say
		}
		_, _ = io.Copy(io.Discard, rest)
	})
	conn, br, _ := w.websocket()
	readMessage(t, br) // the first one of each takes no turn
	sendText(t, conn, "first")
	release := w.occupy()
	close(say)
	w.waiting(1)
	sendText(t, conn, "hello")
	w.waiting(2)
	release()
	if got, want := readMessage(t, br), "Bearer "+strings.Repeat("*", len(testSecret)); got != want {
		t.Errorf("the message came as %q, want %q", got, want)
	}
}

// A client that leaves gives up its turn, and what was read for it is not sent.
func TestAClientThatLeavesWaitsForNoTurn(t *testing.T) {
	w := newTurns(t, repeats)
	release := w.occupy()
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://api.good.example/v1/items", nil)
	must.Do(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		res, err := w.client.Do(req)
		if err == nil {
			_, _ = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
		}
	}()
	w.waiting(1)
	cancel()
	<-ended
	w.waiting(0)
	release()
	w.eventually(func() bool { return w.last().Event == audit.EventProxyProxied })
	if r := w.last(); r.Reason != string(ReasonUndelivered) || r.ResponseBytes > 4<<10 {
		t.Errorf("the row has the reason %q and %d bytes, want %q and its first piece", r.Reason, r.ResponseBytes,
			ReasonUndelivered)
	}
	_, body := w.do(http.MethodGet, "https://api.good.example/v1/items", "")
	if !strings.HasSuffix(body, "end") {
		t.Errorf("the next one got %d bytes", len(body))
	}
}
