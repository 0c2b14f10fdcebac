package proxy

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/e2e/must"
)

// BenchmarkExchange is one credentialed GET on a warm tunnel: match, intent
// row, inject, scrub, outcome row. Client and origin run beside it in this
// process, and write and read fixed bytes: what is allocated, the proxy
// allocates.
func BenchmarkExchange(b *testing.B) { benchmarkExchange(b, 1, plainHeads) }

// BenchmarkExchange64 is BenchmarkExchange on 64 tunnels at a time.
func BenchmarkExchange64(b *testing.B) { benchmarkExchange(b, 64, plainHeads) }

// BenchmarkExchangeHeads is BenchmarkExchange with heads as a command line client
// and a code host send them.
func BenchmarkExchangeHeads(b *testing.B) { benchmarkExchange(b, 1, realHeads) }

func benchmarkExchange(b *testing.B, clients int, h heads) {
	w := newWorldWith(b, false, scripted(b, "http/1.1", h.serve), nil)
	conns := make([]*tls.Conn, clients)
	for i := range conns {
		conns[i] = w.tunnel("api.good.example")
		defer conns[i].Close() //nolint:revive // they are few
		must.Do(b, h.exchange(conns[i], 10))
	}
	w.signHead()
	b.ReportAllocs()
	b.ResetTimer()
	before := cpu(b)
	var all sync.WaitGroup
	for i, conn := range conns {
		all.Go(func() {
			if err := h.exchange(conn, (b.N+i)/clients); err != nil {
				b.Error(err)
			}
		})
	}
	all.Wait()
	b.ReportMetric(float64(cpu(b)-before)/float64(b.N), "cpu-ns/op")
}

// signHead signs the head of the audit log, since the first signature of a process costs as much as thirty exchanges.
func (w *world) signHead() {
	must.Get(w.log.SignedHead(w.t.Context()))(w.t)
}

// cpu is the time this process has had a processor, which other processes
// disturb less than the wall clock.
func cpu(b *testing.B) int64 {
	b.Helper()
	var used unix.Rusage
	must.Do(b, unix.Getrusage(unix.RUSAGE_SELF, &used))
	return used.Utime.Nano() + used.Stime.Nano()
}

const fixedBody = `{"id":1,"title":"a response of an ordinary length, as APIs have it",` +
	`"state":"open","labels":["a","b"]}`

// heads are the fields of a fixed request and its fixed response.
type heads struct{ request, response string }

var (
	plainHeads = heads{
		"User-Agent: bench\nAccept: */*",
		"Content-Type: application/json\nDate: Mon, 02 Jan 2006 15:04:05 GMT",
	}
	realHeads = heads{
		`Accept: application/vnd.github.merge-info-preview+json, application/vnd.github.nebula-preview
Accept-Encoding: gzip
Authorization: token placeholder-of-the-session
Connection: keep-alive
Content-Type: application/json; charset=utf-8
Time-Zone: Europe/Berlin
User-Agent: GitHub CLI 2.63.0
X-Gh-Cache-Ttl: 24h0m0s`,
		`Date: Mon, 02 Jan 2006 15:04:05 GMT
Content-Type: application/json; charset=utf-8
Cache-Control: private, max-age=60, s-maxage=60
Vary: Accept, Authorization, Cookie, X-GitHub-OTP,Accept-Encoding, Accept, X-Requested-With
ETag: W/"4f3ffb3ad1b2ce6ed1b1cc1b7c4d4d4ea2a3ad5bd8d7d1d2fb4a3c9d7e1f0a5b"
X-OAuth-Scopes: gist, read:org, repo, workflow
X-Accepted-OAuth-Scopes: repo
X-GitHub-Media-Type: github.v3; format=json
X-GitHub-Api-Version-Selected: 2022-11-28
X-RateLimit-Limit: 5000
X-RateLimit-Remaining: 4987
X-RateLimit-Reset: 1136217845
X-RateLimit-Used: 13
X-RateLimit-Resource: core
Access-Control-Expose-Headers: ETag, Link, Location, Retry-After, X-GitHub-OTP, X-RateLimit-Limit
Access-Control-Allow-Origin: *
Strict-Transport-Security: max-age=31536000; includeSubdomains; preload
X-Frame-Options: deny
X-Content-Type-Options: nosniff
X-XSS-Protection: 0
Referrer-Policy: origin-when-cross-origin, strict-origin-when-cross-origin
Content-Security-Policy: default-src 'none'
Server: github.com
X-GitHub-Request-Id: C5E2:3A1B2C:11F4E5A:2D3C4B5:6751A2B3`,
	}
)

var errNoFixedResponse = errors.New("the response is not the one of the origin")

// exchange makes n exchanges on conn.
func (h heads) exchange(conn *tls.Conn, n int) error {
	head := "GET /v1/items HTTP/1.1\nHost: api.good.example\n" + h.request + "\n\n"
	request := []byte(strings.ReplaceAll(head, "\n", "\r\n"))
	body, buf := []byte(fixedBody), make([]byte, 8<<10)
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

// serve is an origin that responds to each request with fixed bytes.
func (h heads) serve(_ int, conn *tls.Conn) {
	response := []byte(strings.ReplaceAll(fmt.Sprintf("HTTP/1.1 200 OK\n%s\nContent-Length: %d\n\n", h.response,
		len(fixedBody)), "\n", "\r\n") + fixedBody)
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
