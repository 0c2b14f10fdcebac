package proxy

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/must"
)

// dialDescriptors is what one dial takes: a connection and the lookup before it.
const dialDescriptors = 3

// fewDescriptors is what each half has in a process that may have next to none.
const fewDescriptors = 4

func newFew(t *testing.T, h2 bool, answer http.HandlerFunc) *world {
	return newWorldWith(t, h2, func(c *Config) { c.Limits.Descriptors = 1 }, answer)
}

// leave takes all but n descriptors from each half.
func (w *world) leave(n int) {
	files := w.plane.Descriptors()
	files.Start()
	for taken := 0; taken < fewDescriptors-n; taken++ {
		if !files.TakeClient() {
			w.t.Fatal("a descriptor cannot be taken")
		}
		must.Do(w.t, files.Acquire(w.t.Context(), 1))
	}
}

// connectHead is what comes first on a tunnel to host.
func connectHead(host string) string {
	r, _ := http.NewRequest(http.MethodConnect, "http://"+host+":443", nil)
	r.SetBasicAuth("x", testToken)
	return "CONNECT " + host + ":443 HTTP/1.1\r\nHost: " + host + ":443\r\nProxy-Authorization: " +
		r.Header.Get("Authorization") + "\r\n\r\n"
}

// exhausted fails unless got is the denial of a request for which there was no
// descriptor, with a row of its own.
func (w *world) exhausted(got string) {
	w.t.Helper()
	if !strings.Contains(got, "503") || !strings.Contains(got, string(ReasonDescriptors)) ||
		!strings.Contains(got, "Retry-After") {
		w.t.Errorf("got %.600q, want a 503 with the reason %s", got, ReasonDescriptors)
	}
	if row := w.last(); Reason(row.Reason) != ReasonDescriptors || row.Status != 503 || row.Host != "api.good.example" {
		w.t.Errorf("the row has the reason %q, the status %d and the host %q", row.Reason, row.Status, row.Host)
	}
}

func TestAClientWithoutADescriptorIsTold(t *testing.T) {
	w := newFew(t, false, hello)
	w.leave(1)
	conn := w.tunnel("api.good.example")
	defer conn.Close()
	another := func() string {
		conn := must.Get(net.Dial("tcp", w.addr))(t)
		defer conn.Close()
		must.Do(t, conn.SetDeadline(time.Now().Add(testPatience)))
		must.Get(io.WriteString(conn, connectHead("api.good.example")))(t)
		got, _ := io.ReadAll(conn)
		return string(got)
	}
	w.exhausted(another())
	must.Do(t, conn.Close())
	w.eventually(func() bool { return w.plane.files.TakeClient() })
	w.plane.files.GiveClient()
	w.do("GET", "https://api.good.example/v1/items", "")
}

func TestIdleUpstreamConnectionsMakeRoom(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		t.Run(fmt.Sprintf("origin h2 %t", h2), func(t *testing.T) {
			w := newFew(t, h2, hello)
			if h2 {
				w.client = w.h2client()
			}
			w.leave(dialDescriptors) // for one dial, and nothing beside it
			for range 2 {
				for _, host := range []string{"api.good.example/v1/items", "plain.good.example/"} {
					if res, body := w.do("GET", "https://"+host, ""); res.StatusCode != 200 {
						t.Errorf("%s: got %d %s", host, res.StatusCode, body)
					}
				}
			}
		})
	}
}

func TestARequestWithoutADescriptorUpstreamIsTold(t *testing.T) {
	held, let := make(chan struct{}), make(chan struct{})
	w := newFew(t, false, func(_ http.ResponseWriter, r *http.Request) {
		if r.Host == "plain.good.example" {
			held <- struct{}{}
			<-let
		}
	})
	w.leave(dialDescriptors)
	var busy sync.WaitGroup
	busy.Go(func() { _, _ = w.do("GET", "https://plain.good.example/", "") })
	<-held
	got := w.raw("api.good.example", "GET /v1/items HTTP/1.1\r\nHost: api.good.example\r\nConnection: close\r\n\r\n")
	w.exhausted(got)
	close(let)
	busy.Wait()
	if res, body := w.do("GET", "https://api.good.example/v1/items", ""); res.StatusCode != 200 {
		t.Errorf("after the other request: got %d %s", res.StatusCode, body)
	}
}
