package upstream

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/e2e/must"
)

// answering is a host in clear that answers whatever it reads with a fixed
// response, in one write.
func answering(t testing.TB, response string) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.Do(t, err)
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
	must.Do(t, err)
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

// BenchmarkReadResponse measures the head of a response of a code host's API.
func BenchmarkReadResponse(b *testing.B) {
	head := []byte(strings.ReplaceAll(apiHead, "\n", "\r\n"))
	src := bytes.NewReader(nil)
	pc := (&h1Pool{}).newConn("", &memoryConn{Reader: src}, nil)
	b.ReportAllocs()
	var used, now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &used)
	for b.Loop() {
		src.Reset(head)
		pc.r.Reset(pc)
		pc.headLeft = maxResponseHead
		if _, err := pc.readResponse(http.MethodGet, &attempt{}); err != nil {
			b.Fatal(err)
		}
	}
	_ = unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &now)
	b.ReportMetric(float64(now.Nano()-used.Nano())/float64(b.N), "cpu-ns/op")
}

// memoryConn is a connection that has a reader alone.
type memoryConn struct {
	net.Conn
	io.Reader
}

func (c *memoryConn) Read(p []byte) (int, error) { return c.Reader.Read(p) }

const apiHead = `HTTP/1.1 200 OK
Date: Mon, 17 Feb 2025 16:20:44 GMT
Content-Type: application/json; charset=utf-8
Cache-Control: private, max-age=60, s-maxage=60
Vary: Accept, Authorization, Cookie, Accept-Encoding
ETag: W/"4f3ffb3ad1b2ce6ed1b1cc1b7c4d4d4ea2a3ad5bd8d7d1d2fb4a3c9d7e1f0a5b"
Last-Modified: Mon, 17 Feb 2025 16:20:44 GMT
X-RateLimit-Limit: 5000
X-RateLimit-Remaining: 4987
X-RateLimit-Reset: 1136217845
X-RateLimit-Used: 13
Access-Control-Expose-Headers: ETag, Link, Location, Retry-After, X-RateLimit-Limit, X-RateLimit-Remaining
Access-Control-Allow-Origin: *
Strict-Transport-Security: max-age=31536000; includeSubdomains; preload
X-Frame-Options: deny
X-Content-Type-Options: nosniff
Referrer-Policy: origin-when-cross-origin, strict-origin-when-cross-origin
Content-Security-Policy: default-src 'none'
Server: bench
X-Request-Id: E4C2:1F3A7B:2B9C1D5:2D0F8A1:67B36AEC
Content-Length: 1201

`
