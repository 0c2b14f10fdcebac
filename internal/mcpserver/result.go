package mcpserver

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/proxy/api"
)

const (
	// maxPiece is the longest text of a result, in bytes. Clients cut longer ones off, or refuse them.
	maxPiece = 64 << 10
	// maxBinary is the largest body of other than text in a result, before it is base64.
	maxBinary = 256 << 10
	// maxBody is how much of a response is read.
	maxBody = 4 << 20
)

// failed returns the result of a call that failed.
func failed(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

// textOf returns an error and what can be done about it.
func textOf(err error) string {
	if h := hint.Of(err); h != "" {
		return err.Error() + "; " + h
	}
	return err.Error()
}

// result returns the result of a call. Its _meta has the id of the audit row, and the status.
func (s *Server) result(op api.ListedOperation, got outcome) *mcp.CallToolResult {
	body, err := io.ReadAll(io.LimitReader(got.body, maxBody+1))
	var r *mcp.CallToolResult
	switch {
	case got.denied:
		r = denied(body)
	case err != nil:
		r = failed(fmt.Sprintf("the response of %s broke off after %d bytes: %v; the call may have taken effect",
			hostOf(op), len(body), err))
	default:
		r = s.content(op, body)
		if got.status >= http.StatusBadRequest {
			r.IsError = true
			about := fmt.Sprintf("%s responded with status %d %s", hostOf(op), got.status, http.StatusText(got.status))
			r.Content = append([]mcp.Content{&mcp.TextContent{Text: about}}, r.Content...)
		}
	}
	r.Meta = mcp.Meta{"aileron/status": got.status}
	if got.auditID != "-" {
		r.Meta["aileron/audit_id"] = got.auditID
	}
	return r
}

// denied returns the result of a call that was denied: the message, and the error object of the API.
func denied(body []byte) *mcp.CallToolResult {
	message, object, _ := strings.Cut(string(body), "\n")
	r := failed(message)
	if object = strings.TrimSpace(object); object != "" {
		r.Content = append(r.Content, &mcp.TextContent{Text: object})
	}
	return r
}

// content returns the result for the body of a response.
func (s *Server) content(op api.ListedOperation, body []byte) *mcp.CallToolResult {
	whole := len(body) <= maxBody
	body = body[:min(len(body), maxBody)]
	if whole && len(body) == 0 {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "(the response has no body)"}}}
	}
	if !isText(body, whole) {
		return &mcp.CallToolResult{Content: []mcp.Content{binary(op, body, whole)}}
	}
	return s.kept.first(string(body), whole)
}

// isText reports whether a body is text in UTF-8. One that was cut may end within a character.
func isText(body []byte, whole bool) bool {
	if !whole {
		body = body[:len(body)-partial(body)]
	}
	return utf8.Valid(body) && bytes.IndexByte(body, 0) < 0
}

// partial returns how many bytes at the end of b are the beginning of a character.
func partial(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if c := b[len(b)-n]; utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}

// binary returns the content for a body of other than text.
func binary(op api.ListedOperation, body []byte, whole bool) mcp.Content {
	media, _, _ := strings.Cut(http.DetectContentType(body), ";")
	switch {
	case !whole || len(body) > maxBinary:
		size := fmt.Sprintf("%d bytes", len(body))
		if !whole {
			size = "more than " + size
		}
		return &mcp.TextContent{Text: fmt.Sprintf("(the response is %s of %s, which is not shown; save it with an HTTP "+
			"client behind the session's proxy: %s https://%s%s)", size, media, op.Method, hostOf(op), op.Path)}
	case strings.HasPrefix(media, "image/"):
		return &mcp.ImageContent{Data: body, MIMEType: media}
	case strings.HasPrefix(media, "audio/"):
		return &mcp.AudioContent{Data: body, MIMEType: media}
	}
	return &mcp.EmbeddedResource{Resource: &mcp.ResourceContents{
		URI: "aileron://response", MIMEType: media, Blob: body}}
}
