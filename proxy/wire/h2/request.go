package h2

import (
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/http2"

	"github.com/ALRubinger/aileron/proxy/wire"
)

// headers opens a stream, or ends one with trailers, which are discarded: a
// request's trailers are never forwarded.
func (c *connection) headers(f *http2.MetaHeadersFrame) error {
	id := f.StreamID
	if id%2 == 0 {
		return protocolError("a client's stream has an even number")
	}
	c.mu.Lock()
	st, crowded := c.streams[id], c.crowded()
	left, ours := st != nil && st.left, slices.Contains(c.resets[:], id)
	c.mu.Unlock()
	switch {
	case left:
		return errLeft
	case st != nil:
		return st.trailers(f)
	}
	if id <= c.lastID && ours {
		return nil // trailers that were in transit when we ended it: RFC 9113 section 5.1
	}
	if id <= c.lastID {
		return errEnded
	}
	c.lastID = id
	if crowded {
		return c.refuseCrowd(id)
	}
	if f.HasPriority() && f.Priority.StreamDep == id {
		return c.openRefused(id, f.StreamEnded(), malformed("a stream depends on itself"))
	}
	r, perr := c.request(f)
	if perr == nil && c.limits.Body > 0 && r.ContentLength > c.limits.Body {
		perr = &wire.ProtocolError{Status: http.StatusRequestEntityTooLarge, Reason: "the request body is too large",
			Method: r.Method, Target: r.URL.Path}
	}
	if perr != nil {
		return c.openRefused(id, f.StreamEnded(), perr)
	}
	length := r.ContentLength
	st = c.newStream(id, length, f.StreamEnded())
	st.pace = paceOf(r, c.limits)
	up := uploadOf(f, length)
	if !st.hold.Take(wire.Exchange + sizeOf(f) + up) {
		// No goroutine is started: there may be many of these.
		st.cancel(nil)
		perr = wire.Exhausted()
		perr.Method, perr.Target = wire.Readable(r.Method, r.RequestURI)
		return c.refuseStream(id, perr, http2.ErrCodeRefusedStream)
	}
	c.opened(st)
	st.expect = strings.EqualFold(r.Header.Get("Expect"), "100-continue")
	st.head = wire.Head{Hold: st.hold, Size: sizeOf(f)}
	*r = *r.WithContext(wire.WithHead(st.ctx, &st.head))
	st.request = r
	r.Body = http.NoBody
	if !f.StreamEnded() {
		r.Body = &requestBody{st: st, limit: c.limits.Body, took: up}
	}
	c.running.Add(1)
	c.start(st.serve)
	return nil
}

// crowded reports whether the client may open no further stream. c.mu is held.
func (c *connection) crowded() bool {
	return c.open >= maxStreams || len(c.streams)-c.open >= maxEnding
}

// opened counts a stream among those that its client has open.
func (c *connection) opened(st *stream) {
	st.hold.Stall(0) // a stream that waits for its upstream makes room for others
	c.mu.Lock()
	defer c.mu.Unlock()
	c.streams[st.id] = st
	c.open++
	c.moved = true
}

// openRefused opens a stream that carries nothing but the response to a head that
// was rejected: a reset would leave its client without the reason (RFC 9113
// section 8.1.1).
func (c *connection) openRefused(id uint32, whole bool, perr *wire.ProtocolError) error {
	st := c.newStream(id, -1, whole)
	st.refused = perr
	c.opened(st)
	c.running.Add(1)
	c.start(st.serve)
	return nil
}

// answer calls the handler. The stream does not keep the request, which the
// response may outlive.
func (st *stream) answer() *http.Response {
	if st.refused != nil {
		return st.c.handler.Refuse(st.refused)
	}
	r := st.request
	st.request = nil
	return st.c.handler.Answer(r)
}

// uploadOf returns how many bytes the upload of a request may hold.
func uploadOf(f *http2.MetaHeadersFrame, length int64) int64 {
	switch {
	case f.StreamEnded():
		return 0
	case length >= 0:
		return min(wire.Upload, length)
	}
	return wire.Upload
}

// sizeOf returns the size of a field section in memory.
func sizeOf(f *http2.MetaHeadersFrame) int64 {
	n := 0
	for _, field := range f.Fields {
		n += len(field.Name) + len(field.Value) + 32
	}
	return int64(n)
}

func (st *stream) trailers(f *http2.MetaHeadersFrame) error {
	st.c.mu.Lock()
	closed := st.closed // also while its handler returns
	st.c.mu.Unlock()
	st.mu.Lock()
	whole := st.whole
	st.mu.Unlock()
	switch {
	case whole && closed:
		return errEnded
	case whole:
		return http2.StreamError{StreamID: st.id, Code: http2.ErrCodeStreamClosed}
	case !f.StreamEnded(), len(f.PseudoFields()) > 0:
		return http2.StreamError{StreamID: st.id, Code: http2.ErrCodeProtocol}
	}
	if code, _ := st.take(nil, 0, true); code != http2.ErrCodeNo {
		return http2.StreamError{StreamID: st.id, Code: code}
	}
	st.c.endedByPeer(st)
	return nil
}

// request returns the request of a field section, read strictly: RFC 9113 section
// 8.3.1 for the pseudo-fields, 8.2 for the rest, and the targets that package wire
// accepts over HTTP/1.1. The framer has rejected invalid names, invalid values, and
// pseudo-fields that are unknown, repeated or late.
func (c *connection) request(f *http2.MetaHeadersFrame) (*http.Request, *wire.ProtocolError) {
	r := &http.Request{
		Method: f.PseudoValue("method"), RequestURI: f.PseudoValue("path"), Host: f.PseudoValue("authority"),
		Proto: "HTTP/2.0", ProtoMajor: 2, Header: make(http.Header, len(f.Fields)), ContentLength: -1,
		RemoteAddr: c.remote,
	}
	perr := c.validate(r, f)
	if perr == nil {
		perr = addFields(r, f)
	}
	if perr != nil {
		perr.Method, perr.Target = wire.Readable(r.Method, r.RequestURI)
		return nil, perr
	}
	u, err := url.ParseRequestURI(r.RequestURI)
	if err != nil {
		perr := malformed("the request target is not a path")
		perr.Method, perr.Target = wire.Readable(r.Method, r.RequestURI)
		return nil, perr
	}
	r.URL = u
	return r, nil
}

func malformed(why string) *wire.ProtocolError {
	return &wire.ProtocolError{Status: http.StatusBadRequest, Reason: why}
}

// validate checks the pseudo-fields and the sizes.
func (c *connection) validate(r *http.Request, f *http2.MetaHeadersFrame) *wire.ProtocolError {
	switch {
	case f.Truncated:
		return &wire.ProtocolError{Status: http.StatusRequestHeaderFieldsTooLarge, Reason: "the request head is too large"}
	case len(f.RegularFields()) > c.limits.Fields:
		return &wire.ProtocolError{Status: http.StatusRequestHeaderFieldsTooLarge, Reason: "there are too many header fields"}
	case len(r.RequestURI) > c.limits.Target:
		return &wire.ProtocolError{Status: http.StatusRequestURITooLong, Reason: "the request target is too long"}
	case !wire.IsMethod(r.Method):
		return malformed("the method is not a token")
	case r.Method == http.MethodConnect:
		return malformed("there is a CONNECT inside a tunnel")
	case f.PseudoValue("scheme") != "https":
		return malformed("the scheme is not the tunnel's, https")
	case !wire.IsTarget(r.RequestURI):
		return malformed("the request target is empty, or has a blank, a control character or a fragment")
	}
	return nil
}

// addFields copies the regular fields to r, and sets its Host and ContentLength.
func addFields(r *http.Request, f *http2.MetaHeadersFrame) *wire.ProtocolError {
	lengths := 0
	fields := f.RegularFields()
	values := make([]string, len(fields)) // of all fields, each of which has its own part
	for i, field := range fields {
		switch field.Name {
		case "connection", "proxy-connection", "keep-alive", "transfer-encoding", "upgrade":
			return malformed("a header field belongs to HTTP/1.1's connections")
		case "te":
			if field.Value != "trailers" {
				return malformed("TE is not \"trailers\"")
			}
		case "host":
			if r.Host == "" {
				r.Host = field.Value
			} else if r.Host != field.Value {
				return malformed("the Host is not the :authority")
			}
			continue
		case "content-length":
			n, ok := wire.Digits(field.Value)
			if lengths++; !ok || lengths > 1 {
				return malformed("Content-Length is not one number")
			}
			r.ContentLength = n
			continue
		case "expect":
			if !strings.EqualFold(field.Value, "100-continue") {
				return &wire.ProtocolError{Status: http.StatusExpectationFailed, Reason: "an expectation is not \"100-continue\""}
			}
		case "cookie": // may be split: RFC 9113 section 8.2.3
			if have := r.Header["Cookie"]; len(have) == 1 {
				have[0] += "; " + field.Value
				continue
			}
		}
		name := textproto.CanonicalMIMEHeaderKey(field.Name)
		if more := r.Header[name]; more != nil {
			r.Header[name] = append(more, field.Value)
			continue
		}
		values[i] = field.Value
		r.Header[name] = values[i : i+1 : i+1]
	}
	if r.Host == "" {
		return malformed("there is no :authority")
	}
	if f.StreamEnded() {
		if r.ContentLength > 0 {
			return malformed("a body is announced and does not come")
		}
		r.ContentLength = 0
	}
	return nil
}
