package proxy

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit/export"

	"github.com/google/martian/v3/har"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
)

// entryOf returns the entry whose URL ends so.
func entryOf(t *testing.T, entries []export.HAREntry, end string) export.HAREntry {
	t.Helper()
	for _, e := range entries {
		if strings.HasSuffix(e.Request.URL, end) {
			return e
		}
	}
	t.Fatalf("no entry of %s among %d", end, len(entries))
	return export.HAREntry{}
}

// fieldIn returns the values of a field, with "; " between.
func fieldIn(fields []har.Header, name string) string {
	var all []string
	for _, f := range fields {
		if f.Name == name {
			all = append(all, f.Value)
		}
	}
	return strings.Join(all, "; ")
}

// grpcMessage is a message of gRPC that is not compressed.
func grpcMessage(text string) string { return "\x00\x00\x00\x00" + string(byte(len(text))) + text }

func TestCaptureIsOfEachHTTPVersion(t *testing.T) {
	for _, originH2 := range []bool{false, true} {
		for _, clientH2 := range []bool{false, true} {
			t.Run(fmt.Sprintf("origin h2 %t client h2 %t", originH2, clientH2), func(t *testing.T) {
				w, entries := newCapturedOf(t, originH2, false, func(rw http.ResponseWriter, r *http.Request) {
					rw.Header().Set("Trailer", "Grpc-Status")
					rw.Header().Set("Content-Type", "application/grpc")
					_, _ = io.WriteString(rw, grpcMessage("got "+r.Header.Get("Authorization")))
					rw.(http.Flusher).Flush()
					rw.Header().Set("Grpc-Status", "0")
					rw.Header().Set(http.TrailerPrefix+"X-Echo", r.Header.Get("Authorization"))
				})
				want, before := "HTTP/1.1", time.Now()
				if clientH2 {
					w.client, want = w.h2client(), "HTTP/2.0"
				}
				w.do("GET", "https://api.good.example/v1/items?q=a%2Fb", "")
				w.do("POST", "https://api.good.example/v1/items", grpcMessage("call"), "Content-Type", "application/grpc")
				w.do("POST", "https://api.good.example/denied", grpcMessage("call"), "Content-Type", "application/grpc")
				got, text := entries()
				if len(got) != 3 {
					t.Fatalf("%d entries in %s", len(got), text)
				}
				for _, e := range got {
					if at := e.StartedDateTime; at.Before(before) || at.After(time.Now()) || e.Time <= 0 {
						t.Errorf("it began at %v, and took %f ms", at, e.Time)
					}
				}
				for _, e := range got[:2] {
					if e.Request.HTTPVersion != want || headerOf(e, "Authorization") != "[credential bearer/tracker/test]" ||
						headerOf(e, "Host") != "api.good.example" {
						t.Errorf("the request is %+v", e.Request)
					}
					if e.Response.Content.Encoding != "base64" || e.Response.Status != 200 ||
						!bytes.HasPrefix(e.Response.Content.Text, []byte("\x00\x00\x00\x001got Bearer ***")) {
						t.Errorf("the response is %+v", e.Response)
					}
					trailers := e.Aileron.Capture.Trailers
					if fieldIn(trailers, "Grpc-Status") != "0" || !strings.HasPrefix(fieldIn(trailers, "X-Echo"), "Bearer ***") {
						t.Errorf("the trailers are %+v", trailers)
					}
				}
				if q := got[0].Request.QueryString; len(q) != 1 || q[0].Value != "a/b" ||
					!strings.HasSuffix(got[0].Request.URL, "?q=a%2Fb") {
					t.Errorf("the query of %s is %+v", got[0].Request.URL, q)
				}
				if p := got[1].Request.PostData; p == nil || p.Text != grpcMessage("call") {
					t.Errorf("the message is %+v", p)
				}
				// A denial is recorded as the client got it: a gRPC client has one of its own form.
				denied := got[2].Response
				if clientH2 && (denied.Status != 200 || fieldIn(denied.Headers, "Grpc-Status") != "7" || denied.Content.Size != 0) {
					t.Errorf("the denial of gRPC is %+v", denied)
				}
				if !clientH2 && (denied.Status != 403 || !strings.Contains(string(denied.Content.Text), got[2].Aileron.ID)) {
					t.Errorf("the denial is %+v", denied)
				}
			})
		}
	}
}

func TestCaptureIsOfRequestsThatFail(t *testing.T) {
	nothing, err := net.Listen("tcp", "127.0.0.1:0")
	must.Do(t, err)
	must.Do(t, nothing.Close())
	w, entries := newCapturedWith(t, func(c *Config) {
		c.Upstream.Resolve["q.good.example:443"] = addrPort(nothing)
	}, hello)
	w.do("POST", "https://q.good.example/v1/items", "never sent") // denied: the operation is a GET
	if res, _ := w.do("GET", "https://q.good.example/v1/items?x=1", ""); res.StatusCode < 500 {
		t.Fatalf("an upstream that is not there: %d", res.StatusCode)
	}
	conn := w.tunnel("api.good.example")
	_, err = io.WriteString(conn,
		"POST /v1/items?half=1 HTTP/1.1\r\nHost: api.good.example\r\nContent-Length: 100\r\n\r\n"+
			"half of it")
	must.Do(t, err)
	must.Do(t, conn.CloseWrite())
	_, _ = io.ReadAll(conn)
	_ = conn.Close()
	w.eventually(func() bool { return len(w.outcomes()) == 3 })
	got, _ := entries()
	denied, failed, half := got[0], got[1], got[2]
	if denied.Response.Status != 403 || denied.Aileron.Decision != audit.DecisionRejected {
		t.Errorf("the denial is %+v", denied)
	}
	if failed.Response.Status < 500 || failed.Aileron.Reason == "" ||
		failed.Response.Content.MimeType != "application/json" {
		t.Errorf("without an upstream: %+v of %+v", failed.Response, failed.Aileron)
	}
	if half.Request.PostData == nil || half.Request.PostData.Text != "half of it" || half.Aileron.Reason == "" {
		t.Errorf("half a request: %+v with %q", half.Request, half.Aileron.Reason)
	}
}

func TestCaptureIsOfUndecryptedTunnels(t *testing.T) {
	w, entries := newCapturedWith(t, func(c *Config) { c.TLSPassthrough = []string{"other.example:443"} }, hello)
	conn := must.Get(w.pinned("other.example", "other.example"))(t)
	must.Get(io.WriteString(conn, "GET /inside HTTP/1.1\r\nHost: other.example\r\nConnection: close\r\n\r\n"))(t)
	_, _ = io.ReadAll(conn)
	_ = conn.Close()
	w.eventually(func() bool { return w.last().Event == audit.EventSandboxPassthrough })
	got, text := entries()
	if len(got) != 1 || got[0].Request.Method != "CONNECT" || got[0].Response.Content.Size == 0 ||
		len(got[0].Response.Content.Text) > 0 || got[0].Aileron.Capture.ResponseCut != "" ||
		headerOf(got[0], "Proxy-Authorization") != "[session token]" || strings.Contains(text, "/inside") {
		t.Errorf("the tunnel is %s", text)
	}
}

// A client may know a secret in any encoding, and may put it anywhere.
func TestCaptureHasNoSecretInAnyPlace(t *testing.T) {
	w, entries := newCaptured(t, true, hello)
	for _, form := range append(formsOf(testSecret), spelled(testSecret)...) {
		plain := strings.Map(func(r rune) rune {
			if r <= ' ' || strings.ContainsRune("?#%\"<>\\^`{|}", r) {
				return '_'
			}
			return r
		}, form)
		for _, host := range []string{"other.example", "api.good.example"} {
			w.do("POST", "https://"+host+"/"+plain, form, "Authorization", "Bearer "+plain, "X-Mine", plain,
				"Cookie", "a="+plain+"; b=c")
		}
		w.do("GET", "https://api.good.example/v1/items", "", "Authorization", "Basic "+
			base64.StdEncoding.EncodeToString([]byte("me:"+form)))
	}
	// With plus signs, which are spaces where the query is decoded; as the name of a field; and as a method.
	w.raw("other.example", "GET /?"+strings.ReplaceAll(testSecret, "%", "%25")+" HTTP/1.1\r\nHost: other.example\r\n"+
		"Connection: close\r\n\r\n")
	name := textproto.CanonicalMIMEHeaderKey("X-" + base64.RawURLEncoding.EncodeToString([]byte(testSecret)))
	w.raw("other.example", "GET /named HTTP/1.1\r\nHost: other.example\r\n"+name+": 1\r\nConnection: close\r\n\r\n")
	got, text := entries()
	if len(got) == 0 {
		t.Fatal("nothing was recorded")
	}
	set := secretSet()
	all := []string{text}
	for _, e := range got {
		for _, q := range e.Request.QueryString {
			all = append(all, q.Name+"="+q.Value)
		}
		for _, h := range e.Request.Headers {
			all = append(all, h.Name+": "+h.Value)
		}
		if p := e.Request.PostData; p != nil {
			all = append(all, p.Text)
		}
	}
	for _, text := range all {
		if clean, hits := set.Text(text); hits > 0 {
			for i := range clean {
				if clean[i] != text[i] {
					t.Fatalf("a secret is in the capture: …%.200q", text[max(0, i-60):])
				}
			}
		}
	}
}
