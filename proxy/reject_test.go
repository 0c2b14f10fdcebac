package proxy

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
)

// A refusal that waits for its answer is a timer and a goroutine: the head that
// was refused is gone.
func TestADelayedDenialHoldsNoHead(t *testing.T) {
	w := newWorld(t, hello)
	w.plane.denialRate = rate.NewLimiter(rate.Every(time.Hour), 1)
	w.plane.denialRate.Reserve()
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://other.example/"+strings.Repeat("x", 4000), nil)
	must.Do(t, err)
	r.RequestURI = r.URL.RequestURI()
	r.Header.Set("X-Long", strings.Repeat("0123456789", 5000))
	refused := make(chan *http.Response)
	go func() {
		at := Arrival{Authority: Authority{Host: "other.example", Port: 443}, Scheme: "https", Source: audit.SourceConnectTLS}
		x := w.plane.Begin(at, r)
		x.Decided(Decide(x.Question()))
		_, d := w.plane.Do(x)
		refused <- d.Response(r)
	}()
	w.eventually(func() bool { return len(w.plane.waiters) > 0 })
	cancel()
	res := <-refused
	defer res.Body.Close()
	if len(r.Header) > 0 || r.RequestURI != "" || r.URL.Path != "" {
		t.Errorf("a refusal that waits keeps the header fields %v and %d bytes of target", len(r.Header),
			len(r.RequestURI)+len(r.URL.Path))
	}
	if res.StatusCode != http.StatusForbidden {
		t.Errorf("it was answered with %d", res.StatusCode)
	}
}

// Refusals that wait hold little of the budget, and make room for what is allowed.
func TestDelayedDenialsMakeRoom(t *testing.T) {
	for name, h2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorldWith(t, false, func(c *Config) { c.Limits.Memory = 512 << 10 }, hello)
			w.plane.denialRate = rate.NewLimiter(rate.Every(time.Hour), 1)
			w.plane.denialRate.Reserve()
			t.Cleanup(w.plane.stopDrain) // those that wait are answered
			for i := range 30 {
				before := len(w.outcomes())
				w.refusedSlowly(h2, []int{50_000, 1000}[i/6%2]) // the small ones fill what the large ones leave
				w.eventually(func() bool { return len(w.outcomes()) > before })
				if i == 0 { // its head is returned
					w.eventually(func() bool { return len(w.plane.waiters) == 1 && w.plane.budget.Used() < 40_000 })
				}
				if res, body := w.do("GET", "https://api.good.example/v1/items", ""); res.StatusCode != 200 {
					t.Fatalf("with %d refusals waiting and %d bytes used, what is allowed gets %d %s",
						len(w.plane.waiters), w.plane.budget.Used(), res.StatusCode, body)
				}
			}
		})
	}
}

// refusedSlowly sends a request with a head of size bytes that is refused, on a
// connection of its own.
func (w *world) refusedSlowly(h2 bool, size int) {
	w.t.Helper()
	long := strings.Repeat("0123456789", size/10)
	if !h2 {
		conn := w.tunnel("api.good.example")
		w.t.Cleanup(func() { _ = conn.Close() })
		must.Get(io.WriteString(conn, "GET /nothing HTTP/1.1\r\nHost: api.good.example\r\nX-Long: "+long+"\r\n\r\n"))(w.t)
		return
	}
	r, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, "https://api.good.example/nothing", http.NoBody)
	must.Do(w.t, err)
	r.Header.Set("X-Long", long)
	var asked sync.WaitGroup
	client := w.h2client()
	asked.Go(func() {
		if res, err := client.Do(r); err == nil {
			_ = res.Body.Close()
		}
		client.CloseIdleConnections()
	})
	w.t.Cleanup(asked.Wait)
}

// One more refusal than may wait is answered at once, and ends its connection.
func TestDenialsBeyondThoseThatMayWaitEndTheConnection(t *testing.T) {
	w := newWorld(t, hello)
	w.plane.denialRate = rate.NewLimiter(rate.Every(time.Hour), 1)
	w.plane.denialRate.Reserve()
	for range cap(w.plane.waiters) {
		w.plane.waiters <- struct{}{}
	}
	t.Run("HTTP/1.1 in a tunnel", func(t *testing.T) {
		conn := w.tunnel("api.good.example")
		defer conn.Close()
		must.Get(io.WriteString(conn, "GET /nothing HTTP/1.1\r\nHost: api.good.example\r\n\r\n"))(t)
		br := bufio.NewReader(conn)
		res, err := http.ReadResponse(br, nil)
		must.Do(t, err)
		body, _ := io.ReadAll(res.Body)
		if _, why := reason(t, string(body)); res.StatusCode != 403 || why != "operation_not_matched" || !res.Close {
			t.Errorf("got %d %s, Connection: close is %t", res.StatusCode, why, res.Close)
		}
		if _, err := br.ReadByte(); err != io.EOF {
			t.Errorf("the connection goes on: %v", err)
		}
	})
	t.Run("HTTP/1.1 in clear", func(t *testing.T) {
		res, body := w.do("GET", "http://other.example/", "")
		if _, why := reason(t, body); res.StatusCode != 403 || why != ReasonHost || !res.Close {
			t.Errorf("got %d %s, Connection: close is %t", res.StatusCode, why, res.Close)
		}
	})
	t.Run("what is allowed", func(t *testing.T) {
		if res, body := w.do("GET", "https://api.good.example/v1/items", ""); res.StatusCode != 200 {
			t.Errorf("got %d %s", res.StatusCode, body)
		}
	})
}

// A client that takes nothing of an answer stops its origin, over HTTP/2 too.
func TestAResponseIsNotReadAheadOfItsClient(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		var sent atomic.Int64
		ended := make(chan struct{})
		w := newWorldOf(t, h2, func(rw http.ResponseWriter, _ *http.Request) {
			defer close(ended)
			part := []byte(strings.Repeat("a line of an answer that is long\n", 512))
			for {
				n, err := rw.Write(part)
				sent.Add(int64(n))
				if err != nil {
					return
				}
			}
		})
		ctx, cancel := context.WithCancel(t.Context())
		r := must.Get(http.NewRequestWithContext(ctx, http.MethodGet, "https://api.good.example/v1/items", nil))(t)
		// One byte a window: what an HTTP/2 client of net/http's allows is 4 MiB.
		tr := w.h2client().Transport.(*http.Transport)
		tr.HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerStream: 64 << 10, MaxReceiveBufferPerConnection: 64 << 10}
		res := must.Get(tr.RoundTrip(r))(t)
		before := int64(-1)
		for now := sent.Load(); now != before; now = sent.Load() { // until it stands still
			before = now
			<-time.After(300 * time.Millisecond)
		}
		if h2 && before > 1<<20 {
			t.Errorf("the origin has sent %d KiB to a client that reads nothing", before>>10)
		}
		w.eventually(func() bool { return w.plane.budget.Used() > 0 })
		if used := w.plane.budget.Used(); used > 256<<10 {
			t.Errorf("origin over HTTP/2 %t: the answer holds %d KiB of the budget", h2, used>>10)
		}
		cancel()
		_ = res.Body.Close()
		<-ended
		w.eventually(func() bool { tr.CloseIdleConnections(); return w.plane.budget.Used() == 0 })
	}
}

// An exchange that is shed has the reason in its row.
func TestAnExchangeThatIsShedIsRecordedAsSuch(t *testing.T) {
	w := newWorldWith(t, false, func(cfg *Config) { cfg.Limits.Memory = 512 << 10 },
		func(rw http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/v1/echo" {
				return
			}
			for r.Context().Err() == nil {
				if _, err := rw.Write(make([]byte, 16<<10)); err != nil {
					return
				}
			}
		})
	for range 12 {
		conn := w.tunnel("api.good.example")
		defer conn.Close()
		must.Get(io.WriteString(conn, "GET /v1/echo HTTP/1.1\r\nHost: api.good.example\r\n\r\n"))(t)
	}
	isShed := func(row audit.Row) bool { return Reason(row.Reason) == ReasonMemory }
	rows := w.untilRows(func(rows []audit.Row) bool { return slices.ContainsFunc(rows, isShed) })
	if row := rows[slices.IndexFunc(rows, isShed)]; row.Decision != audit.DecisionProxied {
		t.Errorf("the row is %+v", row)
	}
}
