package wire

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ALRubinger/aileron/e2e/must"
)

// writeCounter counts the writes to a connection. It has no deadlines: those of a
// pipe allocate.
type writeCounter struct {
	net.Conn
	writes atomic.Int64
}

func (c *writeCounter) Write(p []byte) (int, error) { c.writes.Add(1); return c.Conn.Write(p) }

func (*writeCounter) SetReadDeadline(time.Time) error  { return nil }
func (*writeCounter) SetWriteDeadline(time.Time) error { return nil }

const smallRequest = "GET /v1/items HTTP/1.1\r\nHost: api.example\r\nUser-Agent: test\r\nAccept: */*\r\n\r\n"

// smallExchange returns a function that sends a request on one connection and
// reads its response, whose head and body are constant; and the server's end.
func smallExchange(t testing.TB) (func(), *writeCounter) {
	t.Helper()
	client, server := net.Pipe()
	body := bytes.NewReader([]byte(`{"id": 1}`))
	res := &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, ContentLength: 9,
		Body: io.NopCloser(body)}
	counted := &writeCounter{Conn: server}
	served := make(chan struct{})
	go func() {
		defer close(served)
		Serve(t.Context(), counted, Options{}, handlerFunc(func(w *ResponseWriter, _ *http.Request) {
			_, _ = body.Seek(0, io.SeekStart)
			_ = w.Respond(res)
		}))
	}()
	t.Cleanup(func() { client.Close(); <-served })
	request, buf := []byte(smallRequest), make([]byte, 4<<10)
	return func() {
		must.Get(client.Write(request))(t)
		for got := 0; !bytes.HasSuffix(buf[:got], []byte("}")); {
			n, err := client.Read(buf[got:])
			if got += n; err != nil {
				t.Fatal(err)
			}
		}
	}, counted
}

// In a bubble: a head whose body is late leaves before it.
func TestASmallResponseIsOneWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		exchange, conn := smallExchange(t)
		for range 100 {
			exchange()
		}
		if n := conn.writes.Load(); n != 100 {
			t.Errorf("100 responses were %d writes", n)
		}
	})
}

func TestAnExchangeTakesFewAllocations(t *testing.T) {
	exchange, _ := smallExchange(t)
	exchange()
	const most = 7 // of which 6 are the head
	if n := testing.AllocsPerRun(200, exchange); n > most && !underRace {
		t.Errorf("an exchange takes %v allocations, want %d", n, most)
	}
}

func BenchmarkExchange(b *testing.B) {
	exchange, _ := smallExchange(b)
	b.ReportAllocs()
	for b.Loop() {
		exchange()
	}
}
