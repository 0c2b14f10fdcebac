package upstream

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/ALRubinger/aileron/proxy/wire"
)

// pieceSize is the most of a request that is sent at a time: one TLS record.
const pieceSize = 16 << 10

// writeBuffers holds what requests are written from.
var writeBuffers = sync.Pool{New: func() any { b := make([]byte, pieceSize+chunkHead+chunkTail); return &b }}

// Errors of requests that are not sent, because they could be read as another.
var (
	errTarget = errors.New("write the request: its target has a byte that is not plain ASCII")
	errHost   = errors.New("write the request: its host is none")
	errMethod = errors.New("write the request: its method is not a token")
)

// appendRequestHead appends the head of r to out. The body, if there is one, has
// r.ContentLength bytes, or is chunked where that is negative. The order is that of
// net/http: Host, User-Agent, framing, then the other fields by name.
func appendRequestHead(out []byte, r *http.Request, body bool) ([]byte, error) {
	if !wire.IsMethod(r.Method) {
		return nil, errMethod
	}
	out = append(append(out, r.Method...), ' ')
	at := len(out)
	out = appendTarget(out, r)
	if !isPlain(out[at:]) && (r.URL.Opaque == "" || !wire.IsTarget(string(out[at:]))) {
		return nil, errTarget
	}
	out = append(out, " HTTP/1.1\r\nHost: "...)
	host := r.Host
	if host == "" {
		host = r.URL.Host
	}
	at = len(out)
	if out = append(out, host...); !isPlain(out[at:]) || strings.ContainsAny(host, "%/?#@\\") {
		return nil, errHost
	}
	out = append(out, "\r\n"...)
	if agent := r.Header["User-Agent"]; len(agent) > 0 && agent[0] != "" {
		out = appendField(out, "User-Agent", agent[0])
	}
	switch {
	case body && r.ContentLength < 0:
		out = append(out, "Transfer-Encoding: chunked\r\n"...)
	case body, r.Method == http.MethodPost, r.Method == http.MethodPut, r.Method == http.MethodPatch:
		out = strconv.AppendInt(append(out, "Content-Length: "...), max(0, r.ContentLength), 10)
		out = append(out, "\r\n"...)
	}
	var few [32]string
	names := few[:0]
	for name := range r.Header {
		if !isOwnField(name) && wire.IsToken(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		for _, value := range r.Header[name] {
			out = appendField(out, name, value)
		}
	}
	return append(out, "\r\n"...), nil
}

// isOwnField reports whether a field is written by appendRequestHead itself, or not at all.
func isOwnField(name string) bool {
	switch name {
	case "Host", "User-Agent", "Content-Length", "Transfer-Encoding", "Trailer":
		return true
	}
	return false
}

// appendTarget appends the request target of r.
func appendTarget(out []byte, r *http.Request) []byte {
	u := r.URL
	path := u.EscapedPath()
	switch {
	case u.Opaque != "", strings.HasPrefix(path, "//"): // Opaque is a path that is sent as it is
		return append(out, u.RequestURI()...)
	case path == "":
		path = "/"
	}
	out = append(out, path...)
	if u.ForceQuery || u.RawQuery != "" {
		out = append(append(out, '?'), u.RawQuery...)
	}
	return out
}

// isPlain reports whether b is visible ASCII.
func isPlain(b []byte) bool {
	for _, c := range b {
		if c <= ' ' || c >= 0x7f {
			return false
		}
	}
	return len(b) > 0
}

// appendField appends a field. A line break in its value would begin another: it
// becomes a blank.
func appendField(out []byte, name, value string) []byte {
	out = append(append(out, name...), ": "...)
	at := len(out)
	out = append(out, strings.TrimSpace(value)...)
	for i, c := range out[at:] {
		if c == '\r' || c == '\n' {
			out[at+i] = ' '
		}
	}
	return append(out, "\r\n"...)
}
