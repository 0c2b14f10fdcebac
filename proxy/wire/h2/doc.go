// Package h2 speaks HTTP/2 (RFC 9113) to the box: it reads requests strictly
// and writes responses plainly, as package wire does for HTTP/1.1.
//
// golang.org/x/net/http2 reads the frames and decodes the fields; its server
// is not used, because it resets a malformed stream, and answers a field
// section that is too large, without telling anyone. Here every stream that a
// client opens reaches the Handler, as a request or as a refusal, so that it
// can be written down.
//
// An answer is read from upstream only as far as its client's windows reach.
// Nothing is queued for a client that does not read: settings and pings are
// acknowledged by the goroutine that reads, so a flood of them stops itself, and
// what its connection then holds counts in the session's budget,
// and streams that are closed before their handlers have returned are bounded
// like open ones, so a flood of resets (CVE-2023-44487, CVE-2025-8671) is
// refused. A client that keeps to the limit is not: a stream stops counting
// before the frame that closes it leaves.
// Server push, extended CONNECT (RFC 8441) and priorities are not offered.
package h2
