package upstream

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

var (
	errChunk     = errors.New("read the response: its chunked framing is broken")
	errChunkLine = errors.New("read the response: the line of a chunk is too long")
	errOverhead  = errors.New("read the response: its chunks have too much beside their data")
)

// Bounds of what is not data, which are those of net/http: a sender of one byte a chunk is
// within them, one that pads its chunks with extensions is not.
const (
	chunkOverhead = 16       // of each chunk, besides twice its data
	maxOverhead   = 16 << 10 // beyond that, in all
	maxChunkLine  = 4 << 10
)

// chunkedReader decodes the chunked coding of a response (RFC 9112 section 7.1), and
// accepts what net/http accepts: a test holds the two against each other. Unlike
// net/http's, it can tell whether a read waits for the host. It leaves the trailers
// unread, and the empty line behind them.
type chunkedReader struct {
	r        *bufio.Reader
	left     int64 // of the current chunk
	open     bool  // a chunk's CRLF is still to be read
	last     bool  // the last chunk has been read
	overhead int64
	err      error // sticky
}

// Read implements io.Reader. It returns io.EOF when the last chunk has been read, and
// waits for the host only until there is something to return.
func (c *chunkedReader) Read(p []byte) (n int, err error) {
	for n < len(p) && c.err == nil && !c.last {
		if n > 0 && !c.ready() {
			return n, nil
		}
		switch {
		case c.err != nil, c.last: // ready has found that
		case c.left > 0:
			k, err := c.r.Read(p[n : n+int(min(c.left, int64(len(p)-n)))])
			n += k
			c.left -= int64(k)
			c.open = c.left == 0
			c.err = unexpected(err)
		case !c.frame():
			_, err := c.r.Peek(c.r.Buffered() + 1)
			c.err = unexpected(err)
		}
	}
	if c.err == nil && c.last {
		return n, io.EOF
	}
	return n, c.err
}

// ready reports whether Read returns without waiting for the host, and what follows the
// last chunk can be read without waiting too.
func (c *chunkedReader) ready() bool {
	for c.err == nil && !c.last && c.left == 0 {
		if !c.frame() {
			return false
		}
	}
	have, _ := c.r.Peek(c.r.Buffered())
	if c.err != nil || !c.last {
		return c.err != nil || len(have) > 0
	}
	return bytes.HasPrefix(have, crlf) || bytes.Contains(have, endOfHead) || len(have) == c.r.Size()
}

var (
	crlf      = []byte("\r\n")
	endOfHead = []byte("\r\n\r\n")
)

// frame reads the next part of the framing between the data of two chunks, and reports
// false if it has not come as a whole.
func (c *chunkedReader) frame() bool {
	have, _ := c.r.Peek(c.r.Buffered())
	if c.open {
		switch {
		case len(have) < len(crlf):
			return false
		case !bytes.HasPrefix(have, crlf):
			c.err = errChunk
			return true
		}
		c.open = false
		_, _ = c.r.Discard(len(crlf))
		return true
	}
	end := bytes.IndexByte(have, '\n')
	if end < 0 {
		if len(have) == c.r.Size() {
			c.err = errChunkLine
		}
		return c.err != nil
	}
	c.begin(have[:end])
	_, _ = c.r.Discard(end + 1)
	return true
}

// begin begins the chunk whose line is given, without its LF.
func (c *chunkedReader) begin(line []byte) {
	if bytes.IndexByte(line, '\r') != len(line)-1 || len(line) == 0 {
		c.err = errChunk // a bare LF, or a CR inside
		return
	}
	line = line[:len(line)-1]
	if len(line) >= maxChunkLine {
		c.err = errChunkLine
		return
	}
	digits, _, _ := bytes.Cut(bytes.TrimRight(line, " \t"), []byte(";")) // an extension means nothing
	size, ok := hexSize(digits)
	switch c.overhead = max(0, c.overhead+int64(len(line))+2-chunkOverhead-2*min(size, maxResponseHead)); {
	case !ok:
		c.err = errChunk
	case c.overhead > maxOverhead:
		c.err = errOverhead
	default:
		c.left, c.last = size, size == 0
	}
}

// hexSize parses one to sixteen hexadecimal digits, whose number an int64 holds.
func hexSize(digits []byte) (size int64, ok bool) {
	for _, d := range digits {
		switch {
		case d >= '0' && d <= '9':
			d -= '0'
		case d >= 'a' && d <= 'f':
			d -= 'a' - 10
		case d >= 'A' && d <= 'F':
			d -= 'A' - 10
		default:
			return 0, false
		}
		size = size<<4 | int64(d)
	}
	return size, len(digits) > 0 && len(digits) <= 16 && size >= 0
}

// unexpected returns err, with io.EOF inside a body turned into io.ErrUnexpectedEOF.
func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
