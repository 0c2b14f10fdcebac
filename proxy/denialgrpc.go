package proxy

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// grpc returns the denial as a gRPC status, since gRPC clients show nothing of a
// JSON body: a status and a message in a response without any message
// ("Trailers-Only" in gRPC's description of its protocol over HTTP/2).
func (d *Denial) grpc(req *http.Request) *http.Response {
	h := http.Header{
		"Content-Type": {"application/grpc"}, "Grpc-Status": {strconv.Itoa(grpcStatus(d.Reason.meaning()))},
		"Grpc-Message": {grpcText(d.text())},
	}
	if d.AuditID != "" {
		h.Set("X-Aileron-Audit-Id", d.AuditID)
	}
	return &http.Response{StatusCode: http.StatusOK, Header: h, Request: req, Body: http.NoBody, Close: d.ends}
}

// grpcStatus returns the code that is closest to m. UNAVAILABLE, which clients
// try again by themselves, is returned only where that is safe.
func grpcStatus(m meaning) int {
	const (
		codeUnknown, codeInvalidArgument, codeDeadlineExceeded = 2, 3, 4
		codePermissionDenied, codeResourceExhausted            = 7, 8
		codeUnavailable, codeUnauthenticated                   = 14, 16
	)
	switch {
	case m.class == resourceLimitExceeded:
		return codeResourceExhausted
	case m.retriable && m.status >= 500:
		return codeUnavailable
	case m.class == unauthenticated:
		return codeUnauthenticated
	case m.class == timedOut:
		return codeDeadlineExceeded
	case m.status == http.StatusForbidden, m.status == http.StatusUpgradeRequired:
		return codePermissionDenied
	case m.status < 500:
		return codeInvalidArgument
	}
	return codeUnknown
}

// grpcText returns s with what a grpc-message may not hold percent-encoded.
func grpcText(s string) string {
	var out strings.Builder
	for _, c := range []byte(s) {
		if c < ' ' || c > '~' || c == '%' {
			fmt.Fprintf(&out, "%%%02X", c)
			continue
		}
		out.WriteByte(c)
	}
	return out.String()
}
