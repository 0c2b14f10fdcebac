package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// manyHosts is how many names scenario C may use up, and manyHost the i-th.
const manyHosts = 12000

func manyHost(i int) string { return "h" + strconv.Itoa(i) + "." + manyDomain }

// conn is a client's connection to a host: TLS, inside the subject's tunnel.
type conn struct {
	*tls.Conn
	r *bufio.Reader
	s *subject
}

// stuck bounds every connection of the bench: a subject that hangs fails.
const stuck = 5 * time.Minute

// open opens a tunnel to "host:port" and handshakes in it. tickets may be nil.
func (s *subject) open(ctx context.Context, authority, protocol string, tickets tls.ClientSessionCache) (*conn, error) {
	var d net.Dialer
	raw, err := d.DialContext(ctx, "tcp", s.addr)
	if err != nil {
		return nil, err
	}
	_ = raw.SetDeadline(time.Now().Add(stuck))
	if !s.direct() {
		if err := s.connect(raw, authority); err != nil {
			raw.Close()
			return nil, err
		}
	}
	host, _, _ := net.SplitHostPort(authority)
	secure := tls.Client(raw,
		&tls.Config{ServerName: host, RootCAs: s.roots, MinVersion: tls.VersionTLS12, NextProtos: []string{protocol},
			ClientSessionCache: tickets})
	if err := secure.HandshakeContext(ctx); err != nil {
		raw.Close()
		return nil, fmt.Errorf("handshake with %s through %s: %w", host, s.name, err)
	}
	return &conn{Conn: secure, r: bufio.NewReaderSize(secure, 32<<10), s: s}, nil
}

func (s *subject) connect(raw net.Conn, authority string) error {
	head := "CONNECT " + authority + " HTTP/1.1\r\nHost: " + authority + "\r\n"
	if s.auth != "" {
		head += "Proxy-Authorization: " + s.auth + "\r\n"
	}
	if _, err := io.WriteString(raw, head+"\r\n"); err != nil {
		return err
	}
	// Nothing follows the answer before the client's first byte, so what the
	// reader has buffered is all of it.
	res, err := http.ReadResponse(bufio.NewReaderSize(raw, 512), &http.Request{Method: http.MethodConnect})
	if err != nil {
		return fmt.Errorf("CONNECT %s through %s: %w", authority, s.name, err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(res.Body, 1<<10))
		return fmt.Errorf("CONNECT %s through %s: %s: %s", authority, s.name, res.Status, text)
	}
	return nil
}

// request returns a head as a client of an API sends it. more are further lines.
func request(method, host, path string, more ...string) string {
	head := method + " " + path + " HTTP/1.1\r\nHost: " + host + "\r\n"
	for _, f := range requestFields {
		head += f[0] + ": " + f[1] + "\r\n"
	}
	return head + strings.Join(append(more, ""), "\r\n") + "\r\n"
}

var getItems = request("GET", apiHost, "/v1/items")

// get sends a request and reads an answer, which must be a whole 200.
func (c *conn) get(request string) ([]byte, error) {
	if err := c.send(request); err != nil {
		return nil, err
	}
	body, err := c.answer()
	if err != nil {
		return nil, err
	}
	return io.ReadAll(body)
}

func (c *conn) send(request string) error {
	c.s.sent.Add(1)
	_, err := io.WriteString(c, request)
	return err
}

// answer reads a response's head and returns its body, to be read to the end.
func (c *conn) answer() (io.Reader, error) {
	_, body, err := c.response()
	return body, err
}

// response reads a response's head, which must be a 200, and returns its fields and its body.
func (c *conn) response() (http.Header, io.Reader, error) {
	res, err := http.ReadResponse(c.r, nil) //nolint:bodyclose // its end is where the next response begins
	if err != nil {
		return nil, nil, fmt.Errorf("read the response of %s: %w", c.s.name, err)
	}
	if res.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(res.Body, 1<<10))
		return nil, nil, fmt.Errorf("%s responded %s: %s", c.s.name, res.Status, text)
	}
	return res.Header, res.Body, nil
}

// item asks for the small response and compares its body.
func (c *conn) item(request string) error {
	got, err := c.get(request)
	if err == nil && string(got) != string(item) {
		err = fmt.Errorf("%s returned another body: %.60q", c.s.name, got)
	}
	return err
}

// wholeItem asks for the small response and compares its body and its head.
func (c *conn) wholeItem(request string) error {
	if err := c.send(request); err != nil {
		return err
	}
	head, body, err := c.response()
	if err != nil {
		return err
	}
	got, err := io.ReadAll(body)
	if err == nil && string(got) != string(item) {
		err = fmt.Errorf("%s returned another body: %.60q", c.s.name, got)
	}
	return errors.Join(err, c.s.checkHead(head))
}

// checkHead compares a small response's head with the origin's.
func (s *subject) checkHead(h http.Header) error {
	for name, want := range itemHead {
		if got := h[name]; !slices.Equal(got, want) {
			return fmt.Errorf("%s returned %s: %q, want %q", s.name, name, got, want)
		}
	}
	return nil
}

// download asks for n bytes, which must be chunk over and over.
func (c *conn) download(request string, chunk []byte, n int64, buf []byte) error {
	if err := c.send(request); err != nil {
		return err
	}
	body, err := c.answer()
	if err != nil {
		return err
	}
	got := &repeating{chunk: chunk}
	_, err = io.CopyBuffer(struct{ io.Writer }{got}, struct{ io.Reader }{body}, buf)
	if err == nil && got.n != n {
		err = fmt.Errorf("%d bytes came of %d", got.n, n)
	}
	if err != nil {
		return fmt.Errorf("the body through %s: %w", c.s.name, err)
	}
	return nil
}

// upload sends n bytes, which are chunk over and over, and asks whether the origin got them.
func (c *conn) upload(head string, chunk []byte, n int64) error {
	if err := c.send(head); err != nil {
		return err
	}
	for left := n; left > 0; {
		piece := chunk[:min(int64(len(chunk)), left)]
		if _, err := c.Write(piece); err != nil {
			return err
		}
		left -= int64(len(piece))
	}
	return c.uploaded(n)
}

func (c *conn) uploaded(n int64) error {
	body, err := c.answer()
	if err != nil {
		return err
	}
	got, err := io.ReadAll(body)
	if want := fmt.Sprintf(`{"bytes":%d}`, n); err == nil && string(got) != want {
		err = fmt.Errorf("%s: the origin got %s, want %s", c.s.name, got, want)
	}
	return err
}

var errNoH2 = errors.New("it does not speak HTTP/2 with its clients")
