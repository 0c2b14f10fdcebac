package upstream

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"golang.org/x/net/http/httpproxy"
	"golang.org/x/net/proxy"
)

// proxyPorts are the schemes of [Options].Proxy, each with its port where the URL has none.
var proxyPorts = map[string]string{"http": "3128", "https": "443", "socks5": "1080", "socks5h": "1080"}

// CheckProxy returns an error unless u is a URL that [Options].Proxy may be. It does not quote u, which may hold a
// password.
func CheckProxy(u *url.URL) error {
	if proxyPorts[u.Scheme] == "" || u.Hostname() == "" || strings.Trim(u.Path, "/") != "" {
		return errors.New("the upstream proxy is not an http://, https://, socks5:// or socks5h:// URL of HOST:PORT")
	}
	return nil
}

// proxyError is returned when the upstream proxy makes no tunnel.
type proxyError struct {
	kind Kind   // ProxyRefused or ProxyFailed
	at   string // the proxy's host and port
	what string // what it did; no byte that it sent
}

// Error implements error.
func (e *proxyError) Error() string { return "ask the upstream proxy " + e.at + ": it " + e.what }

// byProxy returns a function that reports whether a host is reached through the proxy.
func byProxy(opts Options) func(hostport string) bool {
	if opts.Proxy == nil {
		return func(string) bool { return false }
	}
	config := httpproxy.Config{HTTPSProxy: "http://proxy.invalid", NoProxy: strings.Join(opts.NoProxy, ",")}
	of := config.ProxyFunc()
	return func(hostport string) bool {
		u, err := of(&url.URL{Scheme: "https", Host: hostport})
		return err != nil || u != nil
	}
}

// dialProxy asks the owner's own proxy for a tunnel to hostport. If that is a name, the proxy resolves it, and decides
// which addresses it dials.
func (c *Client) dialProxy(ctx context.Context, hostport string) (net.Conn, error) {
	p := c.opts.Proxy
	port := p.Port()
	if port == "" {
		port = proxyPorts[p.Scheme]
	}
	at := net.JoinHostPort(p.Hostname(), port)
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", at)
	if err != nil {
		if IsOutOfDescriptors(err) || errors.Is(err, context.Canceled) {
			return nil, fmt.Errorf("dial the upstream proxy: %w", err)
		}
		return nil, &proxyError{ProxyFailed, at, "cannot be reached"}
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	tunnel := conn
	switch p.Scheme {
	case "socks5", "socks5h":
		err = askSOCKS(ctx, conn, p.User, at, hostport)
	case "https":
		secure := tls.Client(conn, &tls.Config{ServerName: p.Hostname(), RootCAs: c.opts.Roots, MinVersion: tls.VersionTLS12,
			VerifyConnection: verifyStrength})
		if err = secure.HandshakeContext(ctx); err != nil {
			failed := &proxyError{ProxyFailed, at, "broke off while TLS with it was set up"}
			if errors.As(handshakeFailure(err, false), new(*handshakeError)) {
				failed.kind, failed.what = ProxyRefused, "cannot be trusted: TLS with it could not be set up"
			}
			err = failed
			break
		}
		tunnel = secure
		fallthrough
	default:
		err = c.askCONNECT(tunnel, at, hostport)
	}
	if !stop() && err == nil {
		err = ctx.Err()
	}
	switch {
	case err == nil:
		return tunnel, nil
	case errors.Is(ctx.Err(), context.Canceled):
		err = ctx.Err()
	case ctx.Err() != nil, errors.Is(err, os.ErrDeadlineExceeded):
		err = &proxyError{ProxyFailed, at, "did not respond in time"}
	}
	_ = conn.Close()
	return nil, err
}

// maxProxyHead bounds the head of the proxy's response.
const maxProxyHead = 64 << 10

// askCONNECT asks for a tunnel as RFC 9110 section 9.3.6 describes it.
func (c *Client) askCONNECT(conn net.Conn, at, hostport string) error {
	head := "CONNECT " + hostport + " HTTP/1.1\r\nHost: " + hostport + "\r\n"
	user := c.opts.Proxy.User
	if user != nil {
		password, _ := user.Password()
		credentials := base64.StdEncoding.EncodeToString([]byte(user.Username() + ":" + password))
		head += "Proxy-Authorization: Basic " + credentials + "\r\n"
	}
	if _, err := io.WriteString(conn, head+"\r\n"); err != nil {
		return &proxyError{ProxyFailed, at, "closed the connection"}
	}
	br := bufio.NewReader(io.LimitReader(conn, maxProxyHead))
	res, err := http.ReadResponse(br, &http.Request{Method: http.MethodConnect})
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return err
	case err != nil:
		return &proxyError{ProxyFailed, at, "closed the connection, or is no HTTP proxy"}
	case res.StatusCode/100 != 2:
		kind := ProxyRefused
		if res.StatusCode >= 500 || res.StatusCode == http.StatusTooManyRequests {
			kind = ProxyFailed
		}
		return &proxyError{kind, at, fmt.Sprintf("responded with %d%s", res.StatusCode, challenge(res, user != nil))}
	case br.Buffered() > 0:
		return &proxyError{ProxyFailed, at, "sent bytes of a host before any were asked for"}
	}
	return nil
}

// challenge returns what a proxy that responds with 407 wants. sent reports whether it got credentials.
func challenge(res *http.Response, sent bool) string {
	if res.StatusCode != http.StatusProxyAuthRequired {
		return ""
	}
	for _, field := range res.Header.Values("Proxy-Authenticate") {
		if strings.HasPrefix(strings.ToLower(field), "basic") {
			if sent {
				return " and does not accept the credentials of its URL"
			}
			return " and demands credentials, which are a part of its URL"
		}
	}
	return " and accepts no credentials of the kind Basic"
}

// askSOCKS asks for a tunnel as RFC 1928 describes it.
func askSOCKS(ctx context.Context, conn net.Conn, user *url.Userinfo, at, hostport string) error {
	var auth *proxy.Auth
	if user != nil {
		password, _ := user.Password()
		auth = &proxy.Auth{User: user.Username(), Password: password}
	}
	dialer, err := proxy.SOCKS5("tcp", at, auth, nil)
	if err != nil {
		return err
	}
	_, err = dialer.(interface { //nolint:forcetypeassert // x/net has no exported type for it
		DialWithConn(ctx context.Context, c net.Conn, network, address string) (net.Addr, error)
	}).DialWithConn(ctx, conn, "tcp", hostport)
	var failed *net.OpError
	if err == nil || errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &failed) {
		return err
	}
	why := failed.Err.Error()
	for _, refusal := range []string{"connection not allowed by ruleset", "no acceptable authentication methods",
		"username/password authentication failed", "command not supported", "address type not supported"} {
		if strings.HasSuffix(why, refusal) {
			return &proxyError{ProxyRefused, at, "responded: " + refusal}
		}
	}
	for _, failure := range []string{"general SOCKS server failure", "network unreachable", "host unreachable",
		"connection refused", "TTL expired"} {
		if strings.HasSuffix(why, failure) {
			return &proxyError{ProxyFailed, at, "responded: " + failure}
		}
	}
	return &proxyError{ProxyFailed, at, "closed the connection, or is no SOCKS5 proxy"}
}
