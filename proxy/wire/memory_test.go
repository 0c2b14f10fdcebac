package wire

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/proxy/budget"
)

// patience is as long as only a defect takes, on a busy machine too.
var patience = must.Patience(5 * time.Minute)

// recorder sends empty responses, and records what was rejected.
type recorder struct {
	mu      sync.Mutex
	refused []*ProtocolError
	serve   func(w *ResponseWriter, r *http.Request)
}

func (h *recorder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.serve != nil {
		h.serve(w.(*ResponseWriter), r)
	}
}

func (h *recorder) Refuse(f *ProtocolError) *http.Response {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.refused = append(h.refused, f)
	return &http.Response{StatusCode: f.Status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(f.Reason)),
		ContentLength: int64(len(f.Reason))}
}

// sharing returns a function that dials a connection served with the budget b.
func sharing(t *testing.T, b *budget.Budget, h Handler) (dial func() net.Conn) {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	var served sync.WaitGroup
	t.Cleanup(func() { _ = l.Close(); served.Wait() })
	return func() net.Conn {
		client := must.Get(net.Dial("tcp", l.Addr().String()))(t)
		t.Cleanup(func() { _ = client.Close() })
		_ = client.SetDeadline(time.Now().Add(patience))
		server := must.Get(l.Accept())(t)
		served.Go(func() { Serve(context.Background(), server, Options{Budget: b}, h) })
		return client
	}
}

// await polls the budget until its used bytes are as wanted.
func await(t *testing.T, b *budget.Budget, wanted func(used int64) bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	late := time.After(patience)
	for !wanted(b.Used()) {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("the budget has %d bytes in use, which stays so", b.Used())
		}
	}
}

// headOf returns an incomplete head of about size bytes.
func headOf(size int) string {
	return "GET /x HTTP/1.1\r\nHost: a.example\r\nX-Long: " + strings.Repeat("0123456789", size/10)
}

// The heads that have grown for longest are shed, with a response that has the
// reason.
func TestHeadsThatDoNotEndMakeRoom(t *testing.T) {
	h := &recorder{}
	b := budget.New(400 << 10)
	dial := sharing(t, b, h)
	var ends []net.Conn
	for i := range 8 { // 82 KiB each: four have room
		conn := dial()
		must.Get(io.WriteString(conn, headOf(30<<10)))(t)
		ends = append(ends, conn)
		await(t, b, func(used int64) bool { return used >= int64(min(i+1, 4))*80<<10 })
	}
	for i, conn := range ends[:4] {
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || res.StatusCode != http.StatusTooManyRequests {
			t.Errorf("head %d: %v, %v, want 429", i, res, err)
		}
	}
	h.mu.Lock()
	for _, f := range h.refused {
		if !f.Memory {
			t.Errorf("a head was refused because %s, want the budget", f.Reason)
		}
	}
	h.mu.Unlock()
	last := ends[7]
	must.Get(io.WriteString(last, "\r\n\r\n"))(t)
	if res, err := http.ReadResponse(bufio.NewReader(last), nil); err != nil || res.StatusCode != http.StatusOK {
		t.Errorf("the newest head: %v, %v, want 200", res, err)
	}
}

// A response that is not read ends when others need what it holds.
func TestAnUnreadResponseMakesRoom(t *testing.T) {
	causes := make(chan error, 1)
	h := &recorder{serve: func(w *ResponseWriter, r *http.Request) {
		if r.RequestURI == "/x" {
			return
		}
		err := w.Respond(&http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(neverEnding{}),
			ContentLength: -1})
		causes <- fmt.Errorf("%w, for %w", err, context.Cause(r.Context()))
	}}
	b := budget.New(160 << 10)
	dial := sharing(t, b, h)
	unread := dial()
	must.Get(io.WriteString(unread, "GET /endless HTTP/1.1\r\nHost: a.example\r\n\r\n"))(t)
	for i := 0; ; i++ { // until it stands still
		conn := dial()
		must.Get(io.WriteString(conn, headOf(60<<10)))(t)
		select {
		case err := <-causes:
			if !strings.HasSuffix(err.Error(), budget.ErrShed.Error()) {
				t.Errorf("it ended with %v, want %v", err, budget.ErrShed)
			}
			return
		case <-time.After(20 * time.Millisecond):
		}
		if i == 1000 {
			t.Fatal("it was not shed")
		}
	}
}

type neverEnding struct{}

func (neverEnding) Read(p []byte) (int, error) { return len(p), nil }

// Between two requests a connection holds nothing, however large the last one was.
func TestAnIdleConnectionHoldsNothing(t *testing.T) {
	h := &recorder{}
	b := budget.New(0)
	conn := sharing(t, b, h)()
	br := bufio.NewReader(conn)
	for _, size := range []int{100, 60 << 10, 100} {
		must.Get(io.WriteString(conn, headOf(size)+"\r\n\r\n"))(t)
		res, err := http.ReadResponse(br, nil)
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatal(res, err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		await(t, b, func(used int64) bool { return used <= record })
	}
}

// A request whose upstream does not respond makes room for a new one, even when its
// own response has begun.
func TestExchangesThatAreKeptWaitingMakeRoom(t *testing.T) {
	for _, begun := range []bool{false, true} {
		asked, ended := make(chan struct{}, 5), make(chan error, 5)
		h := &recorder{serve: func(w *ResponseWriter, r *http.Request) {
			if r.URL.Path == "/quick" {
				return
			}
			if begun {
				_, _ = io.WriteString(w, "the beginning")
			}
			asked <- struct{}{}
			<-r.Context().Done()
			ended <- context.Cause(r.Context())
		}}
		dial := sharing(t, budget.New(400<<10), h)
		for range 5 { // 66 KiB each
			_, _ = io.WriteString(dial(), headOf(50<<10)+"\r\n\r\n")
			select {
			case <-asked:
			case <-time.After(patience):
				t.Fatalf("begun %v: there was no room for a request", begun)
			}
		}
		conn := dial()
		_, _ = io.WriteString(conn, strings.Replace(headOf(30<<10), "/x", "/quick", 1)+"\r\n\r\n")
		if res, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("begun %v: %v, %v", begun, res, err)
		}
		select {
		case why := <-ended:
			if !errors.Is(why, budget.ErrShed) {
				t.Errorf("begun %v: the first ended for %v", begun, why)
			}
		case <-time.After(patience):
			t.Errorf("begun %v: none of those that waited made room", begun)
		}
	}
}
