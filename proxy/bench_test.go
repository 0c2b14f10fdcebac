package proxy

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/ca"
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

// BenchmarkTunnel is a new tunnel for one credentialed GET: CONNECT, a handshake
// without resumption, the exchange, the end. Its client runs in this process, and
// what it allocates and computes counts too: BenchmarkHandshake is the same
// client, and a server that does nothing but the handshake.
func BenchmarkTunnel(b *testing.B) {
	w := newWorldWith(b, false, scripted(b, "http/1.1", serveFixed), nil)
	trusted := x509.NewCertPool()
	trusted.AddCert(w.ca.Root())
	benchmarkTunnel(b, w.addr, trusted)
}

func BenchmarkHandshake(b *testing.B) {
	authority, err := ca.NewSession(ca.Options{Session: "handshake"})
	must(b, err)
	trusted := x509.NewCertPool()
	trusted.AddCert(authority.Root())
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
		GetCertificate: func(h *tls.ClientHelloInfo) (*tls.Certificate, error) { return authority.Leaf(h.ServerName) }}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(b, err)
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = conn.Read(make([]byte, 4<<10))
				_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
				serveFixed(0, tls.Server(conn, cfg))
			}()
		}
	}()
	benchmarkTunnel(b, l.Addr().String(), trusted)
}

func benchmarkTunnel(b *testing.B, addr string, trusted *x509.CertPool) {
	cfg := &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12, ServerName: "api.good.example",
		NextProtos: []string{"http/1.1"}}
	connect := fmt.Appendf(nil, "CONNECT api.good.example:443 HTTP/1.1\r\nHost: api.good.example:443\r\n"+
		"Proxy-Authorization: Basic %s\r\n\r\n", base64.StdEncoding.EncodeToString([]byte("x:"+testToken)))
	once := func() {
		conn, err := net.Dial("tcp", addr)
		must(b, err)
		defer conn.Close()
		_, err = conn.Write(connect)
		must(b, err)
		buf := make([]byte, 512)
		n, err := conn.Read(buf)
		must(b, err)
		if !bytes.HasPrefix(buf[:n], []byte("HTTP/1.1 200 ")) || !bytes.HasSuffix(buf[:n], []byte("\r\n\r\n")) {
			b.Fatalf("CONNECT was answered with %q", buf[:n])
		}
		must(b, exchangeFixed(tls.Client(conn, cfg), 1))
	}
	once()
	b.ReportAllocs()
	before := cpu(b)
	n := 0
	for b.Loop() {
		once()
		n++
	}
	b.ReportMetric(float64(cpu(b)-before)/float64(n), "cpu-ns/op")
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
