package api

import (
	"cmp"
	"encoding/base64"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ALRubinger/aileron/proxy"
	"github.com/ALRubinger/aileron/proxy/budget"
	"github.com/ALRubinger/aileron/spec"
)

// envelopePiece is how much of a response's body is put into the envelope at once.
const envelopePiece = 3 << 10 // whole groups of base64

// envelopeMemory is what an envelope takes beside that: a character of JSON may need six.
const envelopeMemory = 8 * envelopePiece

// respond returns the response to a call, of an action if that has a name, in the form that the request asks for.
//
// Without one it is a JSON object with the upstream's status and its body, which streams. A body of text is a string in
// which what is no UTF-8 is replaced; any other is base64. The row's id follows the body. A body that breaks off breaks
// the object off.
func (c *call) respond(x *proxy.Exchange, res *http.Response, action string) (*http.Response, *proxy.Denial) {
	c.hold.Release()
	id := x.OutcomeID()
	out := shimResponseOf(c.r, cmp.Or(c.form, "application/json"), id)
	if c.form == formShim {
		out.Body = &shimBody{res.Body, shimHeadOf(res.StatusCode, id)}
		return whole(out, res), nil
	}
	e := &envelope{src: res.Body, id: id, hold: c.hold, encode: appendBase64}
	if !c.hold.Take(envelopeMemory) {
		d := proxy.DenyMemory()
		d.AuditID = id
		e.hold.Release()
		x.Abandon(res, d.Reason)
		return nil, d
	}
	if c.form != "" {
		e.out = shimHeadOf(res.StatusCode, id)
	}
	e.begin(x.Operation(), res, action)
	out.Body = e
	return whole(out, res), nil
}

// maxWhole is the longest body of an upstream that is read before its response begins.
const maxWhole = 4 << 10

// whole returns out, the response that res becomes, with its length where the body is known to be short: head and body
// are sent at once then, and a chunk is no write of its own. Any other body streams.
func whole(out *http.Response, res *http.Response) *http.Response {
	if res.ContentLength < 0 || res.ContentLength > maxWhole || res.Request.Method == http.MethodHead {
		return out
	}
	body := &wholeBody{Closer: out.Body}
	body.data, body.err = io.ReadAll(out.Body)
	if body.err == nil {
		out.ContentLength, body.err = int64(len(body.data)), io.EOF
	}
	out.Body = body
	return out
}

// wholeBody is a body that was read, and how it ended.
type wholeBody struct {
	io.Closer
	data []byte
	err  error
}

func (b *wholeBody) Read(p []byte) (int, error) {
	n := copy(p, b.data)
	if b.data = b.data[n:]; len(b.data) == 0 {
		return n, b.err
	}
	return n, nil
}

// begin encodes what is in front of the body.
func (e *envelope) begin(op *spec.Operation, res *http.Response, action string) {
	contentType := res.Header.Get("Content-Type")
	e.out = append(slices.Grow(e.out, 1<<10), `{"status":"proxied",`...)
	if action != "" {
		e.out = append(appendString(append(e.out, `"action":`...), action), ',')
	}
	e.out = appendString(append(e.out, `"connector_fqn":`...), string(op.Connector.FQN))
	e.out = appendString(append(e.out, `,"tool":`...), op.Tool)
	e.out = appendString(append(e.out, `,"operation":`...), op.Name)
	e.out = strconv.AppendInt(append(e.out, `,"upstream_status":`...), int64(res.StatusCode), 10)
	e.out = appendString(append(e.out, `,"content_type":`...), contentType)
	name := `,"body_base64":"`
	if isText(contentType) {
		name, e.encode = `,"body":"`, appendText
	}
	e.out = append(e.out, name...)
}

// appendString appends a string of JSON.
func appendString(to []byte, s string) []byte {
	to, _ = appendText(append(to, '"'), []byte(s), true)
	return append(to, '"')
}

// isText reports whether a media type is one of text in UTF-8.
func isText(contentType string) bool {
	switch contentType {
	case "application/json", "application/json; charset=utf-8":
		return true
	}
	media, params, err := mime.ParseMediaType(contentType)
	if charset := strings.ToLower(params["charset"]); err != nil || charset != "" && charset != "utf-8" &&
		charset != "us-ascii" {
		return false
	}
	switch media {
	case "application/json", "application/xml", "application/javascript", "application/x-ndjson", "application/yaml":
		return true
	}
	return strings.HasPrefix(media, "text/") || strings.HasSuffix(media, "+json") || strings.HasSuffix(media, "+xml")
}

// envelope is the body of the response to a call.
type envelope struct {
	src    io.ReadCloser
	id     string // of the row
	hold   *budget.Hold
	encode func(to, from []byte, last bool) (out []byte, used int)
	in     []byte // read and not encoded
	out    []byte // encoded and not read
	room   [envelopePiece]byte
	ended  bool
}

func (e *envelope) Read(p []byte) (int, error) {
	for len(e.out) == 0 {
		if e.ended {
			return 0, io.EOF
		}
		n, err := e.src.Read(e.room[len(e.in):])
		e.in = e.room[:len(e.in)+n]
		if err != nil && err != io.EOF {
			return 0, err
		}
		e.ended = err == io.EOF
		out, used := e.encode(e.out[:0], e.in, e.ended)
		e.in = e.room[:copy(e.room[:], e.in[used:])]
		if e.out = out; e.ended {
			e.out = append(appendString(append(e.out, `","audit_id":`...), e.id), "}\n"...)
		}
	}
	n := copy(p, e.out)
	e.out = e.out[n:]
	return n, nil
}

// Close ends the exchange.
func (e *envelope) Close() error {
	defer e.hold.Release()
	return e.src.Close()
}

// appendBase64 appends whole groups of base64, and what is left of the last.
func appendBase64(to, from []byte, last bool) (out []byte, used int) {
	used = len(from)
	if !last {
		used -= used % 3
	}
	return base64.StdEncoding.AppendEncode(to, from[:used]), used
}

// appendText appends text as it stands in a JSON string (RFC 8259 section 7).
func appendText(to, from []byte, last bool) (out []byte, used int) {
	const hex = "0123456789abcdef"
	for used < len(from) {
		if !last && !utf8.FullRune(from[used:]) {
			break
		}
		if c := from[used]; c >= ' ' && c < utf8.RuneSelf && c != '"' && c != '\\' {
			to = append(to, c)
			used++
			continue
		}
		r, size := utf8.DecodeRune(from[used:])
		switch {
		case r == '"' || r == '\\':
			to = append(to, '\\', byte(r))
		case r == '\n':
			to = append(to, `\n`...)
		case r < 0x20:
			to = append(to, '\\', 'u', '0', '0', hex[r>>4], hex[r&15])
		default:
			to = utf8.AppendRune(to, r) // U+FFFD for what is none
		}
		used += size
	}
	return to, used
}
