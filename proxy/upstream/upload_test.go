package upstream

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/ALRubinger/aileron/e2e/must"
)

// pipeClient returns a client whose connections in clear are pipes, each served by
// serve, so that its time may be a synctest bubble's.
func pipeClient(t *testing.T, serve func(net.Conn)) *Client {
	t.Helper()
	u, err := New(Options{ResponseHeader: time.Minute})
	must.Do(t, err)
	u.pool(Key{}).h1.dial = func(context.Context, string) (*countedConn, error) {
		ours, theirs := net.Pipe()
		go func() { defer theirs.Close(); serve(theirs) }()
		return &countedConn{Conn: ours}, nil
	}
	return u
}

// clearRequest returns a request in clear. Its body is nil for none.
func clearRequest(ctx context.Context, body io.Reader) *http.Request {
	r := (&http.Request{Method: http.MethodPost, URL: &url.URL{Scheme: "http", Host: "example.com:80", Path: "/"},
		Host: "example.com", Header: http.Header{}}).WithContext(ctx)
	if body != nil {
		r.Body, r.ContentLength = NewBody(io.NopCloser(body)), -1
	}
	return r
}

// heldBody is a body whose second piece comes when release is closed.
type heldBody struct {
	first   bool
	release chan struct{}
}

func (b *heldBody) Read(p []byte) (int, error) {
	if !b.first {
		b.first = true
		return copy(p, "first"), nil
	}
	<-b.release
	return 0, io.ErrUnexpectedEOF
}

// A response may come before its request has left. The goroutine that sends the
// rest ends a moment after the exchange, and is waited for.
func TestWaitReturnsWhenUploadsHaveEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := pipeClient(t, func(c net.Conn) {
			if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nearly")
				_, _ = io.Copy(io.Discard, c)
			}
		})
		body := &heldBody{release: make(chan struct{})}
		if status, got, err := roundTrip(u, clearRequest(t.Context(), body), Route{}); status != 200 || got != "early" {
			t.Fatalf("got %d %q, %v", status, got, err)
		}
		u.Close() // does not wait for what a client may still send
		waited := make(chan struct{})
		go func() { u.Wait(); close(waited) }()
		synctest.Wait()
		select {
		case <-waited:
			t.Error("Wait returned during an upload")
		default:
		}
		close(body.release)
		<-waited
		u.Wait() // at once
	})
}

func TestAHeadMustComeInTime(t *testing.T) {
	for name, c := range map[string]struct {
		body io.Reader
		sent string
		want Kind
	}{
		"nothing":              {nil, "", Timeout},
		"half a head":          {nil, "HTTP/1.1 200", HeadTooSlow},
		"nothing after a body": {strings.NewReader("a body"), "", Timeout},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ended := make(chan struct{})
				u := pipeClient(t, func(conn net.Conn) {
					defer close(ended)
					if r, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
						_, _ = io.Copy(io.Discard, r.Body)
					}
					_, _ = io.WriteString(conn, c.sent)
					_, _ = io.Copy(io.Discard, conn) // until the client hangs up
				})
				defer u.Close()
				started := time.Now()
				_, _, err := roundTrip(u, clearRequest(t.Context(), c.body), Route{})
				if got := errorKind(t, err); got != c.want || time.Since(started) != u.opts.ResponseHeader {
					t.Errorf("%v after %v, want %v after %v", got, time.Since(started), c.want, u.opts.ResponseHeader)
				}
				<-ended
			})
		})
	}
}

// A model that thinks, a hook that runs: a response may take as long as its client waits, unless the session or the
// operation has a limit. A head that has begun must end.
func TestAResponseTakesAsLongAsItsClientWaits(t *testing.T) {
	const interim, final = "HTTP/1.1 102 Processing\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
	type piece struct {
		text  string
		after time.Duration
	}
	for name, c := range map[string]struct {
		session, operation time.Duration
		pieces             []piece
		want               Kind
		after              time.Duration // 0: it responds
	}{
		"no limit": {0, 0, []piece{{final, 5 * time.Hour}}, 0, 0},
		"interim ones between": {0, 0, []piece{{interim, time.Hour}, {interim + "HTTP/1.1", time.Hour},
			{final[8:], time.Second}}, 0, 0},
		"half a head": {0, 0, []piece{{final[:9], time.Hour}, {final[9:], time.Hour}}, HeadTooSlow,
			time.Hour + time.Minute},
		"half of a later head": {0, 0, []piece{{interim, time.Hour}, {"HTTP", time.Hour}}, HeadTooSlow,
			2*time.Hour + time.Minute},
		"the operation's":      {time.Minute, 10 * time.Minute, []piece{{final, 9 * time.Minute}}, 0, 0},
		"past the operation's": {time.Minute, 10 * time.Minute, []piece{{final, time.Hour}}, Timeout, 10 * time.Minute},
		"the session's":        {time.Minute, 0, []piece{{final, time.Hour}}, Timeout, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ended := make(chan struct{})
				u := pipeClient(t, func(conn net.Conn) {
					defer close(ended)
					if _, err := http.ReadRequest(bufio.NewReader(conn)); err != nil {
						return
					}
					for _, p := range c.pieces {
						<-time.After(p.after)
						_, _ = io.WriteString(conn, p.text)
					}
					_, _ = io.Copy(io.Discard, conn) // until the client hangs up
				})
				defer func() { u.Close(); <-ended }()
				u.opts.ResponseHeader = c.session
				started := time.Now()
				status, body, err := roundTrip(u, clearRequest(t.Context(), nil), Route{ResponseHeader: c.operation})
				took := time.Since(started)
				switch {
				case c.after == 0 && (err != nil || status != 200 || body != "ok"):
					t.Errorf("%d %q, %v after %v", status, body, err, took)
				case c.after != 0 && (errorKind(t, err) != c.want || took != c.after):
					t.Errorf("%v after %v, want %v after %v", err, took, c.want, c.after)
				}
			})
		})
	}
}

// The time of a response's head does not bound its body.
func TestABodyMayTakeLongerThanItsHead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := pipeClient(t, func(c net.Conn) {
			if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no")
				<-time.After(time.Hour)
				_, _ = io.WriteString(c, "k")
			}
		})
		defer u.Close()
		status, body, err := roundTrip(u, clearRequest(t.Context(), nil), Route{})
		if status != 200 || body != "ok" || err != nil {
			t.Errorf("got %d %q, %v", status, body, err)
		}
	})
}

// endless is a body that has always more.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func TestAHostThatTakesNoBodyIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, takesHead := range []bool{false, true} {
			hold := make(chan struct{})
			u := pipeClient(t, func(c net.Conn) {
				if takesHead {
					_, _ = http.ReadRequest(bufio.NewReader(c))
				}
				<-hold
			})
			started := time.Now()
			_, _, err := roundTrip(u, clearRequest(t.Context(), endless{}), Route{})
			if errorKind(t, err) != BodyStalled || time.Since(started) != u.opts.Stall {
				t.Errorf("with a head %t: %v after %v, want %v", takesHead, err, time.Since(started), BodyStalled)
			}
			close(hold)
			u.Close()
			u.Wait()
		}
	})
}

func TestABodyThatFailsEndsItsConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan struct{})
		u := pipeClient(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c); close(ended) })
		defer u.Close()
		broken := errors.New("broken")
		failing := io.MultiReader(strings.NewReader("half"), failingReader{broken})
		_, _, err := roundTrip(u, clearRequest(t.Context(), failing), Route{})
		if errorKind(t, err) != RequestBody || !errors.Is(err, broken) || strings.Contains(err.Error(), "broken") {
			t.Errorf("got %v, want %v", err, RequestBody)
		}
		<-ended
	})
}

type failingReader struct{ err error }

func (r failingReader) Read([]byte) (int, error) { return 0, r.err }

// A request that was canceled may have arrived, or not.
func TestACanceledRequestIsToldFromOneThatLeft(t *testing.T) {
	for _, sent := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			u := pipeClient(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
			defer u.Close()
			ctx, cancel := context.WithCancel(t.Context())
			if sent {
				time.AfterFunc(time.Second, cancel)
			} else {
				cancel()
			}
			_, _, err := roundTrip(u, clearRequest(ctx, nil), Route{})
			var e *Error
			if !errors.As(err, &e) || e.Kind != Canceled || e.Sent != sent {
				t.Errorf("got %#v, want %v with Sent %t", err, Canceled, sent)
			}
		})
	}
}

// readyBody is a body that has come whole.
type readyBody struct{ io.Reader }

func (readyBody) Close() error { return nil }
func (readyBody) Ready() bool  { return true }

// A connection in clear gets a record for each write.
func TestABodyThatIsThereLeavesWithItsHead(t *testing.T) {
	for name, c := range map[string]struct {
		length int64
		body   string
		want   string
	}{
		"a length":  {5, "hello", "Content-Length: 5\r\n\r\nhello"},
		"chunked":   {-1, "hello", "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"},
		"no length": {-1, "", "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
	} {
		synctest.Test(t, func(t *testing.T) {
			first := make(chan string, 1)
			u := pipeClient(t, func(conn net.Conn) {
				buf := make([]byte, 64<<10)
				n, _ := conn.Read(buf)
				first <- string(buf[:n])
				_, _ = io.WriteString(conn, okResponse)
			})
			defer u.Close()
			r := clearRequest(t.Context(), nil)
			r.Body, r.ContentLength = NewBody(readyBody{iotest.DataErrReader(strings.NewReader(c.body))}), c.length
			if status, _, err := roundTrip(u, r, Route{}); status != 200 {
				t.Fatalf("%s: %d, %v", name, status, err)
			}
			u.Wait()
			want := "POST / HTTP/1.1\r\nHost: example.com\r\n" + c.want
			if got := <-first; got != want {
				t.Errorf("%s: the first write was %q, want %q", name, got, want)
			}
		})
	}
}

// A host may reject a GET that announces a body and has none.
func TestAnEmptyBodyOfAGetIsNotAnnounced(t *testing.T) {
	for want, body := range map[string]io.Reader{
		"\r\n":                               strings.NewReader(""),
		"Transfer-Encoding: chunked\r\n\r\n": slowEnd{},
	} {
		synctest.Test(t, func(t *testing.T) {
			first := make(chan string, 1)
			u := pipeClient(t, func(conn net.Conn) {
				buf := make([]byte, 64<<10)
				n, _ := conn.Read(buf)
				first <- string(buf[:n])
				go func() { _, _ = io.Copy(io.Discard, conn) }()
				<-time.After(2 * time.Second)
				_, _ = io.WriteString(conn, okResponse)
			})
			defer u.Close()
			r := clearRequest(t.Context(), body)
			r.Method = http.MethodGet
			if status, _, err := roundTrip(u, r, Route{}); status != 200 {
				t.Fatalf("%d, %v", status, err)
			}
			u.Wait()
			if got, want := <-first, "GET / HTTP/1.1\r\nHost: example.com\r\n"+want; got != want {
				t.Errorf("the first write was %q, want %q", got, want)
			}
		})
	}
}

// slowEnd is an empty body that ends after a second.
type slowEnd struct{}

func (slowEnd) Read([]byte) (int, error) {
	<-time.After(time.Second)
	return 0, io.EOF
}
