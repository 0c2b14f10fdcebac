package proxy

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/proxy/capture"
)

func TestCaptureIsOfResponsesWithoutBody(t *testing.T) {
	w, entries := newCaptured(t, true, func(rw http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/hints":
			rw.Header().Set("Link", "</secret-"+testSecret+">")
			rw.WriteHeader(http.StatusEarlyHints)
			rw.Header().Del("Link")
			_, _ = io.WriteString(rw, "after hints")
		case "/204":
			rw.WriteHeader(http.StatusNoContent)
		case "/304":
			rw.Header().Set("Etag", `"1"`)
			rw.WriteHeader(http.StatusNotModified)
		case "/302":
			http.SetCookie(rw, &http.Cookie{Name: "sid", Value: "1", Path: "/p", HttpOnly: true, Secure: true})
			http.Redirect(rw, r, "https://other.example/next?code=2", http.StatusFound)
		default:
			rw.Header().Set("Content-Length", "1000")
		}
	})
	w.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	for _, path := range []string{"hints", "204", "304", "302?q=1"} {
		w.do("GET", "https://other.example/"+path, "", "Cookie", "a=b; c=d")
	}
	w.do("HEAD", "https://other.example/head", "")
	w.do("HEAD", "https://api.good.example/denied", "")
	got, text := entries()
	for end, want := range map[string]int{"/204": 204, "/304": 304, "/302?q=1": 302, "/head": 200, "/denied": 403} {
		e := entryOf(t, got, end)
		if e.Response.Status != want || e.Aileron.Capture.ResponseCut != "" || e.Comment != "" {
			t.Errorf("%s is %+v, cut %q", end, e.Response, e.Aileron.Capture.ResponseCut)
		}
		if want != 302 && (e.Response.Content.Size != 0 || len(e.Response.Content.Text) != 0) {
			t.Errorf("%s has the body %+v", end, e.Response.Content)
		}
	}
	if fieldIn(entryOf(t, got, "/head").Response.Headers, "Content-Length") != "1000" {
		t.Error("the length that a HEAD announces is not recorded")
	}
	if e := entryOf(t, got, "/hints"); string(e.Response.Content.Text) != "after hints" ||
		strings.Contains(text, "secret-") {
		t.Errorf("after the interim response: %+v", e.Response)
	}
	e := entryOf(t, got, "/302?q=1")
	cookies := e.Response.Cookies
	if e.Response.RedirectURL != "https://other.example/next?code=2" || len(cookies) != 1 || cookies[0].Name != "sid" ||
		cookies[0].Path != "/p" || !cookies[0].HTTPOnly || !cookies[0].Secure {
		t.Errorf("the redirect is %+v with %+v", e.Response, cookies)
	}
	if sent := e.Request.Cookies; len(sent) != 2 || sent[1].Name != "c" || sent[1].Value != "d" {
		t.Errorf("the cookies are %+v", sent)
	}
}

// coded returns a text in a content coding.
func coded(coding, text string) []byte {
	var out bytes.Buffer
	var w io.WriteCloser
	switch coding {
	case "gzip":
		w = gzip.NewWriter(&out)
	case "deflate":
		w = zlib.NewWriter(&out)
	case "bare":
		w, _ = flate.NewWriter(&out, 1)
	}
	_, _ = io.WriteString(w, text)
	_ = w.Close()
	return out.Bytes()
}

func TestCaptureIsOfCompressedBodies(t *testing.T) {
	long := strings.Repeat("all the same ", 1<<18)
	noise := make([]byte, 2<<20) // does not shrink
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise)
	bodies := map[string]struct {
		coding string
		body   []byte
		text   string // its beginning; "": stays as it is
		cut    bool
	}{
		"gzip":    {"gzip", coded("gzip", "plain text"), "plain text", false},
		"deflate": {"deflate", coded("deflate", "plain text"), "plain text", false},
		"bare":    {"deflate", coded("bare", "plain text"), "plain text", false},
		"br":      {"br", []byte("\x0b\x02\x80 as it is \xff"), "", false},
		"none":    {"gzip", []byte("no gzip at all"), "", false},
		"bomb":    {"gzip", coded("gzip", long), long[:1<<20-64], true},
		"long":    {"gzip", coded("gzip", testSecret+string(noise)), strings.Repeat("*", len(testSecret)), true},
		"truncated": {"gzip", coded("gzip", testSecret+string(noise))[:100<<10],
			strings.Repeat("*", len(testSecret)), true},
	}
	w, entries := newCaptured(t, true, func(rw http.ResponseWriter, r *http.Request) {
		b := bodies[strings.TrimPrefix(r.URL.Path, "/")]
		rw.Header().Set("Content-Encoding", b.coding)
		_, _ = rw.Write(b.body)
	})
	for name, b := range bodies {
		_, body := w.do("POST", "https://other.example/"+name, string(b.body), "Content-Encoding", b.coding)
		if body != string(b.body) {
			t.Errorf("%s: the client got %d bytes of %d", name, len(body), len(b.body))
		}
	}
	got, text := entries()
	if strings.Contains(text, testSecret) {
		t.Error("a secret that was compressed is in the capture")
	}
	for name, b := range bodies {
		e := entryOf(t, got, "/"+name)
		c := e.Aileron.Capture
		want := b.text
		if want == "" {
			want = string(b.body)
		}
		for side, s := range map[string]struct{ text, decoded, cut string }{
			"request":  {e.Request.PostData.Text, c.RequestDecoded, c.RequestCut},
			"response": {string(e.Response.Content.Text), c.ResponseDecoded, c.ResponseCut},
		} {
			if !strings.HasPrefix(s.text, want) || (s.decoded == "") != (b.text == "") || (s.cut != "") != b.cut ||
				len(s.text) > capture.MaxBody {
				t.Errorf("%s of %s: %d bytes %.40q, decoded %q, cut %q", side, name, len(s.text), s.text, s.decoded, s.cut)
			}
		}
	}
}
