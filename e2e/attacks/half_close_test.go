package attacks

import (
	"bufio"
	"crypto/tls"
	"io"
	"strings"
	"sync"
	"time"
)

// conHalfClosed has clients that end their outbound half behind a whole request
// and wait: RFC 9112 section 9.6.
func conHalfClosed(c *testCase) {
	ends := map[string]func(*line){
		"close_notify": func(l *line) { l.end() },
		"FIN":          func(l *line) { l.Conn.(*tls.Conn).NetConn().(*line).end() },
		"both":         func(l *line) { l.end(); l.Conn.(*tls.Conn).NetConn().(*line).end() },
	}
	for request, raw := range map[string]string{
		"GET":    head("GET", "api.good.test", "/v1/items"),
		"a body": head("POST", "api.good.test", "/v1/items", "Content-Length: 5") + "hello",
		"chunked": head("POST", "api.good.test", "/v1/items", "Transfer-Encoding: chunked") +
			"5\r\nhello\r\n0\r\n\r\n",
		"to be the last": head("GET", "api.good.test", "/v1/items", "Connection: close"),
	} {
		method, _, _ := strings.Cut(raw, " ")
		for how, end := range ends {
			c.each(request+", "+how, func(c *testCase) { c.halfCloses(method, raw, end) })
		}
	}
	c.each("a stream", func(c *testCase) {
		next := make(chan struct{})
		release := sync.OnceFunc(func() { close(next) })
		defer release()
		c.origin("api.good.test").plays(func(v *visit) {
			v.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
			v.send("9\r\ndata: 1\n\n\r\n")
			<-next
			v.send("9\r\ndata: 2\n\n\r\n0\r\n\r\n")
			v.close = true
		})
		l := c.tunnel("api.good.test")
		c.rows++
		_, err := io.WriteString(l, head("GET", "api.good.test", "/v1/echo"))
		c.must(err)
		l.end()
		time.AfterFunc(longerThanWatched, release)
		if a := readAnswer(bufio.NewReader(l), "GET"); a.err != nil || a.body != "data: 1\n\ndata: 2\n\n" {
			c.failf("the client got %s, %v", a, a.err)
		}
		_ = l.Close()
		c.whollyProxied()
	})
}

// longerThanWatched is longer than the plane waits before it watches a client.
const longerThanWatched = 150 * time.Millisecond

func (c *testCase) halfCloses(method, raw string, end func(*line)) {
	ended := make(chan struct{})
	c.origin("api.good.test").plays(func(v *visit) {
		v.body()
		<-ended
		v.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwhole")
		v.close = true
	})
	l := c.tunnel("api.good.test")
	c.rows++
	_, err := io.WriteString(l, raw)
	c.must(err)
	end(l)
	time.AfterFunc(longerThanWatched, func() { close(ended) })
	if a := readAnswer(bufio.NewReader(l), method); a.status != 200 || a.err != nil || a.body != "whole" {
		c.failf("the client got %s, %v", a, a.err)
	}
	_ = l.Close()
	c.whollyProxied()
}

// whollyProxied fails the case unless its row records that the response was read
// to its end.
func (c *testCase) whollyProxied() {
	rows := c.settledRows()
	if r := rows[len(rows)-1]; r.Decision != "proxied" || r.Reason != "" || r.Status != 200 ||
		len(c.hits("api.good.test")) != 1 {
		c.failf("the row says %s %q, status %d, of %d requests", r.Decision, r.Reason, r.Status, len(c.hits("api.good.test")))
	}
}
