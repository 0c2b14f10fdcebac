package proxy

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/spec"
)

func TestABodyThatTricklesIsRefused(t *testing.T) {
	w := newWorldWith(t, false, func(c *Config) { c.Limits.Wire.Progress = 200 * time.Millisecond }, hello)
	conn := w.tunnel("api.good.example")
	defer conn.Close()
	_, err := io.WriteString(conn, "POST /v1/items HTTP/1.1\r\nHost: api.good.example\r\nContent-Length: 100000\r\n\r\n")
	must.Do(t, err)
	go func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for range 100 {
			if _, err := io.WriteString(conn, "x"); err != nil {
				return
			}
			<-tick.C
		}
	}()
	res := must.Get(http.ReadResponse(bufio.NewReader(conn), nil))(t)
	body, _ := io.ReadAll(res.Body)
	if class, why := reason(t, string(body)); res.StatusCode != 408 || class != "timeout" || why != ReasonSlow {
		t.Errorf("got %d %s", res.StatusCode, body)
	}
}

func TestRequestsOverTheCapAreTold(t *testing.T) {
	held, let := make(chan struct{}), make(chan struct{})
	w := newWorldWith(t, false, func(c *Config) { c.Limits.Requests = 1 }, func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/echo" {
			held <- struct{}{}
			<-let
		}
	})
	var wait sync.WaitGroup
	wait.Go(func() { _, _ = w.do("GET", "https://api.good.example/v1/echo", "") })
	<-held
	res, body := w.do("GET", "https://api.good.example/v1/items", "")
	close(let)
	wait.Wait()
	if class, why := reason(t, body); res.StatusCode != 503 || class != "unavailable" || why != ReasonOverload ||
		res.Header.Get("Retry-After") == "" {
		t.Errorf("got %d %s", res.StatusCode, body)
	}
	if res, _ := w.do("GET", "https://api.good.example/v1/items", ""); res.StatusCode != 200 {
		t.Errorf("after the others ended: %d", res.StatusCode)
	}
}

func TestABodyOverTheCapIsRefused(t *testing.T) {
	w := newWorldWith(t, false, func(c *Config) { c.Limits.Wire.Body = 1000 }, hello)
	for _, client := range []*http.Client{w.client, w.h2client()} {
		w.client = client
		for _, length := range []bool{true, false} {
			var body io.Reader = strings.NewReader(strings.Repeat("x", 5000))
			if !length {
				body = struct{ io.Reader }{body}
			}
			res := must.Get(client.Post("https://api.good.example/v1/items", "text/plain", body))(t)
			got, _ := io.ReadAll(res.Body)
			res.Body.Close()
			if _, why := reason(t, string(got)); res.StatusCode != 413 || why != ReasonTooLarge {
				t.Errorf("%s, length %t: got %d %s", res.Proto, length, res.StatusCode, got)
			}
		}
	}
}

func TestRequestsOverTheRateAreTold(t *testing.T) {
	w := newWorldWith(t, false, func(c *Config) { c.Limits.Rate = 1 }, hello)
	var last *http.Response
	var body string
	for range 100 { // a CONNECT and requests: the bucket holds one, and fills slower than this
		if last, body = w.do("GET", "https://api.good.example/v1/items", ""); last.StatusCode != 200 {
			break
		}
	}
	class, why := reason(t, body)
	if last.StatusCode != 429 || class != "resource_limit_exceeded" || why != ReasonRate ||
		last.Header.Get("Retry-After") == "" {
		t.Errorf("got %d %s", last.StatusCode, body)
	}
}

// otherGrants returns grants that are not those in force, and allow these requests all the same.
func otherGrants(w *world) *Grants {
	g := w.plane.grants.Load()
	return &Grants{Index: g.Index, Bound: g.Bound, Scrub: g.Scrub,
		Unreadable: map[spec.FQN]Reason{"github://acme/another": ReasonConnectorUnreadable}}
}

func TestATunnelThatHasNotAskedYetOutlivesNewGrants(t *testing.T) {
	w := newWorld(t, hello)
	conn := w.tunnel("api.good.example")
	defer conn.Close()
	w.taken(conn) // the plane waits for the request
	w.plane.SetGrants(otherGrants(w))
	must.Get(io.WriteString(conn, "GET /v1/items HTTP/1.1\r\nHost: api.good.example\r\n\r\n"))(t)
	res := must.Get(http.ReadResponse(bufio.NewReader(conn), nil))(t)
	if res.StatusCode != http.StatusOK {
		t.Errorf("got %d, want 200", res.StatusCode)
	}
}

func TestIdleTunnelsEndWhenTheGrantsChange(t *testing.T) {
	w := newWorld(t, hello) // which ends no tunnel for being idle
	conn := w.tunnel("api.good.example")
	defer conn.Close()
	br := bufio.NewReader(conn)
	ask := func() error {
		if _, err := io.WriteString(conn, "GET /v1/items HTTP/1.1\r\nHost: api.good.example\r\n\r\n"); err != nil {
			return err
		}
		res, err := http.ReadResponse(br, nil)
		if err == nil {
			_, err = io.Copy(io.Discard, res.Body)
		}
		return err
	}
	must.Do(t, ask())
	w.plane.SetGrants(otherGrants(w))
	_ = conn.SetReadDeadline(time.Now().Add(testPatience))
	if _, err := br.ReadByte(); err != io.EOF {
		t.Errorf("the idle tunnel ends with %v, want EOF", err)
	}
}

func TestEndlessDenialsAreSlowedDown(t *testing.T) {
	w := newWorld(t, hello)
	w.plane.denialRate = rate.NewLimiter(rate.Every(time.Hour), 3)
	w.plane.cfg.Limits.Drain = time.Second
	for range 3 {
		if res, _ := w.do("GET", "https://other.example/", ""); res.StatusCode != 403 {
			t.Fatalf("got %d", res.StatusCode)
		}
	}
	answered := make(chan int, 1)
	go func() {
		res, err := w.client.Get("https://other.example/")
		if err != nil {
			answered <- 0
			return
		}
		_ = res.Body.Close()
		answered <- res.StatusCode
	}()
	// What is allowed does not wait for what is not.
	if res, body := w.do("GET", "https://api.good.example/v1/items", ""); res.StatusCode != 200 {
		t.Errorf("got %d %s", res.StatusCode, body)
	}
	if len(answered) > 0 {
		t.Error("the fourth refusal did not wait")
	}
	w.plane.Drain(t.Context()) // nothing is left to wait for
	<-answered
}

func TestARequestDuringAChangeOfTheGrantsGetsAResponse(t *testing.T) {
	w := newWorld(t, hello)
	conn := w.tunnel("api.good.example")
	defer conn.Close()
	must.Get(io.WriteString(conn, "GET /v1/items HTTP/1.1\r\nHost: api.g"))(t)
	w.taken(conn)
	w.plane.SetGrants(otherGrants(w))
	must.Get(io.WriteString(conn, "ood.example\r\n\r\n"))(t)
	res := must.Get(http.ReadResponse(bufio.NewReader(conn), nil))(t)
	if res.StatusCode != 200 {
		t.Errorf("got %d", res.StatusCode)
	}
}

// A client on a busy machine takes as long for its handshake and for a head as one that
// is idle may: a limit of seconds would end it, and bounds nothing that Idle does not.
func TestABusyMachineIsNoSlowClient(t *testing.T) {
	l := Limits{}.withDefaults()
	if l.Wire = l.Wire.WithDefaults(); l.Handshake < l.Wire.Idle || l.Wire.Header < l.Wire.Idle {
		t.Errorf("a handshake has %v, a head %v, an idle client %v", l.Handshake, l.Wire.Header, l.Wire.Idle)
	}
}
