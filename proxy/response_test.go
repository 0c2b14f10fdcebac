package proxy

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// What refuses a response does not undo its request.
func TestARefusedResponseSaysWhetherTheRequestTookEffect(t *testing.T) {
	for _, c := range []struct {
		method string
		status int
		field  string
		want   string
	}{
		{"POST", 201, "Content-Encoding: gzip", "The host answered 201: the request took effect."},
		{"POST", 303, "Content-Type: text/plain; charset=utf-7", "The host answered 303: the request took effect."},
		{"POST", 307, "Content-Type: text/plain; charset=utf-7", "The host answered 307. Check whether"},
		{"POST", 408, "Content-Encoding: br", "The host answered 408. Check whether"},
		{"POST", 422, "Content-Encoding: br", "The host answered 422: the request had no effect."},
		{"POST", 500, "Content-Encoding: br", "The host answered 500. Check whether the request took effect"},
		{"POST", 201, "Content-Length : 5", "brings the same. Check whether the request took effect"},
		{"GET", 200, "Content-Encoding: gzip", "Sending the request again brings the same."},
	} {
		w, _ := speak(t, plainly, func(conn net.Conn, _ string) {
			_, _ = fmt.Fprintf(conn, "HTTP/1.1 %d X\r\n%s\r\nContent-Length: 0\r\n\r\n", c.status, c.field)
		})
		res, body := w.do(c.method, "https://api.good.example/v1/items", strings.Repeat("x", len(c.method)-3))
		if class, _ := reason(t, body); res.StatusCode != 406 || class != "response_unsafe" ||
			!strings.Contains(body, c.want) ||
			c.method == "GET" && strings.Contains(body, "effect") || res.Header.Get("X-Should-Retry") != "false" {
			t.Errorf("%s, %d, %q: %d %s", c.method, c.status, c.field, res.StatusCode, body)
		}
		if named := fmt.Sprintf(`"upstream_status":"%d"`, c.status); strings.Contains(c.field, "Content-Length ") ==
			strings.Contains(body, named) {
			t.Errorf("%s, %q: %s is not told, or unknown: %s", c.method, c.field, named, body)
		}
		var came any
		if !strings.Contains(c.field, "Content-Length ") {
			came = strconv.Itoa(c.status)
		}
		if row := w.last(); row.Fields["upstream_status"] != came {
			t.Errorf("%s, %d, %q: the row has %v", c.method, c.status, c.field, row.Fields)
		}
	}
}

// A client that resumes a download asks for parts where they are offered.
func TestRangesAreOfferedWhereTheyAreTaken(t *testing.T) {
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Accept-Ranges", "bytes")
		hello(rw, r)
	})
	for path, want := range map[string]string{"/v1/items": "", "/v1/parts": "bytes"} {
		res, body := w.do("GET", "https://api.good.example"+path, "")
		if got := res.Header.Get("Accept-Ranges"); res.StatusCode != 200 || got != want {
			t.Errorf("%s: %d %q offers %q, want %q", path, res.StatusCode, body, got, want)
		}
	}
}

func TestAnUploadStreamsAndIsCounted(t *testing.T) {
	w := newWorld(t, hello)
	body := strings.Repeat("0123456789", 1<<18)
	res, _ := w.do("POST", "https://api.good.example/v1/items", body, "Idempotency-Key", "k", "X-Http-Method-Override",
		"DELETE")
	if res.StatusCode != 200 || w.bodies[0] != body || w.last().RequestBytes != int64(len(body)) {
		t.Errorf("got %d, %d bytes, row %d", res.StatusCode, len(w.bodies[0]), w.last().RequestBytes)
	}
	if h := w.requests()[0].Header; h.Get("Idempotency-Key") != "" || h.Get("X-Http-Method-Override") != "" {
		t.Errorf("headers left: %v", h)
	}
}

func TestDeclaredFieldsReachTheRow(t *testing.T) {
	w := newWorld(t, func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(rw, `{"title":"A title","owner":"someone","other":"unseen"}`)
	})
	w.do("GET", "https://api.good.example/v1/items/42", "")
	f := w.last().Fields
	if f["id"] != "42" || f["title"] != "A title" || !strings.HasPrefix(fmt.Sprint(f["owner"]), "sha256:") ||
		strings.Contains(fmt.Sprint(f), "unseen") {
		t.Errorf("fields: %v", f)
	}
}
