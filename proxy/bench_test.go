package proxy

import (
	"bufio"
	"crypto/tls"
	"io"
	"net/http"
	"testing"

	"golang.org/x/sys/unix"
)

// BenchmarkExchange is one credentialed GET on a warm tunnel: match, intent
// row, inject, scrub, outcome row. Client and origin run beside it in this
// process; `just bench` measures the proxy alone.
func BenchmarkExchange(b *testing.B) {
	w := newWorldOf(b, false, func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "application/json")
		_, _ = rw.Write(benchBody)
	})
	w.quiet = true
	conn := w.tunnel("api.good.example")
	defer conn.Close()
	before := cpu(b)
	get(b, conn, bufio.NewReader(conn), b.N)
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

var benchBody = []byte(`{"id":1,"title":"a response of an ordinary length, as APIs have it",` +
	`"state":"open","labels":["a","b"]}`)

func get(b *testing.B, conn *tls.Conn, br *bufio.Reader, n int) {
	b.Helper()
	b.ReportAllocs()
	b.ResetTimer()
	for range n {
		_, err := io.WriteString(conn,
			"GET /v1/items HTTP/1.1\r\nHost: api.good.example\r\nUser-Agent: bench\r\nAccept: */*\r\n\r\n")
		must(b, err)
		res, err := http.ReadResponse(br, nil)
		must(b, err)
		if res.StatusCode != 200 {
			b.Fatal(res.Status)
		}
		_, _ = io.Copy(io.Discard, res.Body)
	}
}
