package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ALRubinger/aileron/proxy/upstream"
)

func TestDescriptorsAreDividedBehindAReserve(t *testing.T) {
	for _, more := range []int{0, 64, 1024} {
		var d *descriptors
		open := 0
		for settled := false; !settled; { // connections of earlier tests may just be closing
			open = openDescriptors()
			d = newDescriptors(open + more)
			d.start()
			settled = openDescriptors() == open+1 // the spare one
			d.close()
		}
		if d.half < leastHalf || d.half > leastHalf && 2*d.half+d.lobbySize()+descriptorReserve+open > d.limit+2 {
			t.Errorf("of %d descriptors, %d of them in use, each half has %d", d.limit, open, d.half)
		}
	}
	if limit := descriptorLimit(); limit < 64 {
		t.Errorf("the process may have %d descriptors", limit)
	}
}

func TestAnUpstreamWaitsForADescriptor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDescriptors(1000)
		d.start()
		defer d.close()
		d.half = 3
		idle := 1
		d.giveUp = func() bool {
			if idle--; idle < 0 {
				return false
			}
			d.Release(1)
			return true
		}
		must(t, d.Acquire(t.Context(), 3))
		must(t, d.Acquire(t.Context(), 1)) // which an idle one is given up for
		time.AfterFunc(enterWait/2, func() { d.Release(1) })
		must(t, d.Acquire(t.Context(), 1))
		if err := d.Acquire(t.Context(), 1); !errors.Is(err, upstream.ErrOutOfDescriptors) {
			t.Errorf("took one more with %v, want %v", err, upstream.ErrOutOfDescriptors)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := d.Acquire(ctx, 1); !errors.Is(err, context.Canceled) {
			t.Errorf("took one more with %v, want %v", err, context.Canceled)
		}
	})
}

// dialDescriptors is what one dial takes: a connection and the lookup before it.
const dialDescriptors = 3

// leave takes all but n descriptors from each half.
func (w *world) leave(n int) {
	w.plane.files.start()
	w.plane.files.mu.Lock()
	defer w.plane.files.mu.Unlock()
	w.plane.files.half = n
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
	if !strings.Contains(got, "503") || !strings.Contains(got, string(reasonDescriptors)) ||
		!strings.Contains(got, "Retry-After") {
		w.t.Errorf("got %.600q, want a 503 with the reason %s", got, reasonDescriptors)
	}
	if row := w.last(); Reason(row.Reason) != reasonDescriptors || row.Status != 503 || row.Host != "api.good.example" {
		w.t.Errorf("the row has the reason %q, the status %d and the host %q", row.Reason, row.Status, row.Host)
	}
}

func TestAClientWithoutADescriptorIsTold(t *testing.T) {
	w := newWorld(t, hello)
	w.leave(1)
	conn := w.tunnel("api.good.example")
	defer conn.Close()
	another := func() string {
		conn, err := net.Dial("tcp", w.addr)
		must(t, err)
		defer conn.Close()
		must(t, conn.SetDeadline(time.Now().Add(testPatience)))
		_, err = io.WriteString(conn, connectHead("api.good.example"))
		must(t, err)
		got, _ := io.ReadAll(conn)
		return string(got)
	}
	w.exhausted(another())
	must(t, conn.Close())
	w.eventually(func() bool { return w.plane.files.takeClient() })
	w.plane.files.giveClient()
	w.do("GET", "https://api.good.example/v1/items", "")
}

// What waits for nothing makes room in the lobby for what asks.
func TestSilentClientsDoNotKeepOthersFromBeingTold(t *testing.T) {
	before := deniedWithin
	t.Cleanup(func() { deniedWithin = before }) // when the world has ended
	deniedWithin = 2 * testPatience             // they do not leave by themselves
	w := newWorld(t, hello)
	w.leave(0)
	w.plane.lobby.evicts = testPatience // of the goroutine that makes room
	silent := make([]net.Conn, cap(w.plane.lobby.places)+3)
	for i := range silent {
		conn, err := net.Dial("tcp", w.addr)
		must(t, err)
		defer conn.Close()
		silent[i] = conn
	}
	conn, err := net.Dial("tcp", w.addr)
	must(t, err)
	defer conn.Close()
	must(t, conn.SetDeadline(time.Now().Add(testPatience)))
	_, err = io.WriteString(conn, connectHead("api.good.example"))
	must(t, err)
	got, _ := io.ReadAll(conn)
	w.exhausted(string(got))
}

func TestIdleUpstreamConnectionsMakeRoom(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		t.Run(fmt.Sprintf("origin h2 %t", h2), func(t *testing.T) {
			w := newWorldOf(t, h2, hello)
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
	w := newWorld(t, func(_ http.ResponseWriter, r *http.Request) {
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

// starved is a listener in a process whose last descriptor is plane.files.spare.
type starved struct {
	net.Listener
	files *descriptors
}

func (l starved) Accept() (net.Conn, error) {
	l.files.mu.Lock()
	free := l.files.spare == nil
	l.files.mu.Unlock()
	if !free {
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	}
	return l.Listener.Accept()
}

// A connection for which the whole process has no descriptor is refused, and
// does not wait.
func TestAProcessOutOfDescriptorsResponds(t *testing.T) {
	w := newWorld(t, hello)
	w.plane.files.start() // it has the spare one
	w.plane.files.mu.Lock()
	w.plane.files.open = func() (*os.File, error) { return nil, syscall.EMFILE }
	w.plane.files.mu.Unlock()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = w.plane.Serve(ctx, starved{l, w.plane.files}, Listener{})
	}()
	defer func() { cancel(); <-served }()
	conn, err := net.Dial("tcp", l.Addr().String())
	must(t, err)
	defer conn.Close()
	must(t, conn.SetDeadline(time.Now().Add(testPatience)))
	_, err = io.WriteString(conn, connectHead("api.good.example"))
	must(t, err)
	got, _ := io.ReadAll(conn)
	w.exhausted(string(got))
}
