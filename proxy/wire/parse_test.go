package wire

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

// heads are requests that are accepted, and seeds of FuzzParse.
var heads = []string{
	"GET / HTTP/1.1\r\nHost: h\r\n\r\n",
	"POST /a?b HTTP/1.1\r\nHost: h:1\r\nContent-Length: 3\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: h\r\ntransfer-encoding: Chunked\r\nTrailer: X-Sum, y\r\n\r\n",
	"GET / HTTP/1.0\r\n\r\n",
	"GET http://other.example/x%2Fy?q HTTP/1.1\r\nhost: h\r\n\r\n",
	"CONNECT h:443 HTTP/1.1\r\nHost: h:443\r\n\r\n",
	"CONNECT /h HTTP/1.1\r\nHost: h\r\n\r\n",
	"OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: h\r\npragma: no-cache\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: h\r\nPragma: no-cache\r\nCache-Control: max-age=0\r\n\r\n",
	"GET / HTTP/1.1\r\nHost:h\r\nX-a:\t 1 \r\nx-A: 2\r\nX-A:\r\nx_!#$: \xe4\r\nConnection: close, x\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: h\r\nTrailer: Content-Length\r\n\r\n",
}

// rejectedHeads are accepted by validate and rejected by parse.
var rejectedHeads = []string{
	"GET /%zz HTTP/1.1\r\nHost: h\r\n\r\n",
	"GET path HTTP/1.1\r\nHost: h\r\n\r\n",
	"CONNECT h:port HTTP/1.1\r\nHost: h\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTrailer: x, content-length\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTrailer: Transfer-Encoding\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTrailer: trailer\r\n\r\n",
}

func TestAHeadMeansWhatItMeansToNetHTTP(t *testing.T) {
	for _, head := range heads {
		if !parsesAsNetHTTPDoes(t, head) {
			t.Errorf("%q was rejected", head)
		}
	}
	for _, head := range rejectedHeads {
		if parsesAsNetHTTPDoes(t, head) {
			t.Errorf("%q was accepted", head)
		}
	}
}

// The corpus in testdata/fuzz holds heads that net/http accepts and this package
// rejects.
func FuzzValidate(f *testing.F) {
	for _, head := range append(heads, rejectedHeads...) {
		f.Add([]byte(head))
	}
	f.Add([]byte("GET / HTTP/1.1\r\nHost: h\nX: y\r\n\r\n"))
	f.Fuzz(func(t *testing.T, head []byte) {
		if strings.HasSuffix(string(head), "\r\n\r\n") {
			parsesAsNetHTTPDoes(t, string(head))
		}
	})
}

// parsesAsNetHTTPDoes reports whether head is accepted, and fails the test when
// net/http rejects what is accepted, or reads another request in it.
func parsesAsNetHTTPDoes(t *testing.T, head string) bool {
	t.Helper()
	frame, perr := validate(head, Limits{}.WithDefaults())
	if perr != nil {
		if perr.Status < 400 || perr.Reason == "" {
			t.Fatalf("a rejection without status or reason: %+v", perr)
		}
		return false
	}
	raw := []byte(head)
	CanonicalizeNames(raw[strings.IndexByte(head, '\n')+1:])
	if again, perr := validate(string(raw), Limits{}.WithDefaults()); perr != nil || again != frame {
		t.Fatalf("%q with canonical names is %q: %+v, %+v, want %+v", head, raw, perr, again, frame)
	}
	got, err := parse(t.Context(), string(raw), frame)
	want, wantErr := http.ReadRequest(bufio.NewReader(strings.NewReader(head)))
	if err != nil {
		return false
	}
	if wantErr != nil {
		t.Fatalf("net/http rejects %q: %v", head, wantErr)
	}
	if want.URL.Host != "" {
		want.Host = frame.host // net/http drops it beside an absolute target; a handler must see both
	}
	if !frame.chunked && want.ContentLength != frame.length || frame.chunked && want.ContentLength != -1 {
		t.Fatalf("%q: length %d, %+v", head, want.ContentLength, frame)
	}
	line, _, _ := strings.Cut(head, "\r\n")
	if first := fmt.Sprintf("%s %s %s", got.Method, got.RequestURI, got.Proto); first != line {
		t.Fatalf("%q was read as %q", line, first)
	}
	if want := [...]any{want.Method, want.URL, want.RequestURI, want.Proto, want.ProtoMajor, want.ProtoMinor, want.Host,
		want.Header}; !reflect.DeepEqual(want, [...]any{got.Method, got.URL, got.RequestURI, got.Proto, got.ProtoMajor,
		got.ProtoMinor, got.Host, got.Header}) {
		t.Fatalf("%q was read as %+v, want %+v", head, got, want)
	}
	return true
}

// A field that is appended to is not the next field's value.
func TestValuesOfFieldsDoNotOverlap(t *testing.T) {
	head := "GET / HTTP/1.1\r\nHost: h\r\nA: 1\r\nB: 2\r\nC: 3\r\n\r\n"
	frame, bad := validate(head, Limits{}.WithDefaults())
	if bad != nil {
		t.Fatal(bad)
	}
	r := must.Get(parse(t.Context(), head, frame))(t)
	r.Header.Add("A", "x")
	r.Header.Add("B", "y")
	if b, c := r.Header["B"], r.Header["C"]; len(b) != 2 || b[0] != "2" || len(c) != 1 || c[0] != "3" {
		t.Errorf("B is %q and C %q after an append to A and B", b, c)
	}
}

// A head is one string, its values are one array, and its names are parts of the
// string or constants.
func TestAHeadIsParsedInFewAllocations(t *testing.T) {
	head := []byte("GET /v1/items?page=2 HTTP/1.1\r\nHost: api.example\r\nuser-agent: client/1.0\r\nAccept: */*\r\n" +
		"Authorization: Bearer placeholder\r\nAccept-Encoding: gzip\r\nX-GitHub-Api-Version-Selected: 7\r\n\r\n")
	ctx, limits := context.Background(), Limits{}.WithDefaults()
	const most = 6 // string, values, map and its group, URL, request
	if n := testing.AllocsPerRun(100, func() {
		CanonicalizeNames(head[bytes.IndexByte(head, '\n')+1:])
		text := string(head)
		frame, bad := validate(text, limits)
		if bad != nil {
			t.Fatal(bad)
		}
		must.Get(parse(ctx, text, frame))(t)
	}); n > most {
		t.Errorf("a head takes %v allocations, want %d", n, most)
	}
}
