package carrier_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/peer"
	"github.com/ALRubinger/aileron/sandbox/carrier"
)

const patience = time.Minute // no test judges how long something takes

// carried is a session's directory, and a volume in which a carrier serves its sockets.
type carried struct {
	t               *testing.T
	session, volume string
	in              *io.PipeWriter // the carrier's standard input
	end             *carrier.End
	ran             chan error
}

// start runs a carrier for sockets that serve has.
func start(t *testing.T, serve map[string]func(*net.UnixConn)) *carried {
	t.Helper()
	c := &carried{t: t, session: must.ShortDir(t), volume: must.ShortDir(t), ran: make(chan error, 1)}
	for name, do := range serve {
		l := must.Get(net.Listen("unix", filepath.Join(c.session, name)))(t)
		t.Cleanup(func() { _ = l.Close() })
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				go do(conn.(*net.UnixConn))
			}
		}()
	}
	in, inWriter := io.Pipe()
	out, outWriter := io.Pipe()
	c.in = inWriter
	ctx, cancel := context.WithCancel(t.Context())
	shut := func() { _, _ = inWriter.Close(), out.Close() }
	c.end = carrier.Serve(ctx, out, inWriter, shut, c.session)
	go func() {
		err := carrier.Run(ctx, c.volume, in, outWriter)
		_ = outWriter.Close()
		c.ran <- err
	}()
	t.Cleanup(func() { cancel(); <-c.end.Ended() })
	select {
	case <-c.end.Ready():
	case err := <-c.ran:
		t.Fatalf("the carrier ended: %v", err)
	case <-time.After(patience):
		t.Fatal("the carrier does not get ready")
	}
	return c
}

func (c *carried) dial(name string) *net.UnixConn {
	c.t.Helper()
	conn := must.Get(net.Dial("unix", filepath.Join(c.volume, name)))(c.t).(*net.UnixConn)
	c.t.Cleanup(func() { _ = conn.Close() })
	must.Do(c.t, conn.SetDeadline(time.Now().Add(patience)))
	return conn
}

func echo(conn *net.UnixConn) {
	_, _ = io.Copy(conn, conn)
	_ = conn.Close()
}

// Bytes arrive as they were sent, on many connections at once, each with its own socket of the session.
func TestConnectionsAreCarried(t *testing.T) {
	c := start(t, map[string]func(*net.UnixConn){
		"proxy.sock":    echo,
		"redirect.sock": func(conn *net.UnixConn) { _, _ = io.WriteString(conn, "the other"); _ = conn.Close() },
	})
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			sent := make([]byte, 1<<20)
			_, _ = rand.Read(sent)
			conn := c.dial("proxy.sock")
			go func() {
				_, _ = conn.Write(sent)
				_ = conn.CloseWrite()
			}()
			if got, err := io.ReadAll(conn); err != nil || !bytes.Equal(got, sent) {
				t.Errorf("%d bytes came back, %v; want the %d that were sent", len(got), err, len(sent))
			}
		})
	}
	all.Wait()
	if got := string(must.Get(io.ReadAll(c.dial("redirect.sock")))(t)); got != "the other" {
		t.Errorf("redirect.sock responds %q", got)
	}
}

// A socket that the session does not have is none of the volume's: the gateway asks for the one of ports again and
// again.
func TestSocketsAreThoseOfTheSession(t *testing.T) {
	c := start(t, map[string]func(*net.UnixConn){"proxy.sock": echo})
	var names []string
	for _, e := range must.Get(os.ReadDir(c.volume))(t) {
		names = append(names, e.Name())
	}
	if got := strings.Join(names, " "); got != "proxy.sock" {
		t.Errorf("the volume has %s, want proxy.sock", got)
	}
}

// Either side may end its half, and goes on reading.
func TestHalvesEndOnTheirOwn(t *testing.T) {
	heard := make(chan string, 1)
	c := start(t, map[string]func(*net.UnixConn){
		"proxy.sock": func(conn *net.UnixConn) {
			_, _ = io.WriteString(conn, "first")
			_ = conn.CloseWrite()
			got, _ := io.ReadAll(conn)
			heard <- string(got)
			_ = conn.Close()
		},
		"redirect.sock": func(conn *net.UnixConn) {
			got, _ := io.ReadAll(conn)
			_, _ = io.WriteString(conn, "after "+string(got))
			_ = conn.Close()
		},
	})
	conn := c.dial("proxy.sock")
	if got, err := io.ReadAll(conn); err != nil || string(got) != "first" {
		t.Fatalf("the proxy's half is %q, %v", got, err)
	}
	must.Get(io.WriteString(conn, "still here"))(t)
	must.Do(t, conn.CloseWrite())
	if got := <-heard; got != "still here" {
		t.Errorf("after its own half the proxy reads %q", got)
	}
	conn = c.dial("redirect.sock")
	must.Get(io.WriteString(conn, "the end"))(t)
	must.Do(t, conn.CloseWrite())
	if got := string(must.Get(io.ReadAll(conn))(t)); got != "after the end" {
		t.Errorf("the response is %q", got)
	}
}

// A client that is gone must not hold its request upstream, and a proxy that resets has not ended its response.
func TestWhatIsGoneIsGone(t *testing.T) {
	gone := make(chan struct{})
	c := start(t, map[string]func(*net.UnixConn){
		"proxy.sock": func(conn *net.UnixConn) {
			_, _ = io.ReadAll(conn) // the end of the client's half
			for !peer.Gone(conn, netip.AddrPort{}) {
				<-time.After(time.Millisecond)
			}
			close(gone)
		},
		"redirect.sock": func(conn *net.UnixConn) {
			_, _ = conn.Read(make([]byte, 1)) // unread bytes make the end a reset
			_ = conn.Close()
		},
	})
	conn := c.dial("proxy.sock")
	must.Do(t, conn.Close())
	select {
	case <-gone:
	case <-time.After(patience):
		t.Error("the proxy does not learn that its client is gone")
	}
	conn = c.dial("redirect.sock")
	must.Get(conn.Write([]byte("ab")))(t)
	if got, err := io.ReadAll(conn); len(got) != 0 {
		t.Errorf("of a connection that was reset, %q, %v is read", got, err)
	}
}

// The carrier holds nothing, and ends with the session that reads it.
func TestACarrierEndsWithItsInput(t *testing.T) {
	c := start(t, map[string]func(*net.UnixConn){"proxy.sock": echo})
	conn := c.dial("proxy.sock")
	must.Do(t, c.in.Close())
	select {
	case err := <-c.ran:
		if err != nil {
			t.Errorf("it ended with %v, want no error", err)
		}
	case <-time.After(patience):
		t.Fatal("it does not end")
	}
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("a connection outlives the carrier")
	}
	<-c.end.Ended()
}

// Without its sockets no sandbox has a way out, and none notices.
func TestACarrierEndsWithoutItsSockets(t *testing.T) {
	c := start(t, map[string]func(*net.UnixConn){"proxy.sock": echo})
	must.Do(t, os.Remove(filepath.Join(c.volume, "proxy.sock")))
	select {
	case err := <-c.ran:
		if err == nil || !strings.Contains(err.Error(), "proxy.sock was removed from the volume") {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(patience):
		t.Fatal("it does not end")
	}
}

// What the carrier may ask for is a socket of the session's directory by its name.
func TestNothingElseOfTheHostIsReached(t *testing.T) {
	dir := must.ShortDir(t)
	session := filepath.Join(dir, "box")
	must.Do(t, os.Mkdir(session, 0o700))
	var reached atomic.Bool
	for _, name := range []string{filepath.Join(dir, "control.sock"), filepath.Join(session, "other.sock")} {
		l := must.Get(net.Listen("unix", name))(t)
		t.Cleanup(func() { _ = l.Close() })
		go func() {
			if _, err := l.Accept(); err == nil {
				reached.Store(true)
			}
		}()
	}
	ours, theirs := net.Pipe()
	end := carrier.Serve(t.Context(), ours, ours, func() { _ = ours.Close() }, session)
	p := &http.Protocols{}
	p.SetUnencryptedHTTP2(true)
	client := &http.Transport{Protocols: p, DialContext: func(context.Context, string, string) (net.Conn, error) {
		return theirs, nil
	}}
	for _, path := range []string{"/../control.sock", "/%2e%2e/control.sock", "/other.sock", "/",
		"/proxy.sock/../other.sock", "//proxy.sock", "/./proxy.sock"} {
		body := strings.NewReader("x")
		req := must.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, "http://carrier", body))(t)
		req.URL.Opaque = "//carrier" + path
		res, err := client.RoundTrip(req)
		if err != nil {
			continue
		}
		if res.StatusCode == http.StatusOK {
			t.Errorf("%s: %s", path, res.Status)
		}
		_ = res.Body.Close()
	}
	_ = theirs.Close()
	<-end.Ended()
	if reached.Load() {
		t.Error("another socket was reached")
	}
}
