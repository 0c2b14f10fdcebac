package api

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/ALRubinger/aileron/internal/termsafe"
	"github.com/ALRubinger/aileron/proxy"
	"github.com/ALRubinger/aileron/proxy/modify"
)

// The forms of a response that a shell can read, by the Accept that asks for them. A client such as BusyBox wget drops
// the body of a status that is an error, and a shell has no parser of JSON; so the status is always 200, and the first
// line is "EXIT STATUS AUDIT-ID KIND": the exit code of the command, the status of the upstream or of the denial, the
// row's id or "-", and [shimResponse] or [shimDenial].
const (
	formShim     = "application/vnd.aileron.shim.v1" // the upstream's body follows as it is
	formShimJSON = formShim + "+json"                // the object of other clients follows
)

// The kinds of a response in these forms. A denial's message follows as one line, and then its error object.
const (
	shimResponse = "response"
	shimDenial   = "denial"
)

// The exit codes of a command.
const (
	exitDone    = 0
	exitFailed  = 1  // denied, or the upstream's status is an error
	exitUsage   = 2  // the arguments are not the operation's
	exitPending = 75 // an approval is pending
)

// formOf returns the form that a request to the API asks for; "" is that of other clients.
func formOf(r *http.Request) string {
	accept := r.Header["Accept"]
	if len(accept) != 1 || !slices.Contains([]string{formShim, formShimJSON}, accept[0]) || !isCallPath(apiPath(r)) {
		return ""
	}
	return accept[0]
}

// isCallPath reports whether a path of the API is an endpoint for commands.
func isCallPath(path string) bool {
	return path == operationsPath || path == actionsPath || path == helpPath
}

// apiPath returns the path of a request to the API.
func apiPath(r *http.Request) string {
	path, _, _ := strings.Cut(r.RequestURI, "?")
	if i := strings.Index(path, "://"); i >= 0 {
		path = path[i+3:]
		path = path[max(0, strings.IndexByte(path, '/')):]
	}
	return path
}

// denialInForm returns the response of a denial in a form. gRPC has one of its own.
func denialInForm(form string, r *http.Request, d *proxy.Denial) *http.Response {
	if form == "" || r.ProtoMajor == 2 && modify.IsGRPC(r.Header) {
		return d.Response(r)
	}
	out := shimHead(exitOf(d), d.Status(), d.AuditID, shimDenial)
	out = append(append(out, termsafe.Line(d.Text())...), '\n')
	out = append(out, d.JSON()...)
	shim := shimResponseOf(r, form, d.AuditID)
	shim.Body, shim.ContentLength, shim.Close = io.NopCloser(bytes.NewReader(out)), int64(len(out)), d.Ends()
	shim.Header.Set("Content-Length", strconv.Itoa(len(out)))
	if d.Ends() {
		shim.Header.Set("Connection", "close")
	}
	return shim
}

// exitOf returns the exit code of a command that is denied.
func exitOf(d *proxy.Denial) int {
	switch {
	case d.Reason == proxy.ReasonArguments:
		return exitUsage
	case d.ErrorClass() == "approval_required":
		return exitPending
	}
	return exitFailed
}

// shimHead returns the first line.
func shimHead(exit, status int, id, kind string) []byte {
	head := strconv.AppendInt(nil, int64(exit), 10)
	head = strconv.AppendInt(append(head, ' '), int64(status), 10)
	if id == "" {
		id = "-"
	}
	return append(append(append(append(append(head, ' '), id...), ' '), kind...), '\n')
}

// shimHeadOf returns the first line of the response to a call that took place.
func shimHeadOf(status int, id string) []byte {
	exit := exitDone
	if status >= http.StatusBadRequest {
		exit = exitFailed
	}
	return shimHead(exit, status, id, shimResponse)
}

// shimResponseOf returns a response with this content type, and without a body.
func shimResponseOf(r *http.Request, contentType, id string) *http.Response {
	h := http.Header{"Content-Type": {contentType}, "Cache-Control": {"no-store"}, "X-Content-Type-Options": {"nosniff"}}
	if id != "" {
		h["X-Aileron-Audit-Id"] = []string{id}
	}
	return &http.Response{StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: h, Body: http.NoBody, ContentLength: -1}
}

// shimBody is the upstream's body behind the first line.
type shimBody struct {
	io.ReadCloser
	head []byte
}

func (b *shimBody) Read(p []byte) (int, error) {
	if len(b.head) > 0 {
		n := copy(p, b.head)
		b.head = b.head[n:]
		return n, nil
	}
	return b.ReadCloser.Read(p)
}
