package upstream

import (
	"crypto/tls"
	"net/http"
	"sync/atomic"
	"testing"
)

// A host that closes a connection under a request may have processed it. Only
// its route allows a second attempt, not a field that the client sends.
func TestAnIdempotencyKeyIsNoLeaveToRepeat(t *testing.T) {
	for _, clientH2 := range []bool{false, true} {
		for _, field := range []string{"Idempotency-Key", "X-Idempotency-Key"} {
			var posts atomic.Int32
			o := newOrigin(t, "http/1.1", func(n int64, c *tls.Conn) {
				respond(func(r *http.Request) string {
					if r.Method == http.MethodPost && posts.Add(1) == 1 && n == 1 {
						return ""
					}
					return "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
				})(n, c)
			})
			u := o.client(t)
			if status, _, err := roundTrip(u, newRequest(t, "GET", "/", nil), Route{HTTP2: clientH2}); status != 200 {
				t.Fatalf("the first request: %d, %v", status, err)
			}
			clear(u.versions.versions) // what is known of a host is forgotten when there are too many
			r := newRequest(t, "POST", "/", nil)
			r.Header.Set(field, "1")
			if _, _, err := roundTrip(u, r, Route{HTTP2: clientH2}); posts.Load() > 1 {
				t.Errorf("h2 client %t, %s: posted %d times, %v", clientH2, field, posts.Load(), err)
			}
		}
	}
}
