package upstream

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/textproto"
	"sync/atomic"
	"time"
)

// h1Body is the body of a response over HTTP/1.1. It holds its connection until
// it ends.
type h1Body struct {
	pc       *persistConn
	res      *http.Response // gets the trailers
	chunks   *chunkedReader // decodes the chunked coding; nil: the body is not chunked
	left     int64          // of the announced length; -1: the body ends with the connection
	sent     *upload
	stop     func() bool // ends the watch over the request's context
	reuse    bool
	err      error // sticky
	released atomic.Bool
}

// Buffered returns how many bytes Read returns without waiting for the host, at least one
// where that is all that is known.
func (b *h1Body) Buffered() int {
	if b.err != nil || b.released.Load() || !b.come() {
		return 0
	}
	n := b.pc.r.Buffered()
	if b.chunks != nil {
		return int(max(1, min(int64(n), b.chunks.left)))
	}
	if b.left >= 0 {
		n = int(min(int64(n), b.left))
	}
	return n
}

// WaitData waits until Read returns without waiting for the host, at most until
// then, and reports whether it does. It must not be called while another goroutine
// reads.
func (b *h1Body) WaitData(until time.Time) bool {
	return b.err != nil || b.released.Load() || b.pc.awaitBytes(until, b.come)
}

// come reports whether something has come that Read returns.
func (b *h1Body) come() bool {
	if b.chunks != nil {
		return b.chunks.ready()
	}
	return b.pc.r.Buffered() > 0
}

// Read implements io.Reader.
func (b *h1Body) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	if b.released.Load() {
		return 0, http.ErrBodyReadAfterClose
	}
	n, err := b.read(p)
	if b.err = err; err != nil {
		b.release(err == io.EOF && b.reuse)
	}
	return n, err
}

// read reads the body by its framing: RFC 9112 section 6.3.
func (b *h1Body) read(p []byte) (int, error) {
	switch {
	case b.chunks != nil:
		n, err := b.chunks.Read(p)
		if err == io.EOF {
			err = b.readTrailer()
		}
		return n, err
	case b.left < 0:
		return b.pc.r.Read(p)
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.pc.r.Read(p)
	b.left -= int64(n)
	switch {
	case b.left == 0:
		return n, io.EOF
	case err == io.EOF:
		return n, io.ErrUnexpectedEOF
	}
	return n, err
}

var (
	errTrailer     = errors.New("read the response: its trailers are too large")
	errTrailerName = errors.New("read the response: a trailer's name is malformed")
)

// readTrailer reads the trailers behind the last chunk, which fit into the
// reader's buffer, and returns io.EOF.
func (b *h1Body) readTrailer() error {
	r := b.pc.r
	switch next, err := r.Peek(2); {
	case string(next) == "\r\n":
		_, _ = r.Discard(2)
		return io.EOF
	case len(next) < 2:
		return io.ErrUnexpectedEOF
	case err != nil:
		return err
	}
	for n := 4; ; n++ {
		seen, err := r.Peek(n)
		if bytes.HasSuffix(seen, []byte("\r\n\r\n")) {
			break
		}
		if err != nil {
			return errTrailer
		}
	}
	trailer, err := textproto.NewReader(r).ReadMIMEHeader()
	switch {
	case err == io.EOF:
		return io.ErrUnexpectedEOF
	case err != nil:
		return errTrailerName // net/http's error quotes the trailer
	case b.res.Trailer == nil:
		b.res.Trailer = http.Header(trailer)
	default:
		maps.Copy(b.res.Trailer, http.Header(trailer))
	}
	return io.EOF
}

// Close ends the connection of a body that was not read to its end.
func (b *h1Body) Close() error {
	b.release(false)
	return nil
}

func (b *h1Body) release(reuse bool) {
	if b.released.Swap(true) {
		return
	}
	reuse = reuse && b.sent.complete()
	// Bytes behind the response belong to no request.
	if b.stop() && reuse && b.pc.r.Buffered() == 0 && b.pc.r.Size() <= maxConnBuffer {
		b.pc.pool.put(b.pc)
		return
	}
	_ = b.pc.conn.Close()
}
