package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"strconv"
	"sync"

	"golang.org/x/net/http2"
)

// light is the yardstick: a MITM without policy, written by hand. CONNECT, a
// cache of leaves, one tls.Config so that clients resume, its own HTTP/1.1 loop
// and x/net/http2, a transport with a pool that fits, copies of 32 KiB.
type light struct {
	tls       *tls.Config
	transport *http.Transport
}

// serveLight serves light. Over HTTP/1.1 upstream it is the reference of all verdicts; with h2 it speaks HTTP/2
// upstream where the origin does.
func serveLight(ctx context.Context, cfg partConfig, ready func(announcement) error, name string, h2 bool) error {
	transport, err := cfg.transport()
	if err != nil {
		return err
	}
	transport.ForceAttemptHTTP2 = h2
	return cfg.intercept(ctx, name, ready, func(a *authority) func(net.Conn) {
		l := &light{transport: transport,
			tls: &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: a.forHello, NextProtos: []string{"h2", "http/1.1"}}}
		return l.serve
	})
}

func (l *light) serve(conn net.Conn) {
	defer conn.Close()
	connect, err := http.ReadRequest(bufio.NewReader(conn))
	if err != nil || connect.Method != http.MethodConnect {
		return
	}
	if _, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		return
	}
	secure := tls.Server(conn, l.tls)
	if secure.Handshake() != nil {
		return
	}
	if secure.ConnectionState().NegotiatedProtocol == "h2" {
		handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { l.answer(w, r, connect.Host) })
		h2 := &http2.Server{} //nolint:staticcheck // the yardstick is x/net's own loop
		h2.ServeConn(secure, &http2.ServeConnOpts{Handler: handler})
		return
	}
	r, w := bufio.NewReader(secure), bufio.NewWriterSize(secure, 32<<10)
	for l.exchange(r, w, connect.Host) {
	}
}

// exchange carries one HTTP/1.1 request and reports whether another may come.
func (l *light) exchange(r *bufio.Reader, w *bufio.Writer, host string) bool {
	req, err := http.ReadRequest(r)
	if err != nil {
		return false
	}
	body := &lightBody{ReadCloser: req.Body, done: make(chan struct{})}
	if req.Header.Get("Expect") != "" {
		req.Header.Del("Expect")
		body.interim = w
	}
	if req.Body != http.NoBody {
		req.Body = body
	}
	outbound(req, host)
	res, err := l.transport.RoundTrip(req)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	if writeResponse(w, res) != nil {
		return false
	}
	if req.Body == http.NoBody {
		return true
	}
	// The transport may still read the body after the answer has come.
	<-body.done
	return body.ended
}

// answer carries one HTTP/2 request.
func (l *light) answer(w http.ResponseWriter, r *http.Request, host string) {
	outbound(r, host)
	res, err := l.transport.RoundTrip(r)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer res.Body.Close()
	h := w.Header()
	for name, values := range res.Header {
		h[name] = values
	}
	w.WriteHeader(res.StatusCode)
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	streams := res.ContentLength < 0
	for {
		n, err := res.Body.Read(*buf)
		if _, failed := w.Write((*buf)[:n]); failed != nil || err != nil {
			return
		}
		if streams {
			w.(http.Flusher).Flush()
		}
	}
}

// outbound makes a client's request one for the transport.
func outbound(r *http.Request, host string) {
	r.URL.Scheme, r.URL.Host, r.RequestURI = "https", host, ""
	for _, name := range []string{"Connection", "Proxy-Connection", "Keep-Alive", "Te", "Trailer", "Upgrade"} {
		r.Header.Del(name)
	}
	if _, named := r.Header["User-Agent"]; !named {
		r.Header.Set("User-Agent", "") // else the transport adds its own
	}
}

var buffers = sync.Pool{New: func() any { b := make([]byte, 32<<10); return &b }}

// writeResponse writes head and body, and what streams as it comes.
func writeResponse(w *bufio.Writer, res *http.Response) error {
	streams := res.ContentLength < 0
	_, _ = w.WriteString("HTTP/1.1 " + res.Status + "\r\n")
	if streams {
		_, _ = w.WriteString("Transfer-Encoding: chunked\r\n")
	} else if res.Header.Get("Content-Length") == "" {
		_, _ = w.WriteString("Content-Length: " + strconv.FormatInt(res.ContentLength, 10) + "\r\n")
	}
	_ = res.Header.Write(w)
	_, _ = w.WriteString("\r\n")
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	if !streams {
		if _, err := io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{res.Body}, *buf); err != nil {
			return err
		}
		return w.Flush()
	}
	chunks := httputil.NewChunkedWriter(w)
	for {
		n, err := res.Body.Read(*buf)
		if n > 0 {
			_, _ = chunks.Write((*buf)[:n])
			if err := w.Flush(); err != nil {
				return err
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
	}
	_ = chunks.Close()
	_, _ = w.WriteString("\r\n")
	return w.Flush()
}

// lightBody is a request body that closes done when the transport has released it.
type lightBody struct {
	io.ReadCloser
	interim *bufio.Writer // gets a 100 before the first read, when it is asked for
	ended   bool
	once    sync.Once
	done    chan struct{}
}

func (b *lightBody) Read(p []byte) (int, error) {
	if b.interim != nil {
		_, _ = b.interim.WriteString("HTTP/1.1 100 Continue\r\n\r\n")
		if err := b.interim.Flush(); err != nil {
			return 0, err
		}
		b.interim = nil
	}
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		b.ended = true
	}
	return n, err
}

func (b *lightBody) Close() error {
	b.once.Do(func() { close(b.done) })
	return nil
}
