package wire

import (
	"bufio"
	"cmp"
	"errors"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/ALRubinger/aileron/proxy/budget"
)

// ResponseWriter writes one response. It is an http.ResponseWriter that sends every
// Write at once; [ResponseWriter.Respond] streams a whole http.Response.
type ResponseWriter struct {
	c     *serverConn
	req   *http.Request
	minor int
	body  *requestBody
	close bool   // the connection is closed after this response
	gone  func() // cancels the request's context; nil: there is no request

	header  http.Header
	trailer http.Header // of a chunked response, at its end
	phrase  string      // the reason phrase; "": the status's own
	started bool
	done    bool // finish was called
	chunked bool
	bare    bool  // the response has no body
	left    int64 // bytes left of a known length; -1: unknown
	proto   int   // the major version of the upstream's response
	err     error
}

var (
	_ http.ResponseWriter = (*ResponseWriter)(nil)
	_ http.Flusher        = (*ResponseWriter)(nil)
	_ http.Hijacker       = (*ResponseWriter)(nil)
)

// errShort is returned for a body that ended before its announced length.
var errShort = errors.New("write the response: the body is shorter than announced")

// Header implements http.ResponseWriter.
func (w *ResponseWriter) Header() http.Header {
	if w.header == nil {
		w.header = http.Header{}
	}
	return w.header
}

// WriteHeader implements http.ResponseWriter. 1xx codes are dropped.
func (w *ResponseWriter) WriteHeader(code int) {
	if w.started || code < 200 {
		return
	}
	w.close = w.close || HasToken(w.header, "Connection", "close")
	length := int64(-1)
	if n, ok := Digits(w.Header().Get("Content-Length")); ok {
		length = n
	}
	w.send(w.head(nil, code, w.Header(), length))
}

// Write implements http.ResponseWriter.
func (w *ResponseWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if w.err != nil {
		return 0, w.err
	}
	if w.bare || len(p) == 0 {
		return len(p), nil
	}
	if w.left >= 0 {
		if int64(len(p)) > w.left {
			return 0, http.ErrContentLength
		}
		w.left -= int64(len(p))
	}
	if !w.chunked {
		w.send(p)
		return len(p), w.err
	}
	out := strconv.AppendInt(make([]byte, 0, len(p)+12), int64(len(p)), 16)
	out = append(append(append(out, "\r\n"...), p...), "\r\n"...)
	w.send(out)
	return len(p), w.err
}

// Flush implements http.Flusher. Only an unsent head remains to be sent.
func (w *ResponseWriter) Flush() { w.WriteHeader(http.StatusOK) }

// Hijack implements http.Hijacker. The connection returns the bytes that were read
// ahead first. Its deadlines are cleared. It may be used after [Serve] has returned,
// which does not close it.
func (w *ResponseWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if w.started {
		return nil, nil, errors.New("hijack: the response has begun")
	}
	w.c.hijacked = true
	w.c.hold.Release()
	conn := &hijacked{Conn: w.c.conn, src: w.c.src}
	_ = conn.SetDeadline(time.Time{})
	return conn, bufio.NewReadWriter(bufio.NewReaderSize(conn, 512), bufio.NewWriterSize(conn, 512)), nil
}

// Pace returns Limits.Progress, to which the user of a hijacked connection holds the client.
func (w *ResponseWriter) Pace() time.Duration { return w.c.limits.Progress }

// LocalAddr returns the connection's local address.
func (w *ResponseWriter) LocalAddr() net.Addr { return w.c.conn.LocalAddr() }

// hijacked is a connection with the bytes that the wire had read ahead.
type hijacked struct {
	net.Conn
	src *connReader
}

func (h *hijacked) Read(p []byte) (int, error) { return h.src.Read(p) }

// Close closes the connection, and returns what its buffer took of the budget.
func (h *hijacked) Close() error {
	h.src.hold.Release()
	return h.Conn.Close()
}

// NetConn returns the underlying connection.
func (h *hijacked) NetConn() net.Conn { return h.Conn }

// CloseWrite half-closes the connection, if it supports that.
func (h *hijacked) CloseWrite() error {
	if half, ok := h.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// finish ends the response: it sends the head, if that was not sent, and the last
// chunk. It returns an error unless the response is complete.
func (w *ResponseWriter) finish() error {
	w.WriteHeader(http.StatusOK)
	if w.done {
		return w.err
	}
	w.done = true
	if w.err == nil && w.chunked {
		w.send(w.last())
	}
	if w.err == nil && w.left > 0 {
		w.err = errShort
	}
	return w.err
}

// last returns the last chunk, with its trailers (RFC 9112 section 7.1.2).
func (w *ResponseWriter) last() []byte {
	out := []byte("0\r\n")
	for name, values := range w.trailer {
		if isOwnField(name) {
			continue
		}
		for _, v := range values {
			out = append(append(append(append(out, name...), ": "...), v...), "\r\n"...)
		}
	}
	return append(out, "\r\n"...)
}

// isOwnField reports whether a field is not forwarded: connection-level fields belong to
// one hop (RFC 9110 section 7.6.1), and this hop has its own framing.
func isOwnField(name string) bool {
	switch name {
	case "Connection", "Content-Length", "Keep-Alive", "Proxy-Connection",
		"Te", "Trailer", "Transfer-Encoding", "Upgrade":
		return true
	}
	return false
}

// head appends the response head to out and decides the framing.
func (w *ResponseWriter) head(out []byte, code int, h http.Header, length int64) []byte {
	w.started = true
	w.bare = w.req.Method == http.MethodHead || code == http.StatusNoContent || code == http.StatusNotModified
	w.left = length
	if w.bare {
		w.left = -1
	} else if length < 0 {
		if w.chunked = w.minor == 1; !w.chunked {
			w.close = true
		}
	}
	if w.body != nil && w.body.skipContinue() {
		w.close = true // 100 Continue was not sent, so the announced body may follow or not
	}
	if w.c.drain.Err() != nil {
		w.close = true
	}
	out = append(out, "HTTP/1.1 "...)
	out = strconv.AppendInt(out, int64(code), 10)
	out = append(append(append(out, ' '), cmp.Or(w.phrase, http.StatusText(code))...), "\r\n"...)
	for name, values := range h {
		if isOwnField(name) {
			continue
		}
		for _, v := range values {
			out = append(append(append(append(out, name...), ": "...), v...), "\r\n"...)
		}
	}
	if length >= 0 && code != http.StatusNoContent && (length > 0 || code != http.StatusNotModified) {
		out = strconv.AppendInt(append(out, "Content-Length: "...), length, 10)
		out = append(out, "\r\n"...)
	} else if w.chunked {
		out = append(out, "Transfer-Encoding: chunked\r\n"...)
	}
	if w.close {
		out = append(out, "Connection: close\r\n"...)
	}
	return append(out, "\r\n"...)
}

func (w *ResponseWriter) send(p []byte) {
	if w.err != nil {
		return
	}
	// Twice: what is written, and its copy in TLS.
	n := 2 * int64(len(p))
	if w.left != 0 && !w.bare && !w.done {
		n += AheadOf(w.proto, w.left)
	}
	if !w.c.hold.Stall(n) {
		w.c.shed()
		w.err = budget.ErrShed
		return
	}
	_ = w.c.conn.SetWriteDeadline(time.Now().Add(w.c.limits.Stalled))
	if w.gone != nil && w.c.ended() { // the end has set a deadline, which must stay in force
		_ = w.c.conn.SetWriteDeadline(aLongTimeAgo)
	}
	if _, w.err = w.c.conn.Write(p); w.err != nil && w.gone != nil {
		w.gone()
	}
	w.c.hold.Give(n) // the exchange now waits for the next piece
}
