// Package h2 serves HTTP/2 (RFC 9113) to the sandbox. It parses requests strictly
// and writes every response with framing of its own, as package wire does for
// HTTP/1.1.
//
// [Serve] serves one connection. It calls [Handler.Answer] for each request, and
// [Handler.Refuse] for each stream that it rejects before that.
//
// golang.org/x/net/http2 reads the frames and decodes the fields. Its server is
// not used, because it resets a malformed stream, and responds to a field section
// that is too large, without a call to any handler. Here every stream that a
// client opens reaches the [Handler], as a request or as a rejection, so that it
// can be recorded.
//
// A response is read from upstream only as far as the client's windows allow.
// Nothing is queued for a client that does not read: settings and pings are
// acknowledged by the goroutine that reads, so a flood of them blocks itself, and
// what its connection then holds counts in the session's budget. Streams that are
// closed before their handlers have returned are bounded like open ones, so a
// flood of resets (CVE-2023-44487, CVE-2025-8671) is rejected. A client that keeps
// to the limit is not: a stream stops counting before the frame that closes it is
// sent.
//
// Server push, extended CONNECT (RFC 8441) and priorities are not offered.
package h2
