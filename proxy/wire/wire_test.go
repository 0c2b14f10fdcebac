package wire

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ALRubinger/aileron/e2e/must"
)

// echo responds with the method, the target and the body of the request.
type echo struct{ rejected chan *ProtocolError }

func (echo) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	fmt.Fprintf(w, "%s %s %s %q", r.Method, r.RequestURI, r.Host, body)
}

func (e echo) Refuse(f *ProtocolError) *http.Response {
	if e.rejected != nil {
		e.rejected <- f
	}
	return &http.Response{StatusCode: f.Status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(f.Reason)),
		ContentLength: int64(len(f.Reason))}
}

// unread is echo that reads no body: it responds to a head that should have been rejected, and waits for nothing.
type unread struct{ echo }

func (unread) ServeHTTP(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }

// refused returns why a head was rejected, once its response has been read.
func refused(t *testing.T, rejected <-chan *ProtocolError, head string) *ProtocolError {
	t.Helper()
	select {
	case f := <-rejected:
		return f
	default:
		t.Fatalf("%q was not refused", head)
		return nil
	}
}

// dial serves h on a loopback connection and returns the client's end.
func dial(t *testing.T, opts Options, h Handler) net.Conn {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan struct{})
	go func() {
		defer close(served)
		if c, err := l.Accept(); err == nil {
			Serve(ctx, c, opts, h)
		}
	}()
	client := must.Get(net.Dial("tcp", l.Addr().String()))(t)
	t.Cleanup(func() {
		client.Close()
		cancel()
		l.Close()
		<-served
	})
	_ = client.SetDeadline(time.Now().Add(patience))
	return client
}

// Clients of other protocols wait for a response and send no empty line. The limits
// are longer than the client waits: a rejection is no timeout.
func TestWhatCannotBecomeARequestIsRefusedBeforeItsEnd(t *testing.T) {
	never := Options{Limits: Limits{Header: time.Hour, Idle: time.Hour}}
	for _, c := range []struct{ head, reason, method string }{
		{"SSH-2.0-OpenSSH_9.2\r\n", "request line", "SSH-2.0-OpenSSH_9.2"},
		{"EHLO there\r\n", "request line", "EHLO"},
		{"\x05\x01\x00", "not a token", ""},
		{"\x00\x00\x00\x08\x04\xd2\x16\x2f", "not a token", ""},
		{"\r\n\r\nGET / HTTP/3.0\r\n", "version", "GET"},
		{"GET /a#b HTTP/1.1\n", "fragment", "GET"},
		{strings.Repeat("G", 33), "not a token", ""},
		{" GET", "not a token", ""},
	} {
		rejected := make(chan *ProtocolError, 1)
		client := dial(t, never, echo{rejected})
		_, _ = io.WriteString(client, c.head)
		if _, err := http.ReadResponse(bufio.NewReader(client), nil); err != nil {
			t.Errorf("%q: read the refusal: %v", c.head, err)
			continue
		}
		if f := refused(t, rejected, c.head); !strings.Contains(f.Reason, c.reason) || f.Method != c.method {
			t.Errorf("%q = %q of %q, want %q of %q", c.head, f.Reason, f.Method, c.reason, c.method)
		}
	}
}

func TestARequestMayComeInPieces(t *testing.T) {
	const request = "\r\nGET /a HTTP/1.1\r\nHost: h\r\n\r\n"
	for cut := range len(request) {
		client := dial(t, Options{}, echo{})
		_, _ = io.WriteString(client, request[:cut])
		_, _ = io.WriteString(client, request[cut:])
		if res, err := http.ReadResponse(bufio.NewReader(client), nil); err != nil || res.StatusCode != http.StatusOK {
			t.Errorf("cut at %d: %v, %v", cut, res, err)
		}
	}
}

func TestAmbiguousHeadsAreRefusedWithTheirReason(t *testing.T) {
	const ok = "Host: h\r\n"
	for _, c := range []struct {
		name, head string
		status     int
		reason     string
	}{
		{"two lengths", "POST / HTTP/1.1\r\n" + ok + "Content-Length: 6\r\nContent-Length: 6\r\n\r\n", 400,
			"more than one Content-Length"},
		{"length and coding", "POST / HTTP/1.1\r\n" + ok + "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n", 400,
			"both a Content-Length and a Transfer-Encoding"},
		{"two codings", "POST / HTTP/1.1\r\n" + ok + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 400,
			"more than one Transfer-Encoding"},
		{"unknown coding", "POST / HTTP/1.1\r\n" + ok + "Transfer-Encoding: gzip, chunked\r\n\r\n", 501,
			"not \"chunked\" alone"},
		{"coding in 1.0", "POST / HTTP/1.0\r\n" + ok + "Transfer-Encoding: chunked\r\n\r\n", 400,
			"Transfer-Encoding in HTTP/1.0"},
		{"space before colon", "GET / HTTP/1.1\r\nHost : h\r\n\r\n", 400, "not a token followed by a colon"},
		{"obs-fold", "GET / HTTP/1.1\r\n" + ok + "Foo: x\r\n bar\r\n\r\n", 400, "not a token followed by a colon"},
		{"bare LF", "GET / HTTP/1.1\nHost: h\n\n", 400, "request line"},
		{"bare LF in a field", "GET / HTTP/1.1\r\nHost: h\nX: y\r\n\r\n", 400, "control character"},
		{"bare CR", "GET / HTTP/1.1\r\nHost: h\rX: y\r\n\r\n", 400, "control character"},
		{"NUL", "GET / HTTP/1.1\r\nHost: h\x00\r\n\r\n", 400, "control character"},
		{"no host", "GET / HTTP/1.1\r\n\r\n", 400, "no Host"},
		{"two hosts", "GET / HTTP/1.1\r\nHost: h\r\nHost: h\r\n\r\n", 400, "more than one Host"},
		{"version 1.2", "GET / HTTP/1.2\r\n" + ok + "\r\n", 505, "version"},
		{"preface", "PRI * HTTP/2.0\r\n\r\n", 505, "version"},
		{"two spaces", "GET  / HTTP/1.1\r\n" + ok + "\r\n", 400, "request line"},
		{"tab", "GET\t/ HTTP/1.1\r\n" + ok + "\r\n", 400, "request line"},
		{"fragment", "GET /#x HTTP/1.1\r\n" + ok + "\r\n", 400, "fragment"},
		{"a control character in the target", "GET /\x01 HTTP/1.1\r\n" + ok + "\r\n", 400, "control character"},
		{"connect with a body", "CONNECT h:443 HTTP/1.1\r\n" + ok + "Content-Length: 4\r\n\r\n", 400, "CONNECT has no body"},
		{"strange expectation", "POST / HTTP/1.1\r\n" + ok + "Expect: y 100-continue\r\nContent-Length: 1\r\n\r\n", 417,
			"expectation"},
		{"signed length", "POST / HTTP/1.1\r\n" + ok + "Content-Length: +6\r\n\r\n", 400, "not a number"},
		{"many fields", "GET / HTTP/1.1\r\n" + ok + strings.Repeat("A: b\r\n", 300) + "\r\n", 431, "too many"},
		{"large head", "GET / HTTP/1.1\r\n" + ok + "A: " + strings.Repeat("b", 70<<10) + "\r\n\r\n", 431, "too large"},
		{"not HTTP", "\x05\x01\x00 hello there\r\n\r\n", 400, "not a token"},
	} {
		t.Run(c.name, func(t *testing.T) {
			rejected := make(chan *ProtocolError, 1)
			client := dial(t, Options{}, unread{echo{rejected}})
			go func() { _, _ = io.WriteString(client, c.head) }()
			res, err := http.ReadResponse(bufio.NewReader(client), nil)
			if err != nil {
				t.Fatalf("read the refusal: %v", err)
			}
			perr := refused(t, rejected, c.head)
			if res.StatusCode != c.status || !strings.Contains(perr.Reason, c.reason) {
				t.Errorf("%q = %d %q, want %d with %q", c.head, res.StatusCode, perr.Reason, c.status, c.reason)
			}
			if !res.Close {
				t.Error("the connection goes on after a refused head")
			}
		})
	}
}

func TestPipelinedRequestsAreServedInOrder(t *testing.T) {
	client := dial(t, Options{}, echo{})
	go func() {
		_, _ = io.WriteString(client,
			"GET /a HTTP/1.1\r\nHost: h\r\n\r\nPOST /b HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nxyz"+
				"POST /c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\nTrailer: "+
				"dropped\r\n\r\n"+
				"POST /e HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"+
				"POST /f HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"+
				"1\r\na\r\n0\r\nA: b\r\nC: d\r\n\r\n"+
				"\r\nGET /d HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
	}()
	br := bufio.NewReader(client)
	for _, want := range []string{
		`GET /a h ""`, `POST /b h "xyz"`, `POST /c h "hello"`, `POST /e h ""`, `POST /f h "a"`, `GET /d h ""`,
	} {
		res, err := http.ReadResponse(br, nil)
		if err != nil {
			t.Fatalf("before %s: %v", want, err)
		}
		body, err := io.ReadAll(res.Body)
		if err != nil || string(body) != want {
			t.Fatalf("got %q, %v; want %q", body, err, want)
		}
	}
	if _, err := br.ReadByte(); err != io.EOF {
		t.Errorf("after Connection: close: %v, want EOF", err)
	}
}

func TestBrokenChunksAreNeverABody(t *testing.T) {
	for _, chunks := range []string{
		"0x5\r\nhello\r\n0\r\n\r\n", "5 \r\nhello\r\n0\r\n\r\n", "+5\r\nhello\r\n0\r\n\r\n", "5;a=b\r\nhello\r\n0\r\n\r\n",
		"FFFFFFFFFFFFFFFF\r\nhello\r\n0\r\n\r\n", "\r\nhello\r\n0\r\n\r\n", "5\nhello\r\n0\r\n\r\n", "1\r\nAXX\r\n0\r\n\r\n",
		"5\r\nhelloX0\r\n\r\n", "5\r\nhello\r\n0\r\n" + strings.Repeat("a: b\r\n", 64) + "\r\n",
	} {
		client := dial(t, Options{}, echo{})
		go func() {
			_, _ = io.WriteString(client, "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"+chunks)
		}()
		br := bufio.NewReader(client)
		res, err := http.ReadResponse(br, nil)
		if err != nil {
			continue // closed without an answer: as good
		}
		if res.StatusCode != http.StatusBadRequest {
			t.Errorf("%q was taken: %d", chunks, res.StatusCode)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		if _, err := http.ReadResponse(br, nil); err == nil {
			t.Errorf("%q: the connection went on", chunks)
		}
	}
}

func TestAWaitingClientIsToldToContinue(t *testing.T) {
	client := dial(t, Options{}, echo{})
	_, _ = io.WriteString(client, "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
	br := bufio.NewReader(client)
	line, err := br.ReadString('\n')
	if err != nil || line != "HTTP/1.1 100 Continue\r\n" {
		t.Fatalf("got %q, %v", line, err)
	}
	_, _ = br.ReadString('\n')
	_, _ = io.WriteString(client, "ok")
	res, err := http.ReadResponse(br, nil)
	if err != nil || res.StatusCode != 200 {
		t.Fatalf("got %v, %v", res, err)
	}
}

type handlerFunc func(w *ResponseWriter, r *http.Request)

func (f handlerFunc) ServeHTTP(w http.ResponseWriter, r *http.Request) { f(w.(*ResponseWriter), r) }
func (handlerFunc) Refuse(*ProtocolError) *http.Response               { return nil }

func TestAClientThatGoesAwayCancelsItsRequest(t *testing.T) {
	cancelled := make(chan struct{})
	client := dial(t, Options{}, handlerFunc(func(_ *ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		close(cancelled)
	}))
	_, _ = io.WriteString(client, "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
	client.Close()
	select {
	case <-cancelled:
	case <-time.After(patience):
		t.Fatal("the request's context did not end")
	}
}

func TestEveryPartOfABodyLeavesAtOnce(t *testing.T) {
	events, source := io.Pipe()
	client := dial(t, Options{}, handlerFunc(func(w *ResponseWriter, _ *http.Request) {
		_ = w.Respond(&http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}},
			Body: events, ContentLength: -1})
	}))
	_, _ = io.WriteString(client, "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
	res, err := http.ReadResponse(bufio.NewReader(client), nil) // the head comes before any event
	if err != nil {
		t.Fatal(err)
	}
	body := bufio.NewReader(res.Body)
	for i := range 20 {
		event := fmt.Sprintf("data: %d\n", i)
		_, _ = io.WriteString(source, event)
		if got, err := body.ReadString('\n'); err != nil || got != event {
			t.Fatalf("event %d: got %q, %v", i, got, err)
		}
	}
	source.Close()
	if _, err := body.ReadByte(); err != io.EOF {
		t.Errorf("at the end: %v, want EOF", err)
	}
}

func TestABodyThatBreaksOffIsNoCleanEnd(t *testing.T) {
	for _, length := range []int64{-1, 100} {
		client := dial(t, Options{}, handlerFunc(func(w *ResponseWriter, _ *http.Request) {
			body := io.MultiReader(strings.NewReader("half"), errReader{})
			_ = w.Respond(&http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(body),
				ContentLength: length})
		}))
		_, _ = io.WriteString(client, "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
		res := must.Get(http.ReadResponse(bufio.NewReader(client), nil))(t)
		if got, err := io.ReadAll(res.Body); err == nil {
			t.Errorf("length %d: the client took %q for the whole", length, got)
		}
	}
}

type errReader struct{}

func (errReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestAnUnreadUploadDoesNotBecomeTheNextRequest(t *testing.T) {
	client := dial(t, Options{}, handlerFunc(func(w *ResponseWriter, r *http.Request) {
		_ = w.Respond(&http.Response{StatusCode: 403, Header: http.Header{},
			Body: io.NopCloser(strings.NewReader(r.RequestURI)), ContentLength: int64(len(r.RequestURI))})
	}))
	smuggled := "GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n"
	go func() {
		fmt.Fprintf(client, "POST /one HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%sGET /two HTTP/1.1\r\nHost: "+
			"h\r\nConnection: close\r\n\r\n", len(smuggled), smuggled)
	}()
	br := bufio.NewReader(client)
	for _, want := range []string{"/one", "/two"} {
		res, err := http.ReadResponse(br, nil)
		if err != nil {
			t.Fatalf("before %s: %v", want, err)
		}
		if got, _ := io.ReadAll(res.Body); string(got) != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
}

// draining serves echo on a connection in a synctest bubble. stop makes it drain,
// ask sends one request and returns its response, br is the client's end.
func draining(t *testing.T) (stop context.CancelFunc, ask func(request string) (*http.Response, string),
	br *bufio.Reader) {
	t.Helper()
	client, server := net.Pipe()
	t.Cleanup(func() { client.Close() })
	drain, stop := context.WithCancel(t.Context())
	go Serve(t.Context(), server, Options{Drain: drain}, echo{})
	br = bufio.NewReader(client)
	return stop, func(request string) (*http.Response, string) {
		t.Helper()
		must.Get(io.WriteString(client, request))(t)
		res := must.Get(http.ReadResponse(br, nil))(t)
		body := must.Get(io.ReadAll(res.Body))(t)
		return res, string(body)
	}, br
}

func TestADrainingConnectionAnswersWhatIsOnItsWay(t *testing.T) {
	for name, before := range map[string]string{"fresh": "", "used": "GET /0 HTTP/1.1\r\nHost: x\r\n\r\n"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stop, ask, br := draining(t)
				if before != "" {
					if res, _ := ask(before); res.Close {
						t.Error("the first answer ends the connection")
					}
				}
				synctest.Wait()
				stop()
				<-time.After(drainWait - time.Millisecond) // of the bubble's clock
				res, body := ask("POST /1 HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\na")
				if want := `POST /1 x "a"`; res.StatusCode != 200 || body != want || !res.Close {
					t.Errorf("got %d %q, close %v; want %q and a close", res.StatusCode, body, res.Close, want)
				}
				if _, err := br.ReadByte(); err != io.EOF {
					t.Errorf("after it: %v, want EOF", err)
				}
			})
		})
	}
}

func TestADrainingConnectionEndsWhenItStaysIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stop, _, br := draining(t)
		synctest.Wait()
		began := time.Now()
		stop()
		if _, err := br.ReadByte(); err != io.EOF || time.Since(began) != drainWait {
			t.Errorf("got %v after %v, want EOF after %v", err, time.Since(began), drainWait)
		}
	})
}

// lateConn is a connection that sets the deadline of its draining as late as
// possible: when the request is served, if that does not wait for it.
type lateConn struct {
	net.Conn
	drain   context.Context
	read    chan string   // what came
	entered chan struct{} // closed when the deadline is about to be set
	served  chan struct{} // closed when the request is served
	set     chan struct{} // closed when the deadline is set

	once     sync.Once
	mu       sync.Mutex
	deadline time.Time // for reads
}

func (c *lateConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	select {
	case c.read <- string(p[:n]):
	default:
	}
	return n, err
}

func (c *lateConn) SetReadDeadline(at time.Time) error {
	if ahead := time.Until(at); c.drain.Err() != nil && ahead > 0 && ahead < time.Minute {
		c.once.Do(func() {
			close(c.entered)
			defer close(c.set)
			select {
			case <-c.served:
			case <-time.After(100 * time.Millisecond): // it waits
			}
			c.note(at)
		})
	}
	c.note(at)
	return c.Conn.SetReadDeadline(at)
}

func (c *lateConn) note(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadline = at
}

func TestDrainingCutsNoRequestShort(t *testing.T) {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	client := must.Get(net.Dial("tcp", l.Addr().String()))(t)
	defer client.Close()
	conn := must.Get(l.Accept())(t)
	drain, stop := context.WithCancel(t.Context())
	late := &lateConn{Conn: conn, drain: drain, read: make(chan string, 100), entered: make(chan struct{}),
		served: make(chan struct{}), set: make(chan struct{})}
	deadlines := make(chan time.Time, 1)
	h := handlerFunc(func(w *ResponseWriter, r *http.Request) {
		if r.URL.Path == "/1" {
			close(late.served)
			select {
			case <-late.entered:
				<-late.set
			default:
			}
			late.mu.Lock()
			deadlines <- late.deadline
			late.mu.Unlock()
		}
		w.WriteHeader(http.StatusNoContent)
	})
	served := make(chan struct{})
	go func() {
		defer close(served)
		Serve(t.Context(), late, Options{Drain: drain, Limits: Limits{Header: time.Hour, Idle: time.Hour}}, h)
	}()
	_, _ = io.WriteString(client, "GET /0 HTTP/1.1\r\nHost: h\r\n\r\n")
	must.Get(http.ReadResponse(bufio.NewReader(client), nil))(t)
	_, _ = io.WriteString(client, "GET /1")
	for got := ""; !strings.HasSuffix(got, "GET /1"); got += <-late.read {
	}
	stop()
	select {
	case <-late.entered:
	case <-time.After(2 * time.Second): // it was read ahead, before anything waited for it
	}
	_, _ = io.WriteString(client, " HTTP/1.1\r\nHost: h\r\n\r\n")
	if at := <-deadlines; !at.IsZero() {
		t.Error("a request is served under the deadline of an idle connection")
	}
	client.Close()
	<-served
}
