package attacks

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/proxy"
)

// flt: faults of everything that the plane stands on.
func flt() category {
	return category{name: "FLT", unrun: map[string]string{
		"FLT-07": "the program takes its time from the kernel, and there is no namespace for the wall clock; AUD-08 has a " +
			"clock that went back between two rows",
		"FLT-14": "it takes a day",
	}, cases: []attack{
		{id: "FLT-01", does: "killed at any point of a request, under load: nothing is sent twice, nothing was sent that " +
			"no row tells of, and it starts again", run: fltKilled},
		{id: "FLT-02", does: "asked to end with a hundred requests under way, it finishes them and takes no other",
			run: fltDrained},
		{id: "FLT-04", does: "an answer that breaks off is no whole one to the client, and the row says so", run: fltBroken},
		{id: "FLT-05", does: "a pooled connection that the origin ends just now costs a POST, never two",
			run: func(c *testCase) {
				api := c.origin("api.good.test")
				c.strays = true
				posted := 0
				api.plays(func(v *visit) {
					if v.Method == "POST" {
						<-time.After(2 * time.Millisecond) // work, in which some are cut off
					}
					v.reply(200, "done")
				})
				for i := range 20 {
					c.is("what fills the pool", c.get("api.good.test", "/v1/items"), 200)
					cut := make(chan struct{})
					go func() {
						defer close(cut)
						<-time.After(time.Duration(i) * 200 * time.Microsecond) // before, while and after the POST comes
						api.cut()
					}()
					a := c.post("api.good.test", "/v1/items", "once")
					if a.status != 200 { // it was cut off
						want := upstreamClosed
						if a.reason == upstreamReset.reason {
							want = upstreamReset // the kernel resets: what had come was not read yet
						}
						c.refused("the POST", a, want)
					}
					<-cut // what comes next is not in its way
					if a.status == 200 {
						posted++
					}
					got := 0
					for _, h := range api.seen() {
						if h.Method == "POST" {
							got++
						}
					}
					if got > i+1 {
						c.failf("the origin got %d POSTs of %d", got, i+1)
					}
					if got < posted {
						c.failf("%d POSTs were answered, and %d arrived", posted, got)
					}
				}
			}},
		{id: "FLT-08", does: "a name server that fails, in whatever way, is asked again by the next request",
			run: func(c *testCase) {
				for name, server := range map[string]struct {
					says func(*dnsmessage.Message) bool
					want refusal
				}{
					"silent": {func(*dnsmessage.Message) bool { return false }, upstreamTimeout},
					"failing": {func(m *dnsmessage.Message) bool { m.RCode = dnsmessage.RCodeServerFailure; return true },
						nameNotResolved},
					"denying": {func(m *dnsmessage.Message) bool { m.RCode = dnsmessage.RCodeNameError; return true },
						nameNotResolved},
					"refused": {func(m *dnsmessage.Message) bool { m.RCode = dnsmessage.RCodeRefused; return true }, nameNotResolved},
				} {
					c.elsewhere(name, fixture{set: func(cfg *proxy.Config) { cfg.Upstream.Dial = 2 * time.Second }},
						func(c *testCase) {
							on.names.says(server.says)
							c.refused("while it is down", c.get("api.good.test", "/v1/items"), server.want)
							c.untouched()
							on.names.says(nil)
							c.rows = -1 // on a busy machine the name may come too late once more
							c.eventually("it is up again", func() bool { return c.get2("api.good.test").status == 200 })
						})
				}
			}},
		{id: "FLT-10", does: "idle tunnels, half heads and compression bombs together stay in a quarter of a gigabyte",
			run: fltMemory},
		{id: "FLT-11", does: "a process that slept through its connections' ends serves what waited for it, once each",
			run: fltSlept},
		{id: "FLT-13", does: "a panic in one request ends that request, with a row, and tells nothing", run: fltPanics},
		{id: "FLT-16", does: "what is revoked, removed or ended is so on tunnels that are open, from the next request on",
			run: fltRevoked},
		{id: "FLT-17", does: "a box of a session that is gone is refused by the next one at the same address",
			run: func(c *testCase) {
				p := newPerson(c.t)
				p.install("plain")
				old := p.start()
				old.kill()
				fresh := p.start("--listen", old.addr)
				defer fresh.stop()
				fresh.on(c, "its token", func(c *testCase) {
					for _, raw := range []string{"CONNECT plain.good.test:443 HTTP/1.1\r\nHost: plain.good.test:443\r\n",
						"GET http://plain.good.test/v1/items HTTP/1.1\r\nHost: plain.good.test\r\n"} {
						c.refused("the old token", c.fwd(raw+"Proxy-Authorization: Basic "+basicAuth("aileron", old.token)+"\r\n\r\n"),
							noToken)
					}
					c.untouched()
				})
				fresh.on(c, "its CA", func(c *testCase) {
					l, a := c.connect("plain.good.test:443")
					c.rows++
					c.is("a tunnel", a, 200)
					if _, err := c.secure(l, &tls.Config{ServerName: "plain.good.test", RootCAs: old.roots}); err == nil {
						c.failf("who trusts the old CA trusts the new one")
					}
				})
			}},
	}}
}

// fltKilled kills the built program while it does each of the things that
// make a request up, beside others.
func fltKilled(c *testCase) {
	p := newPerson(c.t)
	p.bind("api")
	p.install("plain")
	api, plain := c.origin("api.good.test"), c.origin("plain.good.test")
	posts, others := 0, 0
	for _, point := range []string{"the tunnel's answer", "the handshake", "the request's body", "the origin's work",
		"the answer's body"} {
		arrived, release := make(chan struct{}, 8), make(chan struct{})
		api.reset()
		plain.reset()
		on.origins["plain.good.test:80"].reset()
		api.plays(func(v *visit) {
			arrived <- struct{}{}
			switch point {
			case "the request's body":
				v.body()
			case "the answer's body":
				v.body()
				v.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
			}
			<-release
			v.close = true
		})
		s := p.start()
		var load sync.WaitGroup
		for range 3 {
			load.Go(func() { // until it is killed
				for {
					conn, err := net.Dial("tcp", s.addr)
					if err != nil {
						return
					}
					_, _ = io.WriteString(conn,
						"GET http://plain.good.test/v1/items HTTP/1.1\r\nHost: plain.good.test\r\nConnection: "+
							"close\r\nProxy-Authorization: Basic "+basicAuth("s", s.token)+"\r\n\r\n")
					_, err = io.Copy(io.Discard, conn)
					_ = conn.Close()
					if err != nil {
						return
					}
				}
			})
		}
		d := &testCase{t: c.t, s: &s.subject, name: c.name}
		switch raw, a := d.connect("api.good.test"); {
		case a.status != 200:
			c.failf("%s: %s", point, a)
		case point == "the tunnel's answer":
		case point == "the handshake":
			_, _ = raw.Write([]byte{0x16, 3, 1, 2, 0}) // of a record of 512 bytes
		default:
			in, err := d.secure(raw, &tls.Config{ServerName: "api.good.test"})
			c.must(err)
			_, _ = io.WriteString(in, head("POST", "api.good.test", "/v1/items", "Content-Length: 8")+"half")
			if point != "the request's body" {
				_, _ = io.WriteString(in, "half")
			}
			d.wait("the request at the origin", arrived)
			if point == "the answer's body" {
				br := bufio.NewReader(in)
				for line, err := "", error(nil); line != "\r\n" && err == nil; {
					line, err = br.ReadString('\n')
				}
			}
		}
		s.kill()
		close(release)
		c.waitAll("the end of the other clients", &load)
		for _, l := range d.lines {
			_ = l.Close()
		}
		hits, _ := api.reset()
		want := map[bool]int{true: 0, false: 1}[point == "the tunnel's answer" || point == "the handshake"]
		if len(hits) != want {
			c.failf("%s: the origin got %d requests, want %d", point, len(hits), want)
		}
		posts += len(hits)
		loaded, _ := on.origins["plain.good.test:80"].reset()
		others += len(loaded)
		c.fails = append(c.fails, d.fails...)
	}
	told := map[string]int{}
	for _, r := range p.rows(0) {
		if r.Event == audit.EventProxyStarted {
			told[r.Host]++
		}
	}
	if told["api.good.test"] != posts || told["plain.good.test"] < others || others == 0 {
		c.failf("%d and %d requests arrived, and rows tell of %v", posts, others, told)
	}
	s := p.start()
	s.on(c, "afterwards", func(c *testCase) { c.is("a request", c.get("api.good.test", "/v1/items"), 200) })
	s.stop()
	if err := p.whole(); err != nil {
		c.failf("%v", err)
	}
}

func fltDrained(c *testCase) {
	p := newPerson(c.t)
	p.install("plain")
	s := p.start()
	plain := on.origins["plain.good.test:80"]
	plain.reset()
	release := make(chan struct{})
	plain.plays(func(v *visit) { <-release; v.reply(200, "finished") })
	const many = 100
	request := "GET http://plain.good.test/v1/items HTTP/1.1\r\nHost: plain.good.test\r\nProxy-Authorization: Basic " +
		basicAuth("s", s.token) + "\r\n\r\n"
	var finished atomic.Int64
	var asking sync.WaitGroup
	for range many {
		asking.Go(func() {
			conn, err := net.Dial("tcp", s.addr)
			if err != nil {
				c.failf("%v", err)
				return
			}
			defer conn.Close()
			_, _ = io.WriteString(conn, request)
			a := readAnswer(bufio.NewReader(conn), "GET")
			if a.status == 200 && a.body == "finished" && a.err == nil {
				finished.Add(1)
				return
			}
			c.failf("a request under way: %s %q (%v)", a, a.body, a.err)
		})
	}
	d := &testCase{t: c.t, s: &s.subject, name: c.name}
	d.eventually("all are at the origin", func() bool { return len(plain.seen()) == many })
	c.must(s.cmd.Process.Signal(syscall.SIGTERM))
	d.eventually("another is refused", func() bool {
		conn, err := net.Dial("tcp", s.addr)
		if err != nil {
			return errors.Is(err, syscall.ECONNREFUSED)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
		_, _ = io.WriteString(conn, request)
		a := readAnswer(bufio.NewReader(conn), "GET")
		return a.status == 0 || a.reason == "draining"
	})
	close(release)
	c.waitAll("the answers of a session that ends", &asking)
	if err := s.wait(); err != nil {
		c.failf("it ended with %v", err)
	}
	if n := finished.Load(); n != many {
		c.failf("%d of %d requests were finished", n, many)
	}
	rows, proxied := p.rows(0), 0
	for _, r := range rows {
		if r.Event == audit.EventProxyProxied && r.Reason == "" {
			proxied++
		}
	}
	// The signed head is behind the end.
	if last := rows[len(rows)-2]; proxied < many || last.Event != audit.EventSessionEnded {
		c.failf("%d rows tell of an end, and the last row is %s", proxied, last.Event)
	}
	plain.reset()
	c.fails = append(c.fails, d.fails...)
}

func fltBroken(c *testCase) {
	api := c.origin("api.good.test")
	half := repeated("half ", 100)
	for name, breaks := range map[string]func(v *visit){
		"an early end": func(v *visit) { v.send("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n%s", half) },
		"a reset": func(v *visit) {
			v.send("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n%s", half)
			reset(v.conn)
		},
		"no last chunk": func(v *visit) {
			v.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", len(half), half)
		},
		"half a chunk": func(v *visit) { v.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1000\r\n%s", half) },
	} {
		c.each(name, func(c *testCase) {
			api.plays(func(v *visit) { breaks(v); v.close = true })
			if a := c.get("api.good.test", "/v1/echo"); a.err == nil && a.status < 500 {
				c.failf("the client takes it for whole: %s", a)
			}
			rows := c.settledRows()
			if last := rows[len(rows)-1]; last.Reason != "upstream_truncated" || last.ResponseBytes > int64(len(half)) ||
				last.ResponseBytes == 0 && name != "a reset" {
				c.failf("the row says %q and %d bytes", last.Reason, last.ResponseBytes)
			}
		})
	}
	c.each("a stall", func(c *testCase) {
		release := make(chan struct{})
		api.plays(func(v *visit) { breaksAt(v, half, release); v.close = true })
		l := c.tunnel("api.good.test")
		c.rows++
		_, _ = io.WriteString(l, head("GET", "api.good.test", "/v1/echo"))
		got := make([]byte, 600)
		for n, err := 0, error(nil); err == nil && !strings.Contains(string(got), half[:400]); {
			var more int
			more, err = l.Read(got[n:])
			n += more
		}
		_ = l.Close() // as a client whose patience is at an end
		rows := c.settledRows()
		close(release)
		if last := rows[len(rows)-1]; last.Reason != "response_not_delivered" || last.ResponseBytes != int64(len(half)) {
			c.failf("the row says %q and %d bytes", last.Reason, last.ResponseBytes)
		}
	})
}

func breaksAt(v *visit, half string, release chan struct{}) {
	v.send("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n%s", half)
	<-release
}

// reset ends a connection as a crash does.
func reset(conn net.Conn) {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	if tcp, ok := conn.(*watched); ok {
		_ = tcp.SetLinger(0)
		_ = tcp.Close()
	}
}

func fltMemory(c *testCase) {
	p := newPerson(c.t)
	p.bind("api")
	s := p.start()
	defer s.stop()
	bomb := gzipped(repeated("\x00", 4<<20))
	s.on(c, "together", func(c *testCase) {
		c.bulk = true
		for range 80 {
			c.tunnel("api.good.test")
			l := c.dial()
			_, _ = io.WriteString(l, "GET http://api.good.test/ HTTP/1.1\r\nA: "+repeated("x", 60<<10))
		}
		c.origin("api.good.test").plays(func(v *visit) { v.reply(200, string(bomb), "Content-Encoding", "gzip") })
		for range 10 {
			c.refused("a bomb", c.get("api.good.test", "/v1/echo"), unsafeEncoding)
		}
		c.rows = -1 // half heads have rows when they end
	})
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	c.must(err)
	most := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	if n, err := strconv.Atoi(string(most[1])); err != nil || n > 256<<10 {
		c.failf("it held %d KiB at its most", n)
	}
}

func fltSlept(c *testCase) {
	p := newPerson(c.t)
	p.bind("api")
	s := p.start()
	defer s.stop()
	api := c.origin("api.good.test")
	s.on(c, "asleep", func(c *testCase) {
		c.is("before", c.get("api.good.test", "/v1/items"), 200)
		var lines []*line
		for range 10 {
			lines = append(lines, c.tunnel("api.good.test"))
		}
		before := len(c.hits("api.good.test"))
		c.must(s.cmd.Process.Signal(syscall.SIGSTOP))
		api.cut()
		for _, l := range lines {
			_, _ = io.WriteString(l, head("GET", "api.good.test", "/v1/items"))
		}
		c.must(s.cmd.Process.Signal(syscall.SIGCONT))
		for _, l := range lines {
			c.rows++
			c.is("what waited", readAnswer(bufio.NewReader(l), "GET"), 200)
		}
		if n := len(c.hits("api.good.test")) - before; n != len(lines) {
			c.failf("%d requests waited, and %d arrived", len(lines), n)
		}
	})
}

// startled is a log that panics at rows of one event about one path.
type startled struct {
	proxy.Recorder
	event audit.Event
	lost  chan audit.Row // those that it panicked at
}

func (s startled) look(r audit.Row) {
	if r.Event == s.event && strings.HasSuffix(r.Path, "/startle") {
		s.lost <- r
		panic("PANIC-VALUE " + on.secrets["S1"])
	}
}

func (s startled) Append(ctx context.Context, r audit.Row) (audit.Row, error) {
	s.look(r)
	return s.Recorder.Append(ctx, r)
}

func (s startled) AppendSoon(ctx context.Context, r audit.Row) error {
	s.look(r)
	return s.Recorder.AppendSoon(ctx, r)
}

func fltPanics(c *testCase) {
	quiet := func(c *testCase, a answer) {
		if text := a.body + string(c.s.logs()); strings.Contains(text, "PANIC-VALUE") ||
			strings.Contains(a.body, "goroutine") || strings.Contains(a.body, ".go:") {
			c.failf("what it panicked with is told: %s", text)
		}
	}
	c.elsewhere("in the policy", fixture{}, func(c *testCase) {
		c.s.plane.plane.SetGrants(&proxy.Grants{}) // no index to ask
		a := c.get("api.good.test", "/v1/items")
		c.refused("the request", a, internalError)
		quiet(c, a)
		c.s.plane.plane.SetGrants(c.s.plane.grants)
	})
	for event, status := range map[audit.Event]int{audit.EventProxyStarted: 502, audit.EventProxyRejected: 0,
		audit.EventProxyProxied: 0} {
		for version, ask := range map[string]func(c *testCase) answer{
			"HTTP/1.1": func(c *testCase) answer { return c.get("api.good.test", "/v1/items/startle") },
			"HTTP/2":   func(c *testCase) answer { return c.getH2("api.good.test", "/v1/items/startle") },
		} {
			lost := make(chan audit.Row, 4)
			c.elsewhere("at "+string(event)+" of "+version,
				fixture{set: func(cfg *proxy.Config) { cfg.Audit = startled{cfg.Audit, event, lost} }}, func(c *testCase) {
					if event == audit.EventProxyRejected {
						on.names.answers(func(name string, _ bool) ([]netip.Addr, bool) { return nil, name == "api.good.test" })
					}
					in := c.tunnel("plain.good.test")
					a := ask(c)
					if status != 0 {
						c.refused("the request", a, internalError)
					} else if a.status != 0 && a.err == nil {
						c.failf("got %s, want an end", a)
					}
					quiet(c, a)
					if status == 0 && event == audit.EventProxyRejected {
						c.untouched()
					}
					on.names.answers(nil)
					c.rows++
					c.is("a tunnel that was open", c.say(in, head("GET", "plain.good.test", "/v1/items"), "GET")[0], 200)
					if row := <-lost; event != audit.EventProxyStarted { // which has an outcome all the same
						_, err := c.s.plane.log.Append(context.Background(), row)
						c.must(err)
					}
				})
		}
	}
}

// getH2 asks for a path in a tunnel of its own that speaks HTTP/2.
func (c *testCase) getH2(host, target string) answer {
	c.rows++
	h := c.h2(host)
	h.request(1, "GET", host, target)
	return h.answer(1)
}

// kept is a tunnel that is used again and again, and opened anew when the
// plane has ended it: what was granted has changed.
type kept struct {
	c    *testCase
	host string
	l    *line
	br   *bufio.Reader
}

func (c *testCase) keep(host string) *kept { return &kept{c: c, host: host} }

func (k *kept) get(target string) answer {
	for range 2 {
		if k.l == nil {
			if k.l = k.c.tunnel(k.host); k.l == nil {
				return answer{}
			}
			k.br = bufio.NewReader(k.l)
		}
		_, _ = io.WriteString(k.l, head("GET", k.host, target))
		if a := readAnswer(k.br, "GET"); a.status != 0 {
			return a
		}
		_ = k.l.Close()
		k.l = nil
	}
	return answer{}
}

func fltRevoked(c *testCase) {
	p := newPerson(c.t)
	p.bind("api")
	p.install("plain")
	s := p.start()
	defer s.stop()
	d := &testCase{t: c.t, s: &s.subject, name: c.name}
	api, plain := d.keep("api.good.test"), d.keep("plain.good.test")
	d.is("bound", api.get("/v1/items"), 200)
	d.is("installed", plain.get("/v1/items"), 200)
	p.must("binding", "revoke", "bearer/api/test", "--yes")
	d.eventually("it is revoked", func() bool { return api.get("/v1/items").reason == "credential_not_bound" })
	p.must("connector", "remove", "github://attacks/plain")
	d.eventually("it is removed", func() bool { return plain.get("/v1/items").reason == "host_not_allowed" })
	before := len(d.hits("api.good.test")) + len(d.hits("plain.good.test"))
	for range 3 {
		d.refused("still", api.get("/v1/items"), notBound)
		d.refused("still", plain.get("/v1/items"), hostNotAllowed)
	}
	if n := len(d.hits("api.good.test")) + len(d.hits("plain.good.test")); n != before {
		c.failf("%d requests left after that", n-before)
	}
	p.must("session", "stop", s.id)
	if rest, err := io.ReadAll(api.br); len(rest) > 0 || err != nil && !errors.Is(err, io.ErrUnexpectedEOF) &&
		!errors.Is(err, syscall.ECONNRESET) {
		c.failf("the tunnel is not ended with its session: %q, %v", rest, err)
	}
	if err := s.wait(); err != nil {
		c.failf("the session: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(p.home, "sessions", "*")); len(left) != 0 {
		c.failf("%v is left", left)
	}
	c.fails = append(c.fails, d.fails...)
}
