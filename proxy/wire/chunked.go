package wire

import (
	"errors"
	"io"
)

var errChunk = errors.New("read the request body: the chunked framing is broken")

// chunkedReader decodes the chunked coding of RFC 9112 section 7.1 strictly:
// a size is one to fifteen hexadecimal digits and CRLF, extensions are
// rejected, data ends with CRLF, trailer fields are read, bounded, and discarded
// (a request's trailers are never forwarded). It never reads beyond the body.
type chunkedReader struct {
	src  *connReader
	left int64 // of the current chunk
	open bool  // a chunk's CRLF is still to be read
	err  error
}

func (r *chunkedReader) Read(p []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	if r.left == 0 {
		if r.err = r.next(); r.err != nil {
			return 0, r.err
		}
	}
	if int64(len(p)) > r.left {
		p = p[:r.left]
	}
	n, err := r.src.Read(p)
	r.left -= int64(n)
	r.open = r.left == 0
	if err != nil {
		r.err = unexpected(err)
	}
	return n, r.err
}

// next reads up to the next chunk's data, or the end of the body: io.EOF.
func (r *chunkedReader) next() error {
	if r.open {
		line, err := r.src.line(2)
		if err != nil {
			return err
		}
		if len(line) != 0 {
			return errChunk
		}
		r.open = false
	}
	line, err := r.src.line(17)
	if err != nil {
		return err
	}
	size, ok := hexSize(line)
	if !ok {
		return errChunk
	}
	if size > 0 {
		r.left = size
		return nil
	}
	for range 64 { // trailer fields
		line, err := r.src.line(8 << 10)
		if err != nil {
			return err
		}
		if len(line) == 0 {
			return io.EOF
		}
	}
	return errChunk
}

func hexSize(b []byte) (int64, bool) {
	if len(b) == 0 || len(b) > 15 {
		return 0, false
	}
	var n int64
	for _, c := range b {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		n = n<<4 | int64(c)
	}
	return n, true
}

// unexpected returns err, with io.EOF inside a body turned into
// io.ErrUnexpectedEOF.
func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
