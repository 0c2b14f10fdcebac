package hostile

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
)

// client is one side of a load: it opens connections to the session, and keeps
// them until it is closed.
type client struct {
	t    *testing.T
	s    *session
	base *tls.Config

	mu   sync.Mutex
	open []net.Conn
	up   int // connections of open whose tunnel, if they have one, was made
}

func newClient(t *testing.T, s *session) *client {
	t.Helper()
	raw := must.Get(os.ReadFile(s.CAFile))(t)
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(raw)
	c := &client{t: t, s: s, base: &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12,
		ClientSessionCache: tls.NewLRUClientSessionCache(16)}}
	t.Cleanup(c.close)
	return c
}

func (c *client) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.open {
		_ = conn.Close()
	}
	c.open = nil
}

// door connects to the session's proxy.
func (c *client) door() (net.Conn, error) {
	u, err := url.Parse(c.s.ProxyURL)
	if err != nil {
		return nil, err
	}
	conn, err := net.Dial("tcp", u.Host)
	if err != nil {
		return nil, err
	}
	_ = conn.SetDeadline(time.Now().Add(harness.Patience))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open = append(c.open, conn)
	c.up++
	return conn, nil
}

// token is the session's, as a proxy's client sends it.
func (c *client) token() string {
	u, _ := url.Parse(c.s.ProxyURL)
	password, _ := u.User.Password()
	return "Proxy-Authorization: Bearer " + password + "\r\n"
}

// tunnel opens a tunnel and does its handshake.
func (c *client) tunnel(host, protocol string) (_ net.Conn, err error) {
	conn, err := c.door()
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			c.mu.Lock()
			c.up--
			c.mu.Unlock()
		}
	}()
	fmt.Fprintf(conn, "CONNECT %s:443 HTTP/1.1\r\nHost: %s:443\r\n%s\r\n", host, host, c.token())
	br := bufio.NewReader(conn)
	res, err := http.ReadResponse(br, &http.Request{Method: http.MethodConnect})
	if err != nil {
		return nil, err
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("CONNECT: %s", res.Status)
	}
	cfg := c.base.Clone()
	cfg.ServerName, cfg.NextProtos = host, []string{protocol}
	secure := tls.Client(conn, cfg)
	return secure, secure.Handshake()
}

// many runs f n times, sixteen at a time, each with a connection of its own. A
// session that sheds may refuse some; without half of them it is no load.
func (c *client) many(n int, f func(i int) error) {
	c.t.Helper()
	var group sync.WaitGroup
	next := make(chan int)
	for range 16 {
		group.Go(func() {
			for i := range next {
				_ = f(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	group.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.up < n/2 {
		c.t.Errorf("%d of %d connections were made: this proves nothing", c.up, n)
	}
}

// frames is a connection of HTTP/2 whose frames the load writes itself.
type frames struct {
	conn  net.Conn
	fr    *http2.Framer
	block bytes.Buffer
	enc   *hpack.Encoder
	next  uint32
}

func (c *client) frames(host string, settings ...http2.Setting) (*frames, error) {
	conn, err := c.tunnel(host, "h2")
	if err != nil {
		return nil, err
	}
	f := &frames{conn: conn, fr: http2.NewFramer(conn, conn), next: 1}
	f.enc = hpack.NewEncoder(&f.block)
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		return nil, err
	}
	return f, f.fr.WriteSettings(settings...)
}

// ask opens a stream; extra are pairs of name and value.
func (f *frames) ask(method, host, path string, end bool, extra ...string) error {
	f.block.Reset()
	fields := append([]string{":method", method, ":scheme", "https", ":authority", host, ":path", path}, extra...)
	for i := 0; i < len(fields); i += 2 {
		_ = f.enc.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	block := f.block.Bytes()
	first := block[:min(len(block), 16<<10)]
	block = block[len(first):]
	err := f.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: f.next, BlockFragment: first, EndStream: end,
		EndHeaders: len(block) == 0})
	for len(block) > 0 && err == nil {
		part := block[:min(len(block), 16<<10)]
		block = block[len(part):]
		err = f.fr.WriteContinuation(f.next, len(block) == 0, part)
	}
	f.next += 2
	return err
}

// honest is a client that behaves, and wants its answers. Nothing is repeated
// for it but what HTTP lets a client repeat.
type honest struct {
	t      *testing.T
	one    *http.Client // a tunnel for each request
	keeps  *http.Client // HTTP/1.1 on connections that stay
	second *http.Client // HTTP/2
}

func newHonest(t *testing.T, s *session) *honest {
	t.Helper()
	c := newClient(t, s)
	u := must.Get(url.Parse(s.ProxyURL))(t)
	via := func(h2, keep bool) *http.Client {
		tr := &http.Transport{Proxy: http.ProxyURL(u), TLSClientConfig: c.base.Clone(), ForceAttemptHTTP2: h2,
			DisableKeepAlives: !keep}
		t.Cleanup(tr.CloseIdleConnections)
		return &http.Client{Transport: tr, Timeout: harness.Patience}
	}
	return &honest{t: t, one: via(false, false), keeps: via(false, true), second: via(true, true)}
}

// round asks once in each way, and for a body in each direction.
func (h *honest) round() {
	h.t.Helper()
	for name, c := range map[string]*http.Client{"a tunnel": h.one, "HTTP/1.1": h.keeps, "HTTP/2": h.second} {
		for _, host := range []string{hostH1, hostH2} {
			if body, err := h.do(c, http.MethodGet, "https://"+host+"/v1/hello", ""); err != nil || body != "hello" {
				h.t.Errorf("%s, %s: %q, %v", name, host, short(body), err)
			}
		}
	}
	const n = 300_000
	for name, c := range map[string]*http.Client{"HTTP/1.1": h.keeps, "HTTP/2": h.second} {
		if body, err := h.do(c, http.MethodGet, fmt.Sprintf("https://%s/v1/get?n=%d", hostH2, n), ""); err != nil ||
			len(body) != n {
			h.t.Errorf("%s: a body of %d bytes came with %d, %v", name, n, len(body), err)
		}
		if body, err := h.do(c, http.MethodPost, "https://"+hostH2+"/v1/put", strings.Repeat("honest ", n/7)); err != nil ||
			body != fmt.Sprint(n/7*7) {
			h.t.Errorf("%s: the upload got %q, %v", name, short(body), err)
		}
	}
}

// do makes one request. Where CI runs this beside other suites, a client may be
// kept from its processor for so long that it looks like one that does not read;
// there it may try again, once.
func (h *honest) do(c *http.Client, method, target, body string) (string, error) {
	got, err := h.try(c, method, target, body)
	if err != nil && os.Getenv("CI") != "" {
		h.t.Logf("%s %s is tried again: %v", method, target, err)
		return h.try(c, method, target, body)
	}
	return got, err
}

func (h *honest) try(c *http.Client, method, target, body string) (string, error) {
	r, err := http.NewRequestWithContext(h.t.Context(), method, target, nil)
	if err != nil {
		return "", err
	}
	if body != "" {
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
	}
	res, err := c.Do(r)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = errors.New(res.Status)
	}
	return string(got), err
}

func short(s string) string { return s[:min(len(s), 200)] }
