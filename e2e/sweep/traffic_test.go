package sweep

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/ALRubinger/aileron/e2e/harness"
)

// paths are where the connectors' operations begin.
var paths = map[string]string{"bearer": "/v1", "query": "/v1", "basic": "/v1", "path": "/bot/placeholder"}

// drive sends requests of every kind: allowed, refused, cut short, passed through.
func (s *session) drive() {
	s.clients(func(version string, client *http.Client) {
		for host, at := range paths {
			s.want(s.send(client, "POST", host, at+"/echo/"+trace), 200, version)
			s.want(s.send(client, "GET", host, at+"/forms"), 200, version)
			s.want(s.send(client, "GET", host, at+"/packed"), 406, version)
			s.send(client, "GET", host, at+"/cut")
			s.want(s.send(client, "GET", host, at+"/strict"), 403, version)
			s.want(s.send(client, "DELETE", host, "/admin/"+trace), 403, version)
			s.want(s.send(client, "GET", host, at+"/echo/%2e%2e"), 400, version)
		}
		s.want(s.send(client, "POST", "free", "/v1/echo/"+trace), 200, version)
		s.want(s.send(client, "GET", "other", "/"+trace), 200, version)
		s.stall(client)
	})
	s.grpc()
	s.live("bearer", 101)
	s.live("free", 101)
	s.opaque()
	s.raw()
	s.api()
	s.calls()
	s.approvals()
}

// trace is in every path: it must be found, or else the search finds nothing.
const trace = "sweep-trace-of-a-path"

// marker is a value that a connector declares for the audit log: it must be found too.
const marker = "sweep-declared-audit-value"

func (s *session) want(status, want int, what string) {
	s.p.t.Helper()
	if status != want {
		s.p.t.Errorf("%s: status %d, want %d", what, status, want)
	}
}

// send sends a request with canaries in all its parts, and returns the status of the response, 0 if there is none.
func (s *session) send(client *http.Client, method, host, path string) int {
	s.p.t.Helper()
	c := s.p.canary
	target := fmt.Sprintf("https://%s.sweep.test%s", host, path)
	query := "q=" + c.text("a query") + "&" + c.text("a query") + "=1&access_token=" + c.text("a query")
	body := &trailing{Reader: strings.NewReader(`{"text":"` + c.text("a request body") + `"}`)}
	req, err := http.NewRequestWithContext(s.p.t.Context(), method, target+"?"+query, body)
	if err != nil {
		s.p.t.Error(err)
		return 0
	}
	req.URL.Opaque = path // as it is written: no other encoding
	for name, value := range map[string]string{"Authorization": "Bearer " + c.text("a request field"),
		"Cookie": "c=" + c.text("a request cookie"), "X-Sweep": c.text("a request field"),
		"Referer": "https://a.example/?" + c.text("a query"), "User-Agent": c.text("a request field"),
		"X-Dropped": c.text("a request field"), "Content-Type": "application/json; x=" + c.text("a request field")} {
		req.Header.Set(name, value)
	}
	req.Trailer = http.Header{"X-After": nil}
	body.end = func() { req.Trailer.Set("X-After", c.text("a request trailer")) }
	if method == http.MethodGet {
		req.Body, req.Trailer = nil, nil
	}
	res, err := client.Do(req)
	if err != nil {
		return 0
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body)
	return res.StatusCode
}

// trailing is a body at whose end trailers are set.
type trailing struct {
	io.Reader
	end func()
}

func (b *trailing) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err == io.EOF {
		b.end()
	}
	return n, err
}

// stall leaves a request before its response.
func (s *session) stall(client *http.Client) {
	impatient := *client
	impatient.Timeout = 50 * time.Millisecond
	s.send(&impatient, "GET", "bearer", "/v1/stall")
}

// grpc makes a call, and one that no operation allows.
func (s *session) grpc() {
	client := s.client(true)
	defer client.CloseIdleConnections()
	c := s.p.canary
	for path, want := range map[string]string{"/sweep.Service/Call": "", "/sweep.Service/Other": "7"} {
		req, err := http.NewRequestWithContext(s.p.t.Context(), "POST", "https://bearer.sweep.test"+path,
			bytes.NewReader(message(c.text("a gRPC message"))))
		if err != nil {
			s.p.t.Fatal(err)
		}
		req.Header = http.Header{"Content-Type": {"application/grpc"}, "Te": {"trailers"},
			"X-Sweep": {c.text("gRPC metadata")}, "Authorization": {"Bearer " + c.text("gRPC metadata")}}
		res, err := client.Do(req)
		if err != nil {
			s.p.t.Errorf("gRPC %s: %v", path, err)
			continue
		}
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		if got := res.Header.Get("Grpc-Status"); got != want {
			s.p.t.Errorf("gRPC %s: status %q in the head, want %q", path, got, want)
		}
	}
}

// tunnel opens a tunnel to a host, decrypted unless roots is nil.
func (s *session) tunnel(host string, config *tls.Config) *tls.Conn {
	s.p.t.Helper()
	conn, err := net.Dial("tcp", s.proxy.Host)
	if err != nil {
		s.p.t.Fatal(err)
	}
	_ = conn.SetDeadline(time.Now().Add(harness.Patience))
	password, _ := s.proxy.User.Password()
	fmt.Fprintf(conn, "CONNECT %s:443 HTTP/1.1\r\nHost: %s:443\r\nProxy-Authorization: Basic %s\r\nX-Connect: %s\r\n\r\n",
		host,
		host, base64.StdEncoding.EncodeToString([]byte(s.proxy.User.Username()+":"+password)),
		s.p.canary.text("a request field"))
	res, err := http.ReadResponse(bufio.NewReaderSize(conn, 1), nil)
	if err != nil || res.StatusCode != http.StatusOK {
		s.p.t.Fatalf("CONNECT %s: %v, %v", host, res, err)
	}
	_ = res.Body.Close()
	config.ServerName = host
	return tls.Client(conn, config)
}

// decrypted is the client's part of TLS with aileron.
func (s *session) decrypted() *tls.Config {
	return &tls.Config{RootCAs: s.roots, MinVersion: tls.VersionTLS12}
}

// opaque sends a request through a tunnel that is not decrypted.
func (s *session) opaque() {
	conn := s.tunnel("opaque.sweep.test", &tls.Config{InsecureSkipVerify: true}) // the origin is not aileron
	defer conn.Close()
	fmt.Fprintf(conn, "GET /v1/forms?%s HTTP/1.1\r\nHost: opaque.sweep.test\r\nConnection: close\r\nX-Sweep: %s\r\n\r\n",
		s.p.canary.text("a query"), s.p.canary.text("a request field"))
	if text, err := io.ReadAll(conn); err != nil || !bytes.HasPrefix(text, []byte("HTTP/1.1 200")) {
		s.p.t.Errorf("an undecrypted tunnel: %.80q, %v", text, err)
	}
}

// raw sends what is refused before it is a request, on the proxy's port and in a tunnel, and leaves in the middle.
func (s *session) raw() {
	c := s.p.canary
	field, query := c.text("a request field"), c.text("a query")
	var all sync.WaitGroup
	for _, text := range []string{
		"GET /v1/echo/1?" + query + " HTTP/1.1\r\nHost: bearer.sweep.test\r\nX-A: " + field + "\rx\r\n\r\n",
		"GET /v1/echo/1?" + query + " HTTP/1.1\r\nHost: other.sweep.test\r\nX-A: " + field + "\r\n\r\n",
		"GET /v1/echo/1#" + c.text("a fragment") + " HTTP/1.1\r\nHost: bearer.sweep.test\r\n\r\n",
		"GET https://user:" + c.text("a userinfo") +
			"@bearer.sweep.test/v1/echo/1 HTTP/1.1\r\nHost: bearer.sweep.test\r\n\r\n",
		"POST /v1/echo/1 HTTP/1.1\r\nHost: bearer.sweep.test\r\nContent-Length: 900\r\n\r\n" + c.text("a request body"),
		"POST /v1/echo/1 HTTP/1.1\r\nHost: bearer.sweep.test\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n" +
			"X-A: " + field + "\r\n\r\n0\r\n\r\n",
		"GET /v1/echo/\x80" + query + " HTTP/1.1\r\nHost: bearer.sweep.test\r\n\r\n",
		"GET /v1/echo/1 HTTP/9.9\r\nHost: bearer.sweep.test\r\nX-A: " + field + "\r\n\r\n",
		"GET /v1/echo/1 HTTP/1.1\r\nHost: bearer.sweep.test\r\nX-A: " + strings.Repeat(field, 3000) + "\r\n\r\n",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + field, field + " " + query, "\x16\x03\x01" + field,
	} {
		all.Go(func() {
			s.say(s.tunnel("bearer.sweep.test", s.decrypted()), text)
			conn, err := net.Dial("tcp", s.proxy.Host)
			if err != nil {
				s.p.t.Error(err)
				return
			}
			_ = conn.SetDeadline(time.Now().Add(harness.Patience))
			s.say(conn, text)
		})
	}
	for _, token := range []string{"Basic " +
		base64.StdEncoding.EncodeToString([]byte("aileron:"+c.text("a wrong token"))),
		"Bearer " + c.text("a wrong token"), c.text("a wrong token")} {
		all.Go(func() {
			conn, err := net.Dial("tcp", s.proxy.Host)
			if err != nil {
				s.p.t.Error(err)
				return
			}
			_ = conn.SetDeadline(time.Now().Add(harness.Patience))
			s.say(conn, "GET http://"+trace+".example/?"+query+" HTTP/1.1\r\nHost: "+trace+".example\r\nProxy-Authorization: "+
				token+"\r\n\r\n")
		})
	}
	all.Wait()
}

// say sends bytes, reads until the end or the first response, and leaves.
func (s *session) say(conn net.Conn, text string) {
	defer conn.Close()
	_, _ = io.WriteString(conn, text)
	if writer, ok := conn.(interface{ CloseWrite() error }); ok {
		_ = writer.CloseWrite()
	}
	_, _ = io.Copy(io.Discard, conn)
}

// api asks the control API: as the client of the session, and as others.
func (s *session) api() {
	c := s.p.canary
	token, _ := s.proxy.User.Password()
	client := &http.Client{Timeout: harness.Patience}
	defer client.CloseIdleConnections()
	for path, methods := range map[string][]string{"/session": {"GET", "POST"}, "/operations": {"GET"}, "/audit": {"GET"},
		"/vault/status": {"GET"},
		"/vault/unlock": {"POST"}, "/session/stop": {"POST"}, "/connector-operations/run": {"POST"}, "/" + trace: {"GET"},
		"/connector-operations/help": {"POST"},
		"/ca":                        {"GET"}, "/sandbox-proxy/requests": {"POST"}, "/actions/run": {"POST"}} {
		for _, method := range methods {
			for _, bearer := range []string{token, c.text("a wrong token")} {
				req, err := http.NewRequestWithContext(s.p.t.Context(), method, s.APIURL+path+"?"+url.Values{
					"q": {c.text("a query")}}.Encode(), strings.NewReader(`{"args":"`+c.text("a request body")+`"}`))
				if err != nil {
					s.p.t.Fatal(err)
				}
				req.Header = http.Header{"Authorization": {"Bearer " + bearer}, "X-Sweep": {c.text("a request field")},
					"Content-Type": {"application/json"}}
				res, err := client.Do(req)
				if err != nil {
					s.p.t.Errorf("%s %s: %v", method, path, err)
					continue
				}
				body, _ := io.ReadAll(res.Body)
				_ = res.Body.Close()
				s.p.canary.judge(s.p.t, "the API's answer to "+method+" "+path, body, everything)
			}
		}
	}
}
