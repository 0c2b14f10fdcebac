package wire

import (
	"bufio"
	"bytes"
	"net/http"
	"strings"
	"testing"
)

// FuzzParseRequest: a request that is accepted is the one that its parts are, also for a lenient reader of its bytes.
func FuzzParseRequest(f *testing.F) {
	f.Add("GET", "https://a.example/x?y", "A", "1", "Host", "a.example", int64(0))
	f.Add("POST", "/x", "Content-Length", "1", "Transfer-Encoding", "chunked", int64(2))
	f.Add("GET /y HTTP/1.1\r\nA: ", "/x", "A:b", "1\r\nB: 2", "hOST", "", int64(0))
	f.Fuzz(func(t *testing.T, method, target, name, value, second, more string, body int64) {
		fields := []Field{{name, value}, {second, more}}
		body = max(0, body)
		r, perr := ParseRequest(t.Context(), method, target, "a.example", fields, body, Limits{})
		if perr != nil {
			return
		}
		for _, f := range fields {
			if strings.EqualFold(f.Name, "Content-Length") || strings.EqualFold(f.Name, "Transfer-Encoding") {
				t.Fatalf("the field %s frames the body", f.Name)
			}
		}
		if r.Method != method || r.RequestURI != target {
			t.Errorf("%q %q is read as %q %q", method, target, r.Method, r.RequestURI)
		}
		var head bytes.Buffer
		head.WriteString(method + " " + target + " HTTP/1.1\r\n")
		if r.Host == "a.example" && !strings.EqualFold(name, "Host") && !strings.EqualFold(second, "Host") {
			head.WriteString("Host: a.example\r\n")
		}
		for _, f := range fields {
			head.WriteString(f.Name + ":" + f.Value + "\r\n")
		}
		head.WriteString("\r\n")
		got, err := http.ReadRequest(bufio.NewReader(&head))
		if err != nil {
			return // stricter than this reader is no fault
		}
		for _, name := range []string{"Cache-Control", "Content-Length", "Trailer"} { // of Pragma, of the body, of none
			delete(r.Header, name)
			delete(got.Header, name)
		}
		if got.Method != r.Method || got.RequestURI != r.RequestURI || len(got.Header) != len(r.Header) {
			t.Errorf("it is %+v, and a lenient reader has %+v", r, got)
		}
	})
}
