package api

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/ALRubinger/aileron/proxy"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/body"
)

// typeUpload is the media type of a call that the content of files follows: the call is one line, and the files that it
// names stand behind it, one after the other.
const typeUpload = "application/vnd.aileron.call.v1"

// typeUploadBase64 is that of a client that cannot send NULs: what stands behind the line is base64.
const typeUploadBase64 = "application/vnd.aileron.call.base64.v1"

// saltSize is the size of the salt of boundaries, in bytes.
const saltSize = 16

// isUpload reports whether files follow a call of this media type.
func isUpload(contentType string) bool {
	return contentType == typeUpload || contentType == typeUploadBase64
}

// uploadBuffer is what is read of a body with files at once.
const uploadBuffer = 32 << 10

// runUpload responds to a call that files follow. They are read while the request that the call makes is sent.
func (c *call) runUpload() (*http.Response, *proxy.Denial) {
	var in spec.Invocation
	files, d := c.readLine(func(line []byte) (err error) {
		in, err = spec.ParseUpload(line, c.api.salt)
		return err
	})
	if d != nil {
		return nil, c.reject(nil, surfaceFields(c.r), d)
	}
	if c.r.Header.Get("Content-Type") == typeUploadBase64 {
		files = base64.NewDecoder(base64.StdEncoding, files)
	}
	x, res, d := (&operationCall{call: c, grants: c.plane.Grants(), fields: surfaceFields(c.r),
		files: &pausable{files, c.r.Body}}).do(in)
	if d != nil {
		return nil, d
	}
	return c.respond(x, res, "")
}

// pausable is what is left of a client's body, which may wait for an approval.
type pausable struct {
	io.Reader
	body io.Reader
}

// Pause notes that it is not read for a while, and not by the client's fault.
func (p *pausable) Pause() {
	if src, ok := p.body.(interface{ Pause() }); ok {
		src.Pause()
	}
}

// readLine parses the first line of the request's body, and returns what follows it.
func (c *call) readLine(parse func(line []byte) error) (rest io.Reader, _ *proxy.Denial) {
	if !c.hold.Take(uploadBuffer) {
		return nil, proxy.DenyMemory()
	}
	from := bufio.NewReaderSize(c.r.Body, uploadBuffer)
	var line bytes.Buffer
	for {
		piece, err := from.ReadSlice('\n')
		if line.Len()+len(piece) > spec.MaxSize {
			return nil, proxy.ReasonTooLarge.Deny("the call in front of the files has more than %d bytes", spec.MaxSize)
		}
		if !c.hold.Take(2 * int64(len(piece))) {
			return nil, proxy.DenyMemory()
		}
		line.Write(piece)
		switch {
		case err == nil:
			return from, c.parse(line.Bytes(), parse)
		case errors.Is(err, io.EOF):
			return nil, proxy.ReasonArguments.Deny("the call in front of the files is not a line that ends")
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, proxy.DenyBody(err)
		}
	}
}

// readTexts reads the files of a call that are texts of its operation, whose arguments they become.
func (c *operationCall) readTexts(op *spec.Operation, in *spec.Invocation) *proxy.Denial {
	texts, err := in.Texts(op)
	if err != nil {
		return proxy.ReasonArguments.Deny("%v", err)
	}
	for _, f := range texts {
		if !c.hold.Take(2 * f.Size) {
			return proxy.DenyMemory()
		}
		content := make([]byte, f.Size)
		switch n, err := io.ReadFull(c.files, content); {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return proxy.DenyBody(fmt.Errorf("%w: %s has %d bytes, and the call names %d", body.ErrUpload, f.Input, n, f.Size))
		case err != nil:
			return proxy.DenyBody(err)
		}
		if err := in.SetText(f.Input, content); err != nil {
			return proxy.ReasonArguments.Deny("%v", err)
		}
	}
	if len(texts) == 0 || in.HasFiles() {
		return nil
	}
	var one [1]byte
	switch n, err := io.ReadFull(c.files, one[:]); {
	case n > 0:
		return proxy.DenyBody(fmt.Errorf("%w: there are more bytes than the call names", body.ErrUpload))
	case !errors.Is(err, io.EOF):
		return proxy.DenyBody(err)
	}
	return nil
}

// denyLong denies a body with files that is longer than any may be.
func (c *call) denyLong(s *body.Streamed) *proxy.Denial {
	most := c.plane.Config().Limits.Wire.WithDefaults().Body
	if s == nil || most < 0 || s.Size() <= most {
		return nil
	}
	return proxy.ReasonTooLarge.Deny("the files make a body of %d bytes, and at most %d are sent (body_bytes below "+
		"[limits])", s.Size(), most)
}
