package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit"
)

func TestAnEchoedSecretDoesNotComeBack(t *testing.T) {
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		auth := r.Header.Get("Authorization")
		rw.Header().Set("X-Echo", auth)
		rw.Header().Set("Set-Cookie", "sid=fresh")
		rw.Header().Set("Content-Md5", "x")
		rw.Header().Set("Trailer", "X-Trailer")
		rw.WriteHeader(http.StatusEarlyHints)
		rw.WriteHeader(200)
		for _, c := range []byte("body " + auth + " end") {
			_, _ = rw.Write([]byte{c})
			rw.(http.Flusher).Flush()
		}
		rw.Header().Set("X-Trailer", auth)
	})
	res, body := w.do("GET", "https://api.good.example/v1/echo", "")
	want := "body Bearer " + strings.Repeat("*", len(testSecret)) + " end"
	if body != want || res.Header.Get("X-Echo") != "Bearer "+strings.Repeat("*", len(testSecret)) {
		t.Errorf("got %q, X-Echo %q", body, res.Header.Get("X-Echo"))
	}
	if all := fmt.Sprint(res.Header, res.Trailer); strings.Contains(all, "fresh") || strings.Contains(all, "Md5") ||
		strings.Contains(all, "0123456789") {
		t.Errorf("headers: %s", all)
	}
	if row := w.last(); row.Redactions != 3 {
		t.Errorf("redactions %d, want 3", row.Redactions)
	}
}

func TestWhatCannotBeSearchedIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		set    func(http.ResponseWriter)
		reason Reason
	}{
		"gzip": {func(w http.ResponseWriter) { w.Header().Set("Content-Encoding", "gzip") }, ReasonEncoding},
		"utf-16": {func(w http.ResponseWriter) { w.Header().Set("Content-Type", "text/html; charset=utf-16le") },
			ReasonCharset},
		"partial": {func(w http.ResponseWriter) { w.WriteHeader(http.StatusPartialContent) }, ReasonPartial},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) { c.set(rw); hello(rw, r) })
			res, body := w.do("GET", "https://api.good.example/v1/echo", "", "Range", "bytes=0-1")
			class, why := reason(t, body)
			if res.StatusCode != 406 || class != "response_unsafe" || why != c.reason ||
				w.last().Event != audit.EventProxyRejected {
				t.Errorf("got %d %s %s", res.StatusCode, class, why)
			}
			if w.requests()[0].Header.Get("Range") != "" {
				t.Error("the Range left")
			}
		})
	}
}

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

func TestAStreamLeavesEventByEvent(t *testing.T) {
	next := make(chan struct{})
	w := newWorld(t, func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "text/event-stream")
		for i := range 5 {
			fmt.Fprintf(rw, "data: %d\n\n", i)
			rw.(http.Flusher).Flush()
			select {
			case <-next:
			case <-time.After(testPatience):
				return
			}
		}
	})
	req, _ := http.NewRequestWithContext(t.Context(), "GET", "https://api.good.example/v1/echo", nil)
	res, err := w.client.Do(req)
	must(t, err)
	defer res.Body.Close()
	lines := bufio.NewReader(res.Body)
	for i := range 5 {
		line, err := lines.ReadString('\n')
		if err != nil || line != fmt.Sprintf("data: %d\n", i) {
			t.Fatalf("event %d: %q, %v", i, line, err)
		}
		_, _ = lines.ReadString('\n')
		select {
		case next <- struct{}{}:
		case <-time.After(testPatience):
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
