package wire

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// Field is a header field as it stands on the wire.
type Field struct{ Name, Value string }

// ParseRequest returns the request that [Serve] would have read with this method, target and fields, by the same strict
// reading. A Host that no field names is host. The request has no body; the fields frame none, since its length is
// known: body. No part can become two.
func ParseRequest(ctx context.Context, method, target, host string, fields []Field, body int64, limits Limits) (
	*http.Request, *ProtocolError) {
	limits = limits.WithDefaults()
	framed := slices.ContainsFunc(fields, func(f Field) bool {
		return strings.EqualFold(f.Name, "Content-Length") || strings.EqualFold(f.Name, "Transfer-Encoding")
	})
	all := slices.Clone(fields)
	if !slices.ContainsFunc(fields, func(f Field) bool { return strings.EqualFold(f.Name, "Host") }) {
		all = append(all, Field{"Host", host})
	}
	if body > 0 {
		all = append(all, Field{"Content-Length", strconv.FormatInt(body, 10)})
	}
	parts := []string{method, " ", target, " HTTP/1.1"}
	for _, f := range all {
		if !isToken(f.Name) {
			return nil, named(malformed("a header field's name is not a token"), method, target)
		}
		parts = append(parts, "\r\n", f.Name, ":", f.Value)
	}
	for i, part := range parts {
		if part != "\r\n" && strings.ContainsAny(part, "\r\n") || i < 3 && i != 1 && strings.Contains(part, " ") {
			return nil, named(malformed("the request has a line break or a blank where none may be"), method, target)
		}
	}
	head := strings.Join(parts, "") + "\r\n\r\n"
	if len(head) > limits.Head {
		return nil, named(&ProtocolError{Status: http.StatusRequestHeaderFieldsTooLarge,
			Reason: "the request head is too large"}, method, target)
	}
	frame, perr := validate(head, limits)
	if perr != nil {
		return nil, perr
	}
	if framed {
		return nil, named(malformed("a field frames the body, whose length is its own"), method, target)
	}
	req, err := parse(ctx, head, frame)
	if err != nil {
		return nil, named(malformed("the request head cannot be parsed"), method, target)
	}
	req.Body, req.ContentLength = http.NoBody, 0
	return req, nil
}

func named(perr *ProtocolError, method, target string) *ProtocolError {
	perr.Method, perr.Target = Readable(method, target)
	return perr
}
