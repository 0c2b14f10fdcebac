package proxy

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/proxy/capture"
)

// A stream reaches its client as it is written, and its entry has what the client got of it, however it ends.
func TestCaptureIsOfStreams(t *testing.T) {
	for name, c := range map[string]struct{ reason, comment string }{
		"whole": {}, "cut by the origin": {"it ended early: upstream_", "not whole"},
		"left by the client": {"it ended early: response_not", "not whole"},
	} {
		t.Run(name, func(t *testing.T) {
			step := make(chan struct{})
			w, entries := newCaptured(t, false, func(rw http.ResponseWriter, r *http.Request) {
				rw.Header().Set("Content-Type", "text/event-stream")
				for i := range 3 {
					fmt.Fprintf(rw, "data: %d %s\n\n", i, r.Header.Get("Authorization"))
					rw.(http.Flusher).Flush()
					select {
					case <-step:
					case <-r.Context().Done():
						return
					}
				}
				if name == "cut by the origin" {
					panic(http.ErrAbortHandler)
				}
			})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			req := must.Get(http.NewRequestWithContext(ctx, "GET", "https://api.good.example/v1/items", nil))(t)
			res := must.Get(w.client.Do(req))(t)
			defer res.Body.Close()
			event := make([]byte, len("data: 0 Bearer \n\n")+len(testSecret))
			for range 3 {
				must.Get(io.ReadFull(res.Body, event))(t) // while the stream goes on
				if event[6] != '2' {
					step <- struct{}{}
				}
			}
			switch name {
			case "left by the client":
				cancel()
			default:
				close(step)
				_, _ = io.ReadAll(res.Body)
			}
			w.eventually(func() bool { return w.last().Event == audit.EventProxyProxied })
			got, text := entries()
			if len(got) != 1 {
				t.Fatalf("%d entries in %s", len(got), text)
			}
			e, stars := got[0], strings.Repeat("*", len(testSecret))
			want := fmt.Sprintf("data: 0 Bearer %s\n\ndata: 1 Bearer %[1]s\n\ndata: 2 Bearer %[1]s\n\n", stars)
			if string(e.Response.Content.Text) != want {
				t.Errorf("the stream is %q, want %q", e.Response.Content.Text, want)
			}
			if cut := e.Aileron.Capture.ResponseCut; !strings.HasPrefix(cut, c.reason) || (cut == "") != (c.reason == "") ||
				!strings.Contains(e.Comment, c.comment) {
				t.Errorf("its end is %q, %q; the row has %q", cut, e.Comment, e.Aileron.Reason)
			}
		})
	}
}

func TestCaptureHasAWebSocketsMessages(t *testing.T) {
	w, entries := newCaptured(t, false, live)
	conn, br, _ := w.websocket()
	binaryFrame := []byte{0x82, 0x83, 1, 2, 3, 4, 'a' ^ 1, 0xff ^ 2, 'c' ^ 3}
	pieces := []byte{0x01, 0x82, 0, 0, 0, 0, 'i', 'n', 0x89, 0x80, 0, 0, 0, 0, 0x80, 0x83, 0, 0, 0, 0, 't', 'w', 'o'}
	for _, send := range []func(){
		func() { sendText(t, conn, "hello") }, func() { sendText(t, conn, "who") },
		func() { sendText(t, conn, "I know "+testSecret) },
		func() { _, err := conn.Write(binaryFrame); must.Do(t, err) },
	} {
		send()
		readMessage(t, br)
	}
	must.Get(conn.Write(pieces))(t)
	readMessage(t, br) // to the ping
	readMessage(t, br)
	// Only the first MiB is recorded, of many small messages too.
	for range capture.MaxBody / 2 / 250 {
		sendText(t, conn, "x")
		readMessage(t, br)
	}
	_ = conn.Close()
	w.eventually(func() bool { return w.last().Event == audit.EventProxyProxied })
	got, text := entries()
	e := got[0]
	if e.Type != "websocket" || e.Response.Status != 101 || e.Aileron.Capture.MessagesCut == "" ||
		len(e.Messages) > capture.MaxBody/256 || strings.Contains(text, testSecret) {
		t.Fatalf("%d messages, cut %q", len(e.Messages), e.Aileron.Capture.MessagesCut)
	}
	by := map[string][]string{}
	for _, m := range e.Messages {
		if m.Time < 1e9 {
			t.Errorf("a message is of %f", m.Time)
		}
		by[m.Type] = append(by[m.Type], fmt.Sprint(m.Opcode, m.Data))
	}
	stars := strings.Repeat("*", len(testSecret))
	bin := base64.StdEncoding.EncodeToString([]byte("a\xffc"))
	for way, want := range map[string][]string{
		"send":    {"1hello", "1who", "1I know " + stars, "2" + bin, "1intwo", "1x"},
		"receive": {"1hello", "1Bearer " + stars, "1I know " + stars, "2" + bin},
	} {
		if len(by[way]) < len(want) || strings.Join(by[way][:len(want)], "|") != strings.Join(want, "|") {
			t.Errorf("%s: %.300q, want %q", way, by[way], want)
		}
	}
}
