package proxy

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/must"
)

func zipped(text string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = io.WriteString(z, text)
	_ = z.Close()
	return b.String()
}

func TestAPackedResponseIsRefusedUnlessTheOperationDeclaresIt(t *testing.T) {
	body := zipped("Authorization: Bearer " + testSecret)
	for _, c := range []struct {
		url    string
		reason Reason
		packed string
	}{
		{"https://api.good.example/v1/echo", "packed_body", ""},
		{"https://api.good.example/v1/files/a.tgz", "", "gzip"},
		{"https://plain.good.example/a.tgz", "", ""}, // carries no credential
	} {
		w := newWorld(t, func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(rw, body)
		})
		res, got := w.do("GET", c.url, "")
		row := w.last()
		if Reason(row.Reason) != c.reason || fmt.Sprint(row.Fields["packed"]) != fmt.Sprint(orNil(c.packed)) {
			t.Errorf("%s: the row says %q, packed %v", c.url, row.Reason, row.Fields["packed"])
		}
		if c.reason == "" {
			if res.StatusCode != 200 || got != body {
				t.Errorf("%s: %d, %d bytes", c.url, res.StatusCode, len(got))
			}
			continue
		}
		if class, why := reason(t, got); res.StatusCode != 406 || class != "response_unsafe" || why != c.reason ||
			row.Status != 406 || row.Decision != "rejected" {
			t.Errorf("%s: %d %s %s, row %+v", c.url, res.StatusCode, class, why, row)
		}
	}
}

// A client of HTTP/2 gets the same refusal, and one of gRPC gets it in gRPC's
// own form.
func TestPackedResponsesAreRefusedOverH2(t *testing.T) {
	message := append([]byte{1, 0, 0, 0, 40}, zipped(testSecret)...)
	for _, c := range []struct{ kind, body string }{{"application/json", zipped(testSecret)},
		{"application/grpc", string(message)}} {
		w := newWorldOf(t, true, func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Type", c.kind)
			_, _ = io.WriteString(rw, c.body)
		})
		w.plane.peek, w.plane.peekStream = time.Minute, time.Minute
		w.client = w.h2client()
		res, got := w.do("POST", "https://api.good.example/v1/items", "x", "Content-Type", c.kind)
		if c.kind == "application/json" {
			if class, why := reason(t, got); res.StatusCode != 406 || class != "response_unsafe" || why != "packed_body" {
				t.Errorf("%d %s %s", res.StatusCode, class, why)
			}
		} else if res.Header.Get("Grpc-Status") != "2" || got != "" {
			t.Errorf("gRPC: status %q, body %q", res.Header.Get("Grpc-Status"), got)
		}
		if row := w.last(); row.Reason != "packed_body" || row.Status != 406 {
			t.Errorf("%s: the row says %s, %d", c.kind, row.Reason, row.Status)
		}
	}
}

// Reading ahead reaches the end of a short body, whose trailers must not be lost.
func TestTrailersOfAShortBodyArrive(t *testing.T) {
	for _, text := range []string{"", "8", "x"} {
		for _, kind := range []string{"application/grpc", "application/json"} {
			w := newWorldOf(t, true, func(rw http.ResponseWriter, r *http.Request) {
				rw.Header().Set("Content-Type", kind)
				rw.Header().Set("Trailer", "Grpc-Status")
				rw.(http.Flusher).Flush()
				_, _ = io.WriteString(rw, text)
				rw.Header().Set("Grpc-Status", "7")
				rw.Header().Set(http.TrailerPrefix+"X-Echo", r.Header.Get("Authorization"))
			})
			w.client = w.h2client()
			res, body := w.do("GET", "https://api.good.example/v1/items", "")
			if got := res.Trailer.Get("Grpc-Status"); body != text || got != "7" {
				t.Errorf("%s %q: got %q with the trailer %q", kind, text, body, got)
			}
			if got := res.Trailer.Get("X-Echo"); !strings.HasPrefix(got, "Bearer ***") {
				t.Errorf("%s %q: the echoing trailer is %q", kind, text, got)
			}
		}
	}
}

func orNil(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func TestWideCharactersAreRefusedWithoutACharset(t *testing.T) {
	var wide strings.Builder
	for _, c := range testSecret {
		fmt.Fprintf(&wide, "%c\x00", c)
	}
	w := newWorld(t, func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "text/plain")
		_, _ = io.WriteString(rw, wide.String())
	})
	// What an operation declares as packed is no reason to let text pass.
	for _, path := range []string{"/v1/echo", "/v1/files/a"} {
		_, body := w.do("GET", "https://api.good.example"+path, "")
		if class, why := reason(t, body); class != "response_unsafe" || why != "charset" || w.last().Reason != "charset" {
			t.Errorf("%s: got %s %s", path, class, why)
		}
	}
}

// A stream whose head is out is cut before what is packed, and the row has the
// reason.
func TestAPackedPartCutsTheStream(t *testing.T) {
	for name, c := range map[string]struct{ kind, before, packed string }{
		"part": {"multipart/mixed; boundary=b", "--b\r\n\r\nplain\r\n", "--b\r\nContent-Type: application/x\r\n\r\n" +
			zipped(testSecret) + "\r\n--b--"},
		"base64": {"multipart/mixed; boundary=b", "--b\r\n\r\nplain\r\n",
			"--b\r\nContent-Transfer-Encoding: base64\r\n\r\n" + base64.StdEncoding.EncodeToString([]byte(zipped(testSecret)))},
		"coding": {"multipart/mixed; boundary=b", "--b\r\n\r\nplain\r\n", "--b\r\nContent-Encoding: br\r\n\r\nrest"},
		"charset": {"multipart/mixed; boundary=b", "--b\r\n\r\nplain\r\n",
			"--b\r\nContent-Type: text/plain; charset=utf-16\r\n\r\nrest"},
		"odd":     {"multipart/mixed; boundary=b", "--b\r\n\r\nplain\r\n", "--b\r\nContent-Encoding : gzip\r\n\r\nrest"},
		"gRPC":    {"application/grpc+proto", "\x00\x00\x00\x00\x05plain", "\x01\x00\x00\x00\x20" + zipped(testSecret)},
		"blank":   {"application/json", "\n", zipped(testSecret)},
		"Connect": {"application/connect+json", "\x00\x00\x00\x00\x05plain", "\x01\x00\x00\x00\x20" + zipped(testSecret)},
	} {
		t.Run(name, func(t *testing.T) {
			read := make(chan struct{})
			w := newWorld(t, func(rw http.ResponseWriter, _ *http.Request) {
				rw.Header().Set("Content-Type", c.kind)
				_, _ = io.WriteString(rw, c.before)
				rw.(http.Flusher).Flush()
				<-read
				_, _ = io.WriteString(rw, c.packed)
			})
			res := must.Get(w.client.Get("https://api.good.example/v1/echo"))(t)
			defer res.Body.Close()
			first := make([]byte, len(c.before))
			must.Get(io.ReadFull(res.Body, first))(t)
			close(read)
			rest, err := io.ReadAll(res.Body)
			if err == nil || string(first) != c.before || strings.Contains(string(rest), "\x1f\x8b") ||
				strings.Contains(string(rest), "rest") || strings.Contains(string(rest), "H4sI") {
				t.Errorf("after %q came %q, %v", first, rest, err)
			}
			want := map[string]Reason{"coding": "content_encoding", "charset": "charset", "odd": "odd_field_name"}[name]
			if want == "" {
				want = "packed_body"
			}
			w.eventually(func() bool { return len(w.outcomes()) == 1 })
			if row := w.outcomes()[0]; Reason(row.Reason) != want {
				t.Errorf("the row says %q, want %q", row.Reason, want)
			}
		})
	}
}

// A head does not wait for a body that is long in coming.
func TestAStreamThatIsSilentHasItsHead(t *testing.T) {
	read := make(chan struct{})
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "text/event-stream")
		rw.(http.Flusher).Flush()
		select {
		case <-read:
			_, _ = io.WriteString(rw, "data: "+testSecret+"\n\n")
		case <-r.Context().Done():
		}
	})
	w.client.Timeout = testPatience
	res, err := w.client.Get("https://api.good.example/v1/echo")
	must.Do(t, err)
	defer res.Body.Close()
	close(read)
	if body, err := io.ReadAll(res.Body); err != nil || string(body) != "data: "+strings.Repeat("*",
		len(testSecret))+"\n\n" {
		t.Errorf("got %q, %v", body, err)
	}
}

func TestAlternativeServicesAreNotAdvertised(t *testing.T) {
	w := newWorld(t, func(rw http.ResponseWriter, _ *http.Request) {
		for _, name := range []string{"Alt-Svc", "Proxy-Authenticate", "Proxy-Authentication-Info", "X-Aileron-Audit-Id"} {
			rw.Header().Set(name, `h3=":443"; ma=86400`)
		}
		rw.Header().Set("X-Other", "stays")
	})
	for _, target := range []string{"https://api.good.example/v1/echo", "https://plain.good.example/"} {
		res, _ := w.do("GET", target, "")
		for _, name := range []string{"Alt-Svc", "Proxy-Authenticate", "Proxy-Authentication-Info", "X-Aileron-Audit-Id"} {
			if got := res.Header.Get(name); got != "" {
				t.Errorf("%s: %s came: %q", target, name, got)
			}
		}
		if res.Header.Get("X-Other") != "stays" {
			t.Errorf("%s: X-Other is missing: %v", target, res.Header)
		}
	}
}
