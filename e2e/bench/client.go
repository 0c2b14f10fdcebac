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
const stuck = time.Minute

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
	res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("CONNECT %s through %s: %s", authority, s.name, res.Status)
	}
	return nil
}

// request is a head as a client sends it. more are further lines.
func request(method, host, path string, more ...string) string {
	return method + " " + path + " HTTP/1.1\r\nHost: " + host +
		"\r\nUser-Agent: bench\r\nAccept: */*\r\nAuthorization: Bearer " + placeholder + "\r\n" +
		strings.Join(append(more, ""), "\r\n") + "\r\n"
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
	res, err := http.ReadResponse(c.r, nil) //nolint:bodyclose // its end is the next answer's beginning; there is no pool
	if err != nil {
		return nil, fmt.Errorf("read the answer of %s: %w", c.s.name, err)
	}
	if res.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(res.Body, 1<<10))
		return nil, fmt.Errorf("%s answered %s: %s", c.s.name, res.Status, text)
	}
	return res.Body, nil
}

// item asks for the small answer and compares it.
func (c *conn) item(request string) error {
	got, err := c.get(request)
	if err == nil && string(got) != string(item) {
		err = fmt.Errorf("%s gave another body: %.60q", c.s.name, got)
	}
	return err
}

// download asks for n bytes and counts what comes.
func (c *conn) download(request string, n int64, buf []byte) error {
	if err := c.send(request); err != nil {
		return err
	}
	body, err := c.answer()
	if err != nil {
		return err
	}
	got, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{body}, buf)
	if err == nil && got != n {
		err = fmt.Errorf("%s gave %d bytes of %d", c.s.name, got, n)
	}
	return err
}

// upload sends the body and asks whether the origin got all of it.
func (c *conn) upload(head string, body []byte, times int) error {
	if err := c.send(head); err != nil {
		return err
	}
	for range times {
		if _, err := c.Write(body); err != nil {
			return err
		}
	}
	return c.uploaded(int64(len(body) * times))
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
