package upstream

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"testing"
)

// answering is a host in clear that answers whatever it reads with a fixed
// response, in one write.
func answering(t testing.TB, response string) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		buf, answer := make([]byte, 16<<10), []byte(response)
		for {
			if _, err := conn.Read(buf); err != nil {
				return
			}
			if _, err := conn.Write(answer); err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() { l.Close(); <-ended })
	return l.Addr().(*net.TCPAddr).AddrPort()
}

// callCounter counts the calls of a connection's methods.
type callCounter struct {
	*net.TCPConn
	reads, writes atomic.Int64
}

func (c *callCounter) Read(p []byte) (int, error)  { c.reads.Add(1); return c.TCPConn.Read(p) }
func (c *callCounter) Write(p []byte) (int, error) { c.writes.Add(1); return c.TCPConn.Write(p) }

const smallResponse = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 13\r\n\r\n{\"id\": \"123\"}"

// pooledRoundTrip returns a function that sends one request on a connection that
// it keeps, and reads the whole response; and that connection's calls.
func pooledRoundTrip(t testing.TB) (func(), *callCounter) {
	t.Helper()
	at := answering(t, smallResponse)
	u, err := New(Options{})
	must(t, err)
	t.Cleanup(u.Close)
	calls := &callCounter{}
	u.pool(Key{}).h1.dial = func(context.Context, string) (*countedConn, error) {
		conn, err := net.Dial("tcp", at.String())
		if err != nil {
			return nil, err
		}
		calls.TCPConn = conn.(*net.TCPConn)
		return &countedConn{Conn: calls}, nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	r := clearRequest(ctx, nil)
	r.Method = http.MethodGet
	r.Header = http.Header{"Accept": {"*/*"}, "User-Agent": {"test"}}
	body := make([]byte, 64)
	return func() {
		res, err := u.RoundTrip(r, Route{})
		if err != nil {
			t.Fatal(err)
		}
		if n, err := res.Body.Read(body); n != 13 || err != io.EOF {
			t.Fatalf("%d bytes, %v", n, err)
		}
	}, calls
}

func TestASmallExchangeIsOneWriteAndOneRead(t *testing.T) {
	roundTrip, calls := pooledRoundTrip(t)
	for range 100 {
		roundTrip()
	}
	if w, r := calls.writes.Load(), calls.reads.Load(); w != 100 || r != 100 {
		t.Errorf("100 exchanges were %d writes and %d reads", w, r)
	}
}

func TestARoundTripOnAPooledConnectionTakesFewAllocations(t *testing.T) {
	roundTrip, _ := pooledRoundTrip(t)
	roundTrip()
	// Of which 6 are the response; its watch over the request's context, the attempt,
	// and the socket's address for the look at it are the others.
	const most = 12
	if n := testing.AllocsPerRun(200, roundTrip); n > most && !underRace {
		t.Errorf("a round trip takes %v allocations, want %d", n, most)
	}
}

func BenchmarkPooledRoundTrip(b *testing.B) {
	roundTrip, _ := pooledRoundTrip(b)
	b.ReportAllocs()
	for b.Loop() {
		roundTrip()
	}
}
