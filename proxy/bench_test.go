package proxy

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// BenchmarkExchange is one credentialed GET on a warm tunnel: match, intent
// row, inject, scrub, outcome row. Client and origin run beside it in this
// process, and write and read fixed bytes: what is allocated, the proxy
// allocates.
func BenchmarkExchange(b *testing.B) { benchmarkExchange(b, 1) }

// BenchmarkExchange64 is BenchmarkExchange on 64 tunnels at a time.
func BenchmarkExchange64(b *testing.B) { benchmarkExchange(b, 64) }

func benchmarkExchange(b *testing.B, clients int) {
	w := newWorldWith(b, false, scripted(b, "http/1.1", serveFixed), nil)
	conns := make([]*tls.Conn, clients)
	for i := range conns {
		conns[i] = w.tunnel("api.good.example")
		defer conns[i].Close() //nolint:revive // they are few
		must(b, exchangeFixed(conns[i], 10))
	}
	b.ReportAllocs()
	b.ResetTimer()
	before := cpu(b)
	var all sync.WaitGroup
	for i, conn := range conns {
		all.Go(func() {
			if err := exchangeFixed(conn, (b.N+i)/clients); err != nil {
				b.Error(err)
			}
		})
	}
	all.Wait()
	b.ReportMetric(float64(cpu(b)-before)/float64(b.N), "cpu-ns/op")
}

// cpu is the time this process has had a processor, which other processes
// disturb less than the wall clock.
func cpu(b *testing.B) int64 {
	b.Helper()
	var used unix.Rusage
	must(b, unix.Getrusage(unix.RUSAGE_SELF, &used))
	return used.Utime.Nano() + used.Stime.Nano()
}

const (
	fixedBody = `{"id":1,"title":"a response of an ordinary length, as APIs have it",` +
		`"state":"open","labels":["a","b"]}`
	fixedRequest = "GET /v1/items HTTP/1.1\r\nHost: api.good.example\r\nUser-Agent: bench\r\nAccept: */*\r\n\r\n"
)

var errNoFixedResponse = errors.New("the response is not the one of the origin")

// exchangeFixed makes n exchanges on conn.
func exchangeFixed(conn *tls.Conn, n int) error {
	request, body, buf := []byte(fixedRequest), []byte(fixedBody), make([]byte, 4<<10)
	for range n {
		if _, err := conn.Write(request); err != nil {
			return err
		}
		got := 0
		for !bytes.HasSuffix(buf[:got], body) {
			n, err := conn.Read(buf[got:])
			if got += n; err != nil {
				return fmt.Errorf("%w: %q", err, buf[:got])
			}
		}
		if !bytes.HasPrefix(buf[:got], []byte("HTTP/1.1 200 ")) {
			return errNoFixedResponse
		}
	}
	return nil
}

// serveFixed is an origin that responds to each request with fixed bytes.
func serveFixed(_ int, conn *tls.Conn) {
	response := fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"+
		"Date: Mon, 02 Jan 2006 15:04:05 GMT\r\nContent-Length: %d\r\n\r\n%s", len(fixedBody), fixedBody)
	buf := make([]byte, 4<<10)
	for got := 0; ; {
		n, err := conn.Read(buf[got:])
		if got += n; err != nil {
			return
		}
		if !bytes.HasSuffix(buf[:got], []byte("\r\n\r\n")) {
			continue
		}
		got = 0
		if _, err := conn.Write(response); err != nil {
			return
		}
	}
}
