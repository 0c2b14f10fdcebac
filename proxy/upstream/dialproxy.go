package upstream

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// dialProxy asks the owner's own proxy for a tunnel (RFC 9110 section 9.3.6). The
// proxy resolves the name, and decides which addresses it dials.
func (c *Client) dialProxy(ctx context.Context, hostport string) (net.Conn, error) {
	at := c.opts.Proxy.Host
	if c.opts.Proxy.Port() == "" {
		at = net.JoinHostPort(c.opts.Proxy.Hostname(), "3128")
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", at)
	if err != nil {
		return nil, fmt.Errorf("dial the upstream proxy: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	head := "CONNECT " + hostport + " HTTP/1.1\r\nHost: " + hostport + "\r\n"
	if user := c.opts.Proxy.User; user != nil {
		password, _ := user.Password()
		credentials := base64.StdEncoding.EncodeToString([]byte(user.Username() + ":" + password))
		head += "Proxy-Authorization: Basic " + credentials + "\r\n"
	}
	if _, err := conn.Write([]byte(head + "\r\n")); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("ask the upstream proxy: %w", err)
	}
	br := bufio.NewReader(conn)
	res, err := http.ReadResponse(br, &http.Request{Method: http.MethodConnect})
	if err != nil || res.StatusCode != http.StatusOK || br.Buffered() > 0 {
		_ = conn.Close()
		return nil, errors.New("ask the upstream proxy: it refused the tunnel")
	}
	if !stop() {
		_ = conn.Close()
		return nil, ctx.Err()
	}
	return conn, nil
}
