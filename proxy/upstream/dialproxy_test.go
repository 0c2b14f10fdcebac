package upstream

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

// companyProxy is a proxy whose connections a test serves as it likes.
type companyProxy struct {
	url *url.URL

	mu    sync.Mutex
	asked []string // what clients asked for
}

// newCompanyProxy serves the connections of l with serve, which returns where to relay them to, or nil.
func newCompanyProxy(
	t *testing.T, scheme string, l net.Listener, serve func(net.Conn) (asked string, to net.Conn),
) *companyProxy {
	t.Helper()
	p := &companyProxy{url: &url.URL{Scheme: scheme, Host: l.Addr().String()}}
	over, end := context.WithCancel(context.Background())
	var group sync.WaitGroup
	group.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			stop := context.AfterFunc(over, func() { _ = c.Close() })
			group.Go(func() {
				defer stop()
				defer c.Close()
				asked, to := serve(c)
				p.mu.Lock()
				p.asked = append(p.asked, asked)
				p.mu.Unlock()
				if to == nil {
					return
				}
				go func() { _, _ = io.Copy(to, c); _ = to.Close() }()
				_, _ = io.Copy(c, to)
			})
		}
	})
	t.Cleanup(func() { _ = l.Close(); end(); group.Wait() })
	return p
}

func (p *companyProxy) requests() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.asked)
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.Do(t, err)
	return l
}

// connectServer reads a CONNECT and writes response; if that is one of success, it relays to addr.
func connectServer(response, addr string) func(net.Conn) (string, net.Conn) {
	return func(c net.Conn) (string, net.Conn) {
		r, err := http.ReadRequest(bufio.NewReader(c))
		if err != nil {
			return err.Error(), nil
		}
		_, _ = io.WriteString(c, response)
		var to net.Conn
		if strings.HasPrefix(response, "HTTP/1.1 2") {
			to, _ = net.Dial("tcp", addr)
		}
		return r.Host + " " + r.Header.Get("Proxy-Authorization"), to
	}
}

// What a proxy says to CONNECT is named, with the proxy; what passes with time is told apart from what does not.
func TestARefusalOfTheProxyIsNamed(t *testing.T) {
	const noProxy = "closed the connection, or is no HTTP proxy"
	for response, want := range map[string]*Error{
		"HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm=\"corp\"\r\nContent-Length: 0\r\n\r\n": {Kind: ProxyRefused,
			Detail: "responded with 407 and demands credentials, which are a part of its URL"},
		"HTTP/1.1 407 No\r\nProxy-Authenticate: Negotiate\r\nProxy-Authenticate: NTLM\r\n\r\n": {Kind: ProxyRefused,
			Detail: "responded with 407 and accepts no credentials of the kind Basic"},
		"HTTP/1.1 403 Forbidden\r\nContent-Length: 6\r\n\r\nsecret": {Kind: ProxyRefused, Detail: "responded with 403"},
		"HTTP/1.1 503 Busy\r\n\r\n":                                 {Kind: ProxyFailed, Detail: "responded with 503"},
		"SSH-2.0-OpenSSH_9.9\r\n":                                   {Kind: ProxyFailed, Detail: noProxy},
		"":                                                          {Kind: ProxyFailed, Detail: noProxy},
		"HTTP/1.1 200 OK\r\n\r\n\x15\x03": {Kind: ProxyFailed,
			Detail: "sent bytes of a host before any were asked for"},
	} {
		p := newCompanyProxy(t, "http", listen(t), connectServer(response, ""))
		u, err := New(Options{Proxy: p.url})
		must.Do(t, err)
		_, _, err = roundTrip(u, newRequest(t, "POST", "/", strings.NewReader("x")), Route{Idempotent: true})
		var e *Error
		if !errors.As(err, &e) || e.Kind != want.Kind || e.Detail != want.Detail || e.Sent ||
			e.Proxy != p.url.Host || !strings.Contains(e.Error(), "("+p.url.Host+" "+want.Detail+")") {
			t.Errorf("%q: got %#v, want %#v", response, e, want)
		}
		if asked := p.requests(); len(asked) > 1 {
			t.Errorf("%q: it was asked %d times", response, len(asked))
		}
		u.Close()
	}
}

func TestAProxyThatIsGoneIsNamed(t *testing.T) {
	l := listen(t)
	must.Do(t, l.Close())
	u, err := New(Options{Proxy: &url.URL{Scheme: "http", Host: l.Addr().String()}, UnusedProxy: "HTTPS_PROXY"})
	must.Do(t, err)
	_, err = u.Dial(t.Context(), originHost)
	var e *Error
	if !errors.As(err, &e) || e.Kind != ProxyFailed || !strings.Contains(e.Detail, "cannot be reached") || e.Unused != "" {
		t.Errorf("got %#v", e)
	}
}

// An https:// proxy is verified as a host is, with its own name.
func TestATunnelThroughATLSProxy(t *testing.T) {
	o := newOrigin(t, "http/1.1", respond(func(*http.Request) string {
		return "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
	}))
	addr := o.opts.Resolve[originHost].String()
	for _, trusted := range []bool{true, false} {
		config := &tls.Config{Certificates: o.config.Certificates, MinVersion: tls.VersionTLS12} // for 127.0.0.1 too
		p := newCompanyProxy(t, "https", tls.NewListener(listen(t), config),
			connectServer("HTTP/1.1 200 OK\r\n\r\n", addr))
		p.url.User = url.UserPassword("me", "pass")
		u := o.client(t, func(opts *Options) {
			opts.Resolve, opts.Proxy, opts.Roots = nil, p.url, x509.NewCertPool()
			if trusted {
				opts.Roots = o.opts.Roots
			}
		})
		status, body, err := roundTrip(u, newRequest(t, "GET", "/", nil), Route{})
		if !trusted {
			if errorKind(t, err) != ProxyRefused || strings.Contains(err.Error(), "pass") {
				t.Errorf("an untrusted proxy: %d, %v", status, err)
			}
			continue
		}
		if status != 200 || body != "hello" || err != nil {
			t.Errorf("got %d %q, %v", status, body, err)
		}
		if asked := p.requests(); !slices.Equal(asked, []string{originHost + " Basic bWU6cGFzcw=="}) {
			t.Errorf("the proxy was asked for %q", asked)
		}
	}
}

// socksServer speaks SOCKS5 (RFC 1928) with a password (RFC 1929), responds with code, and relays to addr.
func socksServer(code byte, addr string) func(net.Conn) (string, net.Conn) {
	return func(c net.Conn) (string, net.Conn) {
		br := bufio.NewReader(c)
		read := func(n int) []byte {
			p := make([]byte, n)
			_, _ = io.ReadFull(br, p)
			return p
		}
		read(int(read(2)[1]))
		_, _ = c.Write([]byte{5, 2})
		user := string(read(int(read(2)[1])))
		user += ":" + string(read(int(read(1)[0])))
		_, _ = c.Write([]byte{1, 0})
		asked, kind := "", read(4)[3]
		switch kind {
		case 3:
			asked = string(read(int(read(1)[0])))
		case 1:
			asked = net.IP(read(4)).String()
		case 4:
			asked = net.IP(read(16)).String()
		}
		port := binary.BigEndian.Uint16(read(2))
		_, _ = c.Write([]byte{5, code, 0, 1, 0, 0, 0, 0, 0, 0})
		var to net.Conn
		if code == 0 {
			to, _ = net.Dial("tcp", addr)
		}
		if port != 443 {
			asked = "a wrong port of " + asked
		}
		return user + " " + asked, to
	}
}

func TestATunnelThroughSOCKS(t *testing.T) {
	o := newOrigin(t, "http/1.1", respond(func(*http.Request) string {
		return "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello"
	}))
	addr := o.opts.Resolve[originHost].String()
	for _, c := range []struct {
		scheme string
		code   byte
		host   string
		kind   Kind // where it fails
		asked  string
	}{
		{"socks5h", 0, "example.com", Broken, "me:pass example.com"},
		{"socks5h", 2, "example.com", ProxyRefused, "me:pass example.com"},
		{"socks5h", 5, "example.com", ProxyFailed, "me:pass example.com"},
		{"socks5h", 0, "10.0.0.1", AddressDenied, ""},
		{"socks5", 2, "93.184.215.14", ProxyRefused, "me:pass 93.184.215.14"},
		{"socks5", 0, "93.184.215.14", NotVerified, "me:pass 93.184.215.14"}, // by the origin, which was reached
		{"socks5", 0, "169.254.169.254", AddressDenied, ""},
	} {
		p := newCompanyProxy(t, c.scheme, listen(t), socksServer(c.code, addr))
		p.url.User = url.UserPassword("me", "pass")
		u := o.client(t, func(opts *Options) { opts.Resolve, opts.Proxy = nil, p.url })
		r := newRequest(t, "GET", "/", nil)
		r.URL.Host = c.host + ":443"
		status, body, err := roundTrip(u, r, Route{})
		switch {
		case c.code == 0 && c.kind == Broken:
			if status != 200 || body != "hello" {
				t.Errorf("%+v: %d %q, %v", c, status, body, err)
			}
		case errorKind(t, err) != c.kind:
			t.Errorf("%+v: %v", c, err)
		}
		u.Close()
		if asked := p.requests(); len(asked) > 0 && asked[0] != c.asked {
			t.Errorf("%+v: the proxy was asked for %q", c, asked)
		}
	}
}

// NO_PROXY's grammar decides which hosts are reached without the proxy, and whether the address is then checked.
func TestHostsThatAreReachedWithoutTheProxy(t *testing.T) {
	p := newCompanyProxy(t, "http", listen(t), connectServer("HTTP/1.1 403 No\r\n\r\n", ""))
	u, err := New(Options{Proxy: p.url, NoProxy: []string{".corp.test", "git.example", "10.0.0.0/8", "alt.example:8443"}})
	must.Do(t, err)
	for hostport, proxied := range map[string]bool{
		"a.corp.test:443": false, "corp.test:443": true, "git.example:443": false, "x.git.example:443": false,
		"mygit.example:443": true, "10.1.2.3:443": false, "11.1.2.3:443": true, "alt.example:8443": false,
		"alt.example:443": true, "[2606:4700::1111]:443": true, "localhost:443": false,
	} {
		if got := u.byProxy(hostport); got != proxied {
			t.Errorf("%s: by the proxy %t, want %t", hostport, got, proxied)
		}
	}
	if _, err := u.Dial(t.Context(), "10.1.2.3:443"); errorKind(t, err) != AddressDenied {
		t.Errorf("an address that is reached without the proxy is dialled unchecked: %v", err)
	}
}

// A network that lets hosts be reached through its proxy alone fails in these ways.
func TestAProxyThatIsNotUsedIsNamed(t *testing.T) {
	u, err := New(Options{UnusedProxy: "HTTPS_PROXY"})
	must.Do(t, err)
	for cause, want := range map[error]string{
		&net.DNSError{IsNotFound: true}:                         "HTTPS_PROXY",
		&net.DNSError{IsTemporary: true}:                        "HTTPS_PROXY",
		&net.OpError{Op: "dial", Err: errors.New("no")}:         "HTTPS_PROXY",
		&net.OpError{Op: "dial", Err: context.DeadlineExceeded}: "HTTPS_PROXY",
		&handshakeError{error: errors.New("x509")}:              "",
		io.EOF:                          "",
		&addressError{class: "private"}: "",
	} {
		if e := u.classify(t.Context(), originHost, cause, nil); e.Unused != want {
			t.Errorf("%v: %#v, want %q", cause, e, want)
		}
	}
}
