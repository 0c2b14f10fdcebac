package proxy

import (
	"bytes"
	"compress/gzip"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/audit/export"
	"github.com/ALRubinger/aileron/e2e/must"

	"github.com/ALRubinger/aileron/proxy/capture"
	"github.com/ALRubinger/aileron/proxy/scrub"
)

// newCaptured returns a world with a capture, and a function that closes it and returns its entries and its text.
func newCaptured(t *testing.T, passthrough bool, answer http.HandlerFunc) (*world, func() ([]export.HAREntry, string)) {
	t.Helper()
	return newCapturedOf(t, false, passthrough, answer)
}

// newCapturedOf is newCaptured with an origin that may speak HTTP/2.
func newCapturedOf(t *testing.T, h2, passthrough bool, answer http.HandlerFunc) (*world,
	func() ([]export.HAREntry, string)) {
	t.Helper()
	return newCapturedAs(t, h2, func(c *Config) { c.Passthrough = passthrough }, answer)
}

// newCapturedWith is newCaptured with a plane that set may change.
func newCapturedWith(t *testing.T, set func(*Config), answer http.HandlerFunc) (*world,
	func() ([]export.HAREntry, string)) {
	t.Helper()
	return newCapturedAs(t, false, set, answer)
}

func newCapturedAs(t *testing.T, h2 bool, set func(*Config), answer http.HandlerFunc) (*world,
	func() ([]export.HAREntry, string)) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "session.har")
	f, err := capture.Open(path, capture.Options{Version: "test", Token: testToken})
	must.Do(t, err)
	t.Cleanup(func() { _ = f.Close() })
	w := newWorldWith(t, h2, func(c *Config) { c.Capture = f; set(c) }, answer)
	return w, func() ([]export.HAREntry, string) {
		t.Helper()
		w.client.CloseIdleConnections()
		w.plane.Drain(t.Context())
		must.Do(t, f.Close())
		text, err := os.ReadFile(path)
		must.Do(t, err)
		var log struct {
			Log struct{ Entries []export.HAREntry }
		}
		if err := json.Unmarshal(text, &log); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		return log.Log.Entries, string(text)
	}
}

func headerOf(e export.HAREntry, name string) string {
	for _, h := range e.Request.Headers {
		if h.Name == name {
			return h.Value
		}
	}
	return ""
}

// formsOf are those of E1 (SECURITY.md) that a client can send as a text.
func formsOf(secret string) []string {
	std := base64.StdEncoding.EncodeToString
	return []string{secret, url.QueryEscape(secret), url.PathEscape(secret), std([]byte(secret)),
		std([]byte("x" + secret)), std([]byte("xy" + secret)), base64.RawURLEncoding.EncodeToString([]byte(secret)),
		hex.EncodeToString([]byte(secret)), strings.ToUpper(hex.EncodeToString([]byte(secret))),
		strings.ReplaceAll(secret, "/", `\/`)}
}

// spelled are further forms of proxy/scrub: escaped for JSON, HTML, quoted-printable or a URL twice, in base32, and as
// numbers.
func spelled(secret string) []string {
	var unicode, entities, quoted, percent, spaced, numbers strings.Builder
	for _, c := range []byte(secret) {
		fmt.Fprintf(&unicode, `\u%04x`, c)
		fmt.Fprintf(&entities, "&#%d;", c)
		fmt.Fprintf(&quoted, "=%02X", c)
		fmt.Fprintf(&percent, "%%25%02x", c)
		fmt.Fprintf(&spaced, "%02x:", c)
		fmt.Fprintf(&numbers, "%d,", c)
	}
	return []string{unicode.String(), entities.String(), quoted.String(), percent.String(), spaced.String(),
		numbers.String(), base32.StdEncoding.EncodeToString([]byte(secret))}
}

// secretSet finds what no capture may have.
func secretSet() *scrub.Set {
	return scrub.NewSet([]scrub.Credential{{Secret: []byte(testSecret)}, {Secret: []byte(testToken)}})
}

func addrPort(l net.Listener) netip.AddrPort { return netip.MustParseAddrPort(l.Addr().String()) }

func TestCaptureHasHeadsAndBodies(t *testing.T) {
	w, entries := newCaptured(t, false, func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("X-Echo", r.Header.Get("Authorization"))
		rw.Header().Set("Content-Type", "text/plain")
		_, _ = io.WriteString(rw, "echo "+r.Header.Get("Authorization")+r.URL.RawQuery)
	})
	w.do("POST", "https://api.good.example/v1/items", "the body", "Authorization", "Bearer placeholder", "X-Mine", "1")
	w.do("GET", "https://q.good.example/v1/items?x=a%20b&api_key=mine", "")
	w.do("GET", "https://api.good.example/v1/nowhere?q=1", "")
	w.do("GET", "https://unnamed.example/", "")
	got, text := entries()
	if len(got) != 4 {
		t.Fatalf("%d entries: %s", len(got), text)
	}
	first := got[0]
	if first.Request.PostData == nil || first.Request.PostData.Text != "the body" || headerOf(first, "X-Mine") != "1" ||
		headerOf(first, "Authorization") != "[credential bearer/tracker/test]" ||
		headerOf(first, "Host") != "api.good.example" {
		t.Errorf("the request is %+v", first.Request)
	}
	if body := string(first.Response.Content.Text); !strings.HasPrefix(body, "echo Bearer ***") ||
		first.Response.Content.MimeType != "text/plain" || first.Aileron.Redacted == 0 {
		t.Errorf("the response is %+v", first.Response)
	}
	want := "https://q.good.example/v1/items?x=a%20b&api_key=%5Bcredential+bearer%2Ftracker%2Ftest%5D"
	if got[1].Request.URL != want || len(got[1].Request.QueryString) != 2 || got[1].Request.QueryString[0].Value != "a b" {
		t.Errorf("the URL is %s", got[1].Request.URL)
	}
	denied := got[2]
	if denied.Response.Status != 403 || denied.Request.URL != "https://api.good.example/v1/nowhere?q=1" ||
		!strings.Contains(string(denied.Response.Content.Text), denied.Aileron.ID) || denied.Aileron.ID == "" {
		t.Errorf("the denial is %+v of %+v", denied.Response, denied.Request)
	}
	for _, e := range got {
		if e.Aileron.Fields["request_id"] == nil || e.Aileron.Session != "01SESSION" {
			t.Errorf("_aileron is %+v", e.Aileron)
		}
	}
	if strings.Contains(text, "placeholder") || strings.Contains(text, testToken) {
		t.Errorf("what was replaced is in the capture: %s", text)
	}
}

// A client may know a secret that it should not know, and a host that is passed through may send one: neither gets it
// into the file, in no encoding.
func TestCaptureHasNoSecret(t *testing.T) {
	zipped := func(text string) []byte {
		var out bytes.Buffer
		z := gzip.NewWriter(&out)
		_, _ = io.WriteString(z, text)
		must.Do(t, z.Close())
		return out.Bytes()
	}
	var forms []string
	for _, secret := range []string{testSecret, testToken} {
		forms = append(forms, formsOf(secret)...)
	}
	w, entries := newCaptured(t, true, func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Encoding", "gzip")
		rw.Header().Set("X-Leak", forms[0])
		_, _ = rw.Write(zipped(strings.Join(forms, "\n")))
	})
	for _, form := range forms {
		w.do("POST", "https://other.example/x?q="+url.QueryEscape(form), "{"+form+"}", "X-Mine", form)
		w.do("GET", "https://denied.good.example:444/?q="+url.QueryEscape(form), "", "Cookie", form)
	}
	got, text := entries()
	if len(got) != 2*len(forms) {
		t.Fatalf("%d entries, want %d", len(got), 2*len(forms))
	}
	var decoded strings.Builder
	for _, e := range got {
		decoded.Write(e.Response.Content.Text)
		decoded.WriteString(e.Request.URL)
		for _, q := range e.Request.QueryString {
			decoded.WriteString(q.Value)
		}
		if e.Request.PostData != nil {
			decoded.WriteString(e.Request.PostData.Text)
		}
	}
	for _, form := range forms {
		if strings.Contains(text, form) || strings.Contains(decoded.String(), form) {
			t.Errorf("%q is in the capture", form)
		}
	}
	if got[0].Aileron.Capture.ResponseDecoded != "gzip" || !strings.Contains(string(got[0].Response.Content.Text), "***") {
		t.Errorf("the body is %+v", got[0].Response.Content)
	}
}

func TestCaptureCutsALongBody(t *testing.T) {
	w, entries := newCaptured(t, false, func(rw http.ResponseWriter, _ *http.Request) {
		_, _ = rw.Write(bytes.Repeat([]byte("é"), capture.MaxBody))
	})
	_, body := w.do("POST", "https://plain.good.example/", strings.Repeat("\x00\xff", capture.MaxBody))
	if len(body) != 2*capture.MaxBody {
		t.Fatalf("the client got %d bytes", len(body))
	}
	got, _ := entries()
	e := got[0]
	if n := len(e.Response.Content.Text); n > capture.MaxBody || n < capture.MaxBody-4<<10 ||
		e.Response.Content.Size != 2*capture.MaxBody || e.Response.Content.Encoding != "" {
		t.Errorf("%d bytes of %d are recorded, as %q", n, e.Response.Content.Size, e.Response.Content.Encoding)
	}
	c := e.Aileron.Capture
	if c.ResponseCut == "" || c.RequestCut == "" || !strings.Contains(e.Comment, "not whole") ||
		len(e.Request.PostData.Text) > capture.MaxBody {
		t.Errorf("that they are cut is %+v, %q", c, e.Comment)
	}
}
