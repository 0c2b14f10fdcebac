package upstream

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ALRubinger/aileron/e2e/must"
)

// inMemory is a connection that reads a text and discards what is written.
type inMemory struct {
	net.Conn
	io.Reader
}

func (c inMemory) Read(p []byte) (int, error) { return c.Reader.Read(p) }
func (inMemory) Close() error                 { return nil }

// lengthList is what is accepted and net/http rejects: a list of equal lengths (RFC 9110 section 8.6).
var lengthList = regexp.MustCompile(`(?im)^content-length:[^\n]*,`)

// readsAsNetHTTPDoes reports whether raw is accepted as the response to a request
// with method, and fails the test when net/http rejects what is accepted, or reads
// another response in it.
func readsAsNetHTTPDoes(t *testing.T, method, raw string) bool {
	t.Helper()
	r := &http.Request{Method: method}
	pc := (&h1Pool{}).newConn("", inMemory{Reader: strings.NewReader(raw)}, nil)
	pc.headLeft = maxResponseHead
	got, err := pc.readResponse(method, &attempt{})
	if err != nil {
		return false
	}
	pc.headLeft = 1 << 30
	br := bufio.NewReaderSize(strings.NewReader(raw), connBuffer)
	want, err := http.ReadResponse(br, r)
	for err == nil && want.StatusCode >= 100 && want.StatusCode < 200 && want.StatusCode != 101 {
		want, err = http.ReadResponse(br, r)
	}
	if err != nil && lengthList.MatchString(raw) {
		return true
	}
	if err != nil {
		t.Fatalf("net/http rejects %q: %v", raw, err)
	}
	ends := got.Close
	if got.StatusCode == http.StatusNoContent || got.StatusCode == http.StatusNotModified {
		got.Close = want.Close // net/http keeps a connection on which an announced body may follow
	}
	if want, got := responseOf(want), responseOf(got); !reflect.DeepEqual(want, got) {
		t.Fatalf("%q was read as %+v, want %+v", raw, got, want)
	}
	watch(got.Body, true)
	body, err := io.ReadAll(got.Body)
	wantBody, wantErr := io.ReadAll(want.Body)
	if string(body) != string(wantBody) || (err == nil) != (wantErr == nil) {
		t.Fatalf("%q has the body %q, %v, want %q, %v", raw, body, err, wantBody, wantErr)
	}
	if err == nil && !reflect.DeepEqual(got.Trailer, want.Trailer) {
		t.Fatalf("%q has the trailers %v, want %v", raw, got.Trailer, want.Trailer)
	}
	if gotLeft, left := rest(pc.r), rest(br); err == nil && !ends && gotLeft != left {
		t.Fatalf("%q is followed by %q, want %q", raw, gotLeft, left)
	}
	return true
}

func rest(r io.Reader) string {
	left, _ := io.ReadAll(r)
	return string(left)
}

func responseOf(r *http.Response) [9]any {
	return [...]any{r.Status, r.StatusCode, r.Proto, r.ProtoMajor, r.ProtoMinor, r.Header, r.ContentLength, r.Close,
		r.TransferEncoding}
}

var methods = []string{http.MethodGet, http.MethodHead}

func TestAResponseMeansWhatItMeansToNetHTTP(t *testing.T) {
	for _, head := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 200 OK\r\n\r\nto the end", "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 05\r\n\r\nhello",
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\ncontent-length: 2\r\nConnection: x, Close\r\n\r\nok",
		"HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\nTrailer: x-a, X-B\r\n\r\n2\r\nok\r\n0\r\nX-A: 1\r\nX-C: " +
			"2\r\n\r\nHTTP/1.1",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\nnext",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel",
		"HTTP/1.1 204 No Content\r\nX-a: 1\r\nx-A:  2 \r\n\r\n", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n",
		"HTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 404 Not Found\r\nContent-Length: 1\r\nPragma: no-cache\r\n\r\nx",
		"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
		"HTTP/1.1 200 OK\r\nSet-Cookie : a\r\nX-\xe4: b\r\nX: \xe4\r\nContent-Length: 1\r\n\r\nx",
		"HTTP/1.1 200 OK\r\nSet-Cookie : a\r\nX: \xe4\r\nContent-Length: 1\r\n\r\nx",
		"HTTP/1.1 999 Odd\r\nContent-Length: 1\r\n\r\nx",
	} {
		for _, method := range methods {
			accepted := readsAsNetHTTPDoes(t, method, head)
			if want := !strings.Contains(head, "X-\xe4"); accepted != want {
				t.Errorf("%s, %q: accepted is %t, want %t", method, head, accepted, want)
			}
		}
	}
	if readsAsNetHTTPDoes(t, http.MethodGet,
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: content-length\r\n\r\n0\r\n\r\n") {
		t.Error("a trailer may frame the body")
	}
}

func FuzzResponse(f *testing.F) {
	for _, file := range []string{"malformed", "nothttp", "valid"} {
		text, err := readHeadsFile("testdata/" + file + ".txt")
		must.Do(f, err)
		for _, head := range text {
			f.Add(false, head+"hello")
		}
	}
	f.Add(true, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: x\r\n\r\n2\r\nok\r\n0\r\nX: 1\r\n\r\nnext")
	f.Fuzz(func(t *testing.T, head bool, raw string) {
		method := http.MethodGet
		if head {
			method = http.MethodHead
		}
		readsAsNetHTTPDoes(t, method, raw)
	})
}

// What a request's head becomes on the wire is what net/http would send.
func TestARequestHeadIsWrittenAsNetHTTPWritesIt(t *testing.T) {
	for i, r := range []*http.Request{
		newRequest(t, "GET", "/a", nil), newRequest(t, "POST", "/", nil),
		newRequest(t, "PUT", "/", strings.NewReader("body")),
		newRequest(t, "DELETE", "//x/y", nil), newRequest(t, "OPTIONS", "*", nil), newRequest(t, "HEAD", "", nil),
		newRequest(t, "PATCH", "/ä b", nil),
	} {
		r.URL.RawQuery, r.URL.ForceQuery = []string{"", "q=1&r", "%20"}[i%3], i%2 == 0
		r.Header = http.Header{"User-Agent": {"x", "y"}, "B": {" 1 ", "2"}, "A": {"a\r\nHost: evil"}, "Bad Name": {"x"},
			"Host": {"evil"}, "Content-Length": {"7"}, "Trailer": {"x"}}
		var want strings.Builder
		must.Do(t, r.Clone(t.Context()).Write(&want))
		got, err := appendRequestHead(nil, r, r.Body != nil)
		must.Do(t, err)
		head, _, _ := strings.Cut(want.String(), "\r\n\r\n")
		if string(got) != head+"\r\n\r\n" {
			t.Errorf("the head is %q, want %q", got, head)
		}
	}
	for name, spoil := range map[string]func(*http.Request){
		"a method with a blank":    func(r *http.Request) { r.Method = "GET / HTTP/1.1\r\nX:" },
		"a query with a blank":     func(r *http.Request) { r.URL.RawQuery = "a b" },
		"a query with a line feed": func(r *http.Request) { r.URL.RawQuery = "a\nb" },
		"a host with a path":       func(r *http.Request) { r.Host = "h/x" },
		"a host with a line feed":  func(r *http.Request) { r.Host = "h\nX: y" },
		"a host with a zone":       func(r *http.Request) { r.Host = "[fe80::1%25en0]" },
	} {
		r := newRequest(t, "GET", "/", nil)
		spoil(r)
		if head, err := appendRequestHead(nil, r, false); err == nil {
			t.Errorf("%s was written: %q", name, head)
		}
	}
}

func TestAResponseIsParsedInFewAllocations(t *testing.T) {
	raw := "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nDate: Sun, 22 Nov 2026 18:00:00 GMT\r\n" +
		"content-length: 5\r\nServer: x\r\nVary: Accept\r\n\r\nhello"
	from := strings.NewReader(raw)
	pc := (&h1Pool{}).newConn("", inMemory{Reader: from}, nil)
	a := &attempt{}
	const most = 6 // string, values, map and its group, response, body
	if n := testing.AllocsPerRun(100, func() {
		from.Reset(raw)
		pc.headLeft = maxResponseHead
		res, err := pc.readResponse(http.MethodGet, a)
		if err != nil || res.ContentLength != 5 {
			t.Fatal(res, err)
		}
		if _, err := pc.r.Discard(5); err != nil {
			t.Fatal(err)
		}
	}); n > most {
		t.Errorf("a response takes %v allocations, want %d", n, most)
	}
}

// A head that comes byte by byte is looked at once: its cost grows with its size.
func TestALongHeadIsReadOnce(t *testing.T) {
	var h headValidator
	text := "HTTP/1.1 200 OK\r\n" + strings.Repeat("X: y\r\n", 1000) + "Content-Length: 0\r\n\r\n"
	one := &oneByte{text: text}
	pc := (&h1Pool{}).newConn("", inMemory{Reader: one}, nil)
	pc.headLeft = maxResponseHead
	head, err := pc.checkHead(&h)
	if err != nil || head != text || h.fields != 1001 || one.reads != len(text) {
		t.Errorf("%d bytes of %d, %d fields, %d reads, %v", len(head), len(text), h.fields, one.reads, err)
	}
}

// What comes in two pieces, wherever the first one ends, is what comes in one: no
// line of the body is taken for a part of the head.
func TestAResponseThatComesInPiecesIsTheSame(t *testing.T) {
	const body = "x-a: 1\r\n\r\nx-b: 2\nend"
	for _, raw := range []string{
		fmt.Sprintf("HTTP/1.1 200 OK\r\nx-y: 1\r\nContent-Length: %d\r\n\r\n%s", len(body), body),
		"HTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nx-y: 1\r\n\r\n" + body,
		fmt.Sprintf("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(body), body),
		"HTTP/1.1 200 OK\r\n\r\n" + body,
	} {
		for cut := range len(raw) {
			pieces := io.MultiReader(strings.NewReader(raw[:cut]), strings.NewReader(raw[cut:]))
			pc := (&h1Pool{}).newConn("", inMemory{Reader: pieces}, nil)
			pc.headLeft = maxResponseHead
			res, err := pc.readResponse(http.MethodGet, &attempt{})
			if err != nil {
				t.Fatalf("%q|%q: %v", raw[:cut], raw[cut:], err)
			}
			watch(res.Body, true)
			pc.headLeft = 1 << 30
			if got, err := io.ReadAll(res.Body); string(got) != body || err != nil {
				t.Errorf("%q|%q has the body %q, %v", raw[:cut], raw[cut:], got, err)
			}
		}
	}
}

type oneByte struct {
	text  string
	reads int
}

func (o *oneByte) Read(p []byte) (int, error) {
	if o.reads == len(o.text) {
		return 0, fmt.Errorf("read %d bytes more", len(p))
	}
	o.reads++
	return copy(p[:1], o.text[o.reads-1:]), nil
}

// watch makes a body end without a request. over is what the end of the watch over
// the request's context reports.
func watch(body io.ReadCloser, over bool) {
	if b, ok := body.(*h1Body); ok {
		b.stop = func() bool { return over }
	}
}

func TestTheFirstBytesOfABodyCanBeAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, end := range []string{"hello", ""} {
			more := make(chan struct{})
			u := pipeClient(t, func(conn net.Conn) {
				_, _ = conn.Read(make([]byte, 4<<10))
				_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")
				<-more
				_, _ = io.WriteString(conn, end)
			})
			defer u.Close()
			res, err := u.RoundTrip(clearRequest(t.Context(), nil), Route{})
			must.Do(t, err)
			body := res.Body.(interface {
				WaitData(until time.Time) bool
				Buffered() int
			})
			if body.WaitData(time.Now().Add(time.Second)) || body.Buffered() != 0 {
				t.Error("a body that has not begun is there")
			}
			close(more)
			if !body.WaitData(time.Now().Add(time.Second)) || body.Buffered() != len(end) {
				t.Errorf("%d bytes of the body are there, want %d", body.Buffered(), len(end))
			}
			got, err := io.ReadAll(res.Body)
			if string(got) != end || (err == nil) != (end != "") {
				t.Errorf("the body is %q, %v", got, err)
			}
		}
	})
}

func TestAnAwaitedBodyEndsWithItsRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := pipeClient(t, func(conn net.Conn) {
			_, _ = conn.Read(make([]byte, 4<<10))
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")
			_, _ = io.Copy(io.Discard, conn)
		})
		defer u.Close()
		ctx, cancel := context.WithCancel(t.Context())
		res, err := u.RoundTrip(clearRequest(ctx, nil), Route{})
		must.Do(t, err)
		time.AfterFunc(time.Second, cancel)
		started := time.Now()
		if !res.Body.(*h1Body).WaitData(started.Add(time.Hour)) || time.Since(started) != time.Second {
			t.Errorf("the wait ended after %v", time.Since(started))
		}
		if _, err := res.Body.Read(make([]byte, 5)); err == nil {
			t.Error("a canceled request's body can be read")
		}
	})
}

// A host that has responded may take its time with the end of the request, whatever
// the wait for the first bytes of its response.
func TestAnAwaitedBodyDoesNotEndItsUpload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const last = "the end\r\n0\r\n\r\n"
		waited := make(chan struct{})
		var rest []byte
		u := pipeClient(t, func(conn net.Conn) {
			_, _ = conn.Read(make([]byte, 20))
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")
			<-waited
			for piece := make([]byte, 100); !strings.HasSuffix(string(rest), last); {
				n, err := conn.Read(piece)
				if rest = append(rest, piece[:n]...); err != nil {
					return
				}
			}
			_, _ = io.WriteString(conn, "ok")
		})
		defer u.Close()
		res, err := u.RoundTrip(clearRequest(t.Context(), strings.NewReader("the end")), Route{})
		must.Do(t, err)
		if res.Body.(*h1Body).WaitData(time.Now().Add(time.Second)) {
			t.Error("a body that has not begun is there")
		}
		close(waited)
		got, err := io.ReadAll(res.Body)
		if string(got) != "ok" || err != nil || !strings.HasSuffix(string(rest), last) {
			t.Errorf("the body is %q, %v, and the host got %q", got, err, rest)
		}
	})
}
