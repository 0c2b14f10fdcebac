package attacks

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/ALRubinger/aileron/proxy"
)

// dos: clients that take more than their part.
func dos() category {
	limits := func(set func(*proxy.Limits)) *fixture {
		return &fixture{set: func(cfg *proxy.Config) { set(&cfg.Limits) }}
	}
	return category{name: "DOS", unrun: map[string]string{
		"DOS-04": "e2e/protocol opens ten thousand idle tunnels",
	}, cases: join(written("exhaustion"), []attack{
		{id: "DOS-01", does: "heads that never end are ended, and others are served meanwhile",
			f: limits(func(l *proxy.Limits) { l.Wire.Header, l.Handshake = 3*time.Second, 3*time.Second }),
			run: func(c *testCase) {
				slow := map[*line]string{} // all at once: each takes as long as the limit
				for name, begin := range map[string]string{"a head": "GET http://plain.good.test/ HTTP/1.1\r\nX: ",
					"a request line": "GE", "one byte": "C"} {
					for range 25 {
						l := c.dial()
						_, _ = io.WriteString(l, begin)
						slow[l] = name
					}
				}
				l, a := c.connect("api.good.test")
				c.is("CONNECT", a, 200)
				_, _ = io.WriteString(l, "\x16\x03\x01")
				slow[l] = "no handshake"
				c.rows = -1 // on a busy machine an honest client is too slow, too, and asks again
				c.eventually("a request meanwhile is served", func() bool { return c.get2("api.good.test").status == 200 })
				for l, name := range slow {
					if _, err := io.Copy(io.Discard, l); err != nil && !strings.Contains(err.Error(), "reset") {
						c.failf("%s: a slow connection was kept: %v", name, err)
					}
				}
			}},
		{id: "DOS-02", does: "a body that comes byte by byte is ended",
			f: limits(func(l *proxy.Limits) { l.Wire.Progress = 400 * time.Millisecond }), run: func(c *testCase) {
				c.strays = true
				l := c.tunnel("api.good.test")
				c.rows++
				_, _ = io.WriteString(l, head("POST", "api.good.test", "/v1/items", "Content-Length: 1000000"))
				stop := make(chan struct{})
				stopped := make(chan struct{})
				go func() {
					defer close(stopped)
					for {
						select {
						case <-stop:
							return
						case <-time.After(20 * time.Millisecond):
							_, _ = io.WriteString(l, "x")
						}
					}
				}()
				a := readAnswer(bufio.NewReader(l), "POST")
				close(stop)
				<-stopped
				c.ended("the request", a, requestTooSlow)
			}},
		{id: "DOS-05", does: "over a limit a client is told so, and under it again served", run: dosCaps},
		{id: "DOS-07", does: "CONNECTs to names without number resolve and keep nothing", run: func(c *testCase) {
			before := heap()
			for i := range 1500 {
				l, a := c.connect(fmt.Sprintf("r%d.good.test", i))
				c.is("CONNECT", a, 200) // a CONNECT alone is no request; its refusal would be said inside
				_ = l.Close()
			}
			c.lines = c.lines[:1]
			if after := heap(); after > before+16<<20 {
				c.failf("the heap grew by %d MiB", (after-before)>>20)
			}
		}},
		{id: "DOS-08", does: "SNIs that are not the tunnel's get no certificate", run: func(c *testCase) {
			for i := range 150 {
				l, a := c.connect("api.good.test")
				c.is("CONNECT", a, 200)
				c.rows++
				_, err := c.secure(l, &tls.Config{ServerName: fmt.Sprintf("rand%d.good.test", i), InsecureSkipVerify: true,
					VerifyPeerCertificate: func([][]byte,
						[][]*x509.Certificate) error {
						c.failf("a certificate came")
						return errors.New("no")
					}})
				if err == nil {
					c.failf("the handshake was taken")
				}
			}
		}},
		{id: "DOS-11", does: "a body over the limit is refused, before it is read where its length is announced",
			f: limits(func(l *proxy.Limits) { l.Wire.Body = 1 << 20 }), run: func(c *testCase) {
				c.each("length", func(c *testCase) {
					c.refused("the request", c.tun("api.good.test",
						head("POST", "api.good.test", "/v1/items", "Content-Length: 10737418240")), bodyTooLarge)
					c.untouched()
				})
				c.each("chunked", func(c *testCase) {
					c.strays, c.anew = true, true
					c.ended("the request", c.tun("api.good.test",
						head("POST", "api.good.test", "/v1/items", "Transfer-Encoding: chunked")+
							repeated("1000\r\n"+strings.Repeat("x", 4096)+"\r\n", 600)), bodyTooLarge)
				})
				c.each("HTTP/2", func(c *testCase) {
					h := c.h2("api.good.test")
					c.rows++
					h.post("10737418240")
					c.ended("the request", h.answer(1), bodyTooLarge)
					c.untouched()
				})
			}},
		{id: "DOS-13", does: "a call by name that is too large, too deep or ambiguous is refused, and calls go on",
			run: hugeCalls},
		{id: "DOS-14", does: "of a flood of refusals no row is lost", run: func(c *testCase) {
			c.bulk = true
			const conns, each = 8, 75
			c.rows = conns * each
			one := head("GET", "api.good.test", "/admin")
			var group sync.WaitGroup
			for range conns {
				l := c.tunnel("api.good.test")
				if l == nil {
					return
				}
				group.Go(func() {
					go func() { _, _ = io.WriteString(l, strings.Repeat(one, each)) }()
					br := bufio.NewReader(l)
					for range each {
						_ = l.SetDeadline(time.Now().Add(c.s.patience)) // of one answer: each waits for its row
						a := readAnswer(br, "GET")
						if c.refused("a refusal of a flood", a, operationNone); a.status == 0 {
							return
						}
					}
				})
			}
			group.Wait() // no longer than its answers
			c.untouched()
		}},
		{id: "DOS-16", does: "one session's flood is not another's", run: func(c *testCase) {
			other := newWorld(c.t, fixture{set: func(cfg *proxy.Config) { cfg.Limits.Connections = 50 }})
			defer other.stop()
			c.reaches = func(d dial) bool { return d.to.String() == other.addr }
			stop := make(chan struct{})
			var flood sync.WaitGroup
			for range 4 {
				flood.Go(func() {
					hostile := &testCase{t: c.t, s: &other.subject, name: c.name}
					for {
						select {
						case <-stop:
							return
						default:
						}
						l, _ := hostile.connect("evil.test")
						_, _ = hostile.secure(l, &tls.Config{ServerName: "evil.test"})
						for _, l := range hostile.lines {
							_ = l.Close()
						}
						hostile.lines = nil
					}
				})
			}
			for range 15 {
				c.is("a request of the other session", c.get("api.good.test", "/v1/items"), 200)
			}
			close(stop)
			c.waitAll("the end of the other session's flood", &flood)
		}},
	})}
}

func dosCaps(c *testCase) {
	told := func(c *testCase, a answer, want refusal) {
		c.refused("over the limit", a, want)
		if a.header.Get("Retry-After") == "" {
			c.failf("a %d without Retry-After", want.status)
		}
	}
	with := func(name string, set func(*proxy.Limits), ask func(c *testCase)) {
		c.each(name, func(c *testCase) {
			w := newWorld(c.t, fixture{set: func(cfg *proxy.Config) { set(&cfg.Limits) }})
			defer w.stop()
			c.rows = -1
			c.as(w, func() { ask(c) })
			c.unfit = true
		})
	}
	with("connections", func(l *proxy.Limits) { l.Connections = 4 }, func(c *testCase) {
		var held []*line
		for range 4 {
			l, a := c.connect("api.good.test")
			c.is("CONNECT", a, 200)
			held = append(held, l)
		}
		told(c, c.absolute("http://plain.good.test/v1/items", "plain.good.test"), tooManyConns)
		for _, l := range held {
			_ = l.Close()
		}
		c.eventually("a connection is free again", func() bool { return c.get2("api.good.test").status == 200 })
	})
	with("requests", func(l *proxy.Limits) { l.Requests = 2 }, func(c *testCase) {
		let := make(chan struct{})
		c.origin("api.good.test").plays(func(v *visit) { <-let; v.reply(200, "hello") })
		var busy sync.WaitGroup
		for range 2 {
			l := c.tunnel("api.good.test")
			busy.Go(func() {
				_, _ = io.WriteString(l, head("GET", "api.good.test", "/v1/items"))
				if a := readAnswer(bufio.NewReader(l), "GET"); a.status != 200 {
					c.failf("a request under the limit got %s", a)
				}
			})
		}
		c.eventually("two are under way", func() bool { return len(c.hits("api.good.test")) == 2 })
		told(c, c.get("key.good.test", "/v1/items"), tooManyRequests)
		close(let)
		c.waitAll("the answers to the requests under the limit", &busy)
		c.eventually("there is room again", func() bool { return c.get2("key.good.test").status == 200 })
	})
	with("rate", func(l *proxy.Limits) { l.Rate = 1 }, func(c *testCase) { // which not even twenty slow requests keep
		for range 20 {
			if a := c.absolute("http://plain.good.test/v1/items", "plain.good.test"); a.status == 429 {
				told(c, a, rateExceeded)
				return
			}
		}
		c.failf("no request of twenty was over the rate")
	})
}

// get2 asks as get does, but does not mind when there is no tunnel.
func (c *testCase) get2(host string) answer {
	l, a := c.connect(host)
	if a.status != 200 {
		return a
	}
	in, err := c.secure(l, &tls.Config{ServerName: host})
	if err != nil {
		return answer{err: err}
	}
	return c.say(in, head("GET", host, "/v1/items"), "GET")[0]
}
