package proxy

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/proxy/approval"
)

// maxHeld is what a request that waits may take, beside its connection, in bytes.
const maxHeld = 24 << 10

// Nearly a thousand requests are held at once within the memory that a session has if nothing is configured, each with
// a body, and all pass when a person has approved.
func TestAThousandRequestsAreHeld(t *testing.T) {
	if testing.Short() {
		t.Skip("it opens a thousand tunnels: run it without -short")
	}
	const held, equal, size = 900, 45, 1 << 10 // of MaxOpen questions
	a := newAsks(t, time.Hour, hello)
	conns := make([]*tls.Conn, held)
	for i := range conns {
		conns[i] = a.tunnel("api.good.example")
		defer conns[i].Close() //nolint:revive // at the end
		// It grows what a connection has.
		fmt.Fprint(conns[i], "GET /v1/things/1 HTTP/1.1\r\nHost: api.good.example\r\n\r\n")
		discard(t, conns[i], 200)
	}
	before := memory()
	body := strings.Repeat("b", size)
	for i, conn := range conns {
		fmt.Fprintf(conn, "POST /v1/things/%d/merge HTTP/1.1\r\nHost: api.good.example\r\nContent-Length: %d\r\n\r\n%s",
			i/equal, size, body)
	}
	var asked []approval.Question
	a.eventually(func() bool {
		waiting := 0
		asked = a.queue.List()
		for _, q := range asked {
			waiting += q.Waiting
		}
		return waiting == held
	})
	each := (memory() - before) / held
	t.Logf("a held request takes %d bytes, with a body of %d", each, size)
	if each > maxHeld && !racing {
		t.Errorf("a held request takes %d bytes, want at most %d", each, maxHeld)
	}
	if len(asked) != held/equal {
		t.Errorf("there are %d questions", len(asked))
	}
	how := approval.Decision{Approve: true, For: approval.Session, Surface: "cli"}
	must.Get(a.queue.Decide(t.Context(), asked[0].ID, how))(t)
	for _, q := range asked[1:] {
		how.For = approval.Once
		must.Get(a.queue.Decide(t.Context(), q.ID, how))(t)
	}
	for _, conn := range conns {
		discard(t, conn, 200)
	}
	if n := len(a.requests()); n != 2*held {
		t.Errorf("the service got %d requests", n)
	}
}

// memory returns what the process has in use.
func memory() int64 {
	var m runtime.MemStats
	for range 2 { // what has a finalizer is freed by the second
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// discard reads a response.
func discard(t *testing.T, conn io.Reader, status int) {
	t.Helper()
	res := must.Get(http.ReadResponse(bufio.NewReader(conn), nil))(t)
	text := must.Get(io.ReadAll(res.Body))(t)
	if res.StatusCode != status {
		t.Fatalf("the response is %d %s", res.StatusCode, text)
	}
}
