package proxy

import (
	"bufio"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
)

// pinned dials through a tunnel that the plane does not decrypt.
func (w *world) pinned(host, sni string) (*tls.Conn, error) {
	w.t.Helper()
	conn := must.Get(net.Dial("tcp", w.addr))(w.t)
	w.t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(testPatience))
	fmt.Fprintf(conn, "CONNECT %s:443 HTTP/1.1\r\nHost: %s:443\r\nProxy-Authorization: Basic %s\r\n\r\n", host, host,
		base64.StdEncoding.EncodeToString([]byte("x:"+testToken)))
	res := must.Get(http.ReadResponse(bufio.NewReaderSize(conn, 1), &http.Request{Method: http.MethodConnect}))(w.t)
	if res.StatusCode != 200 {
		w.t.Fatalf("CONNECT %s: %d", host, res.StatusCode)
	}
	secure := tls.Client(conn, &tls.Config{ServerName: sni, RootCAs: w.originRoots, MinVersion: tls.VersionTLS12})
	return secure, secure.Handshake()
}

func TestATunnelHostIsNotDecryptedAndIsWrittenDown(t *testing.T) {
	w := newWorldWith(t, false, func(c *Config) { c.TLSPassthrough = []string{"other.example:443"} }, hello)
	secure := must.Get(w.pinned("other.example", "other.example"))(t) // only the origin's own root is trusted
	fmt.Fprintf(secure, "GET /v1/items HTTP/1.1\r\nHost: other.example\r\nConnection: close\r\n\r\n")
	res := must.Get(http.ReadResponse(bufio.NewReader(secure), nil))(t)
	body, err := io.ReadAll(res.Body)
	if string(body) != "hello" || err != nil {
		t.Errorf("got %q, %v", body, err)
	}
	if got := w.requests()[0].Header.Get("Authorization"); got != "" {
		t.Errorf("a credential went along: %q", got)
	}
	_ = secure.Close()
	w.eventually(func() bool { return len(w.rows()) > 1 })
	if first := w.rows()[0]; first.Event != audit.EventProxyStarted ||
		first.Fields["request_id"] != w.last().Fields["request_id"] {
		t.Errorf("the row of its beginning is %+v", first)
	}
	r := w.last()
	if r.Event != audit.EventSandboxPassthrough || r.Decision != audit.DecisionPassthrough ||
		r.Reason != ReasonTunnelHost ||
		r.Host != "other.example" || r.RequestBytes == 0 || r.ResponseBytes == 0 {
		t.Errorf("the row is %+v", r)
	}
}

func TestATunnelHostIsOnlyThatHost(t *testing.T) {
	w := newWorldWith(t, false, func(c *Config) {
		c.TLSPassthrough = []string{"other.example:443",
			"api.good.example:443"}
	}, hello)
	if _, err := w.pinned("other.example", "api.good.example"); err == nil {
		t.Error("another SNI passed")
	}
	w.eventually(func() bool { return len(w.rows()) > 0 && Reason(w.last().Reason) == ReasonAuthority })
	if len(w.requests()) > 0 {
		t.Error("the origin heard of it")
	}
	// A connector names this one: it is decrypted, whatever the list has.
	_, err := w.pinned("api.good.example", "api.good.example")
	if _, ok := err.(*tls.CertificateVerificationError); !ok {
		t.Errorf("the handshake ended with %v, want one with the session's CA", err)
	}
}
