package proxy

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/ALRubinger/aileron/ca"
	"github.com/ALRubinger/aileron/e2e/must"
)

// BenchmarkTunnel is a new tunnel for one credentialed GET: CONNECT, a handshake
// without resumption, the exchange, the end. Its client runs in this process, and
// what it allocates and computes counts too: BenchmarkHandshake is the same
// client, and a server that does nothing but the handshake.
func BenchmarkTunnel(b *testing.B) {
	w := newWorldWith(b, false, scripted(b, "http/1.1", plainHeads.serve), nil)
	trusted := x509.NewCertPool()
	trusted.AddCert(w.ca.Root())
	benchmarkTunnel(b, w.addr, trusted)
}

func BenchmarkHandshake(b *testing.B) {
	authority := must.Get(ca.NewSession(ca.Options{Session: "handshake"}))(b)
	trusted := x509.NewCertPool()
	trusted.AddCert(authority.Root())
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
		GetCertificate: func(h *tls.ClientHelloInfo) (*tls.Certificate, error) { return authority.Leaf(h.ServerName) }}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.Do(b, err)
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
				plainHeads.serve(0, tls.Server(conn, cfg))
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
		conn := must.Get(net.Dial("tcp", addr))(b)
		defer conn.Close()
		must.Get(conn.Write(connect))(b)
		buf := make([]byte, 512)
		n := must.Get(conn.Read(buf))(b)
		if !bytes.HasPrefix(buf[:n], []byte("HTTP/1.1 200 ")) || !bytes.HasSuffix(buf[:n], []byte("\r\n\r\n")) {
			b.Fatalf("CONNECT was answered with %q", buf[:n])
		}
		must.Do(b, plainHeads.exchange(tls.Client(conn, cfg), 1))
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
