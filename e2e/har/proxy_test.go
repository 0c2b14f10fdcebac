package har

import (
	"bufio"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/proxy/modify"
)

// streams is an origin of an event stream that does not end, and of a WebSocket that repeats what it gets.
func streams(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "data: first\n\n")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			return
		}
		conn, rest, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
			"Sec-WebSocket-Accept: %s\r\n\r\n", modify.AcceptKey(r.Header.Get("Sec-Websocket-Key")))
		var h [6]byte
		if _, err := io.ReadFull(rest, h[:]); err != nil {
			return
		}
		payload := make([]byte, h[1]&0x7f)
		_, _ = io.ReadFull(rest, payload)
		for i := range payload {
			payload[i] ^= h[2+i%4]
		}
		_, _ = conn.Write(append([]byte{h[0], byte(len(payload))}, payload...))
		_, _ = io.Copy(io.Discard, rest)
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

// A session without a sandbox, with HTTP/2, a WebSocket and a stream that is open at its end, is captured; also if it
// is killed.
func TestAProxyIsCaptured(t *testing.T) {
	t.Parallel()
	for _, end := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		c := newCaptured(t)
		cmd := c.command("proxy", "--json", "--egress=passthrough", "--resolve", "live.example:80:"+streams(t))
		cmd.Stderr = os.Stderr
		ready := must.Get(harness.StartProxy(cmd))(t)
		t.Cleanup(func() { _ = cmd.Process.Kill() })
		proxy := must.Get(ready.Proxy())(t)
		useHTTP2(t, proxy, ready)
		talk(t, proxy)
		res, err := (&http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(proxy)}}).Get("http://live.example/events")
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		must.Get(io.ReadFull(res.Body, make([]byte, len("data: first\n\n"))))(t)
		// The two that have ended are written.
		harness.Poll(harness.Patience, 10*time.Millisecond, func() bool {
			text, _ := os.ReadFile(c.file)
			return strings.Contains(string(text), "_webSocketMessages") && strings.Contains(string(text), "octo-stand-in")
		})
		_ = cmd.Process.Signal(end)
		_ = cmd.Wait()
		got, text := c.entries()
		want := []string{`"httpVersion":"HTTP/2.0"`, `{"type":"send",`, `"opcode":1,"data":"hello"`, `{"type":"receive",`,
			`[credential bearer/aileron-connector-github/work]`}
		if end == syscall.SIGTERM {
			want = append(want, "data: first", "it ended early")
		}
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("after %v: %d entries without %s: %s", end, len(got), w, text)
			}
		}
	}
}

func useHTTP2(t *testing.T, proxy *url.URL, ready harness.Ready) {
	t.Helper()
	pool := must.Get(ready.Roots())(t)
	transport := &http.Transport{Proxy: http.ProxyURL(proxy), ForceAttemptHTTP2: true,
		TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}
	defer transport.CloseIdleConnections()
	res, err := (&http.Client{Transport: transport}).Get("https://api.github.com/user")
	must.Do(t, err)
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil || res.ProtoMajor != 2 || res.StatusCode != 200 {
		t.Fatalf("%s %s, %v", res.Proto, res.Status, err)
	}
}

// talk sends a message on a WebSocket and reads its answer.
func talk(t *testing.T, proxy *url.URL) {
	t.Helper()
	conn, err := net.Dial("tcp", proxy.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(harness.Patience))
	password, _ := proxy.User.Password()
	auth := base64.StdEncoding.EncodeToString([]byte(proxy.User.Username() + ":" + password))
	in := bufio.NewReader(conn)
	for _, step := range []struct {
		request string
		status  int
	}{
		{"CONNECT live.example:80 HTTP/1.1\r\nHost: live.example:80\r\nProxy-Authorization: Basic " + auth + "\r\n\r\n", 200},
		{"GET /live HTTP/1.1\r\nHost: live.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
			"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n", 101},
	} {
		must.Get(io.WriteString(conn, step.request))(t)
		connect := &http.Request{Method: http.MethodConnect}
		res := must.Get(http.ReadResponse(in, connect))(t) //nolint:bodyclose // closed below
		_ = res.Body.Close()                               // it has none
		if res.StatusCode != step.status {
			t.Fatalf("%s after %q", res.Status, step.request)
		}
	}
	must.Get(conn.Write([]byte("\x81\x85\x00\x00\x00\x00hello")))(t)
	if got := make([]byte, 7); err != nil {
		t.Fatal(err)
	} else if _, err := io.ReadFull(in, got); err != nil || string(got[2:]) != "hello" {
		t.Fatalf("%q, %v", got, err)
	}
}
