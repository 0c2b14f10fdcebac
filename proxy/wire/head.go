package wire

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
)

// ProtocolError is why a request head was rejected before it was parsed.
type ProtocolError struct {
	Status int    // the response's status code
	Reason string // what is wrong; contains no byte of the request
	Method string // the method, if readable
	Target string // the request target up to its first invalid byte, if readable
	Memory bool   // the session's memory budget is exhausted
}

// Exhausted returns the rejection of a request for which there is no memory.
func Exhausted() *ProtocolError {
	return &ProtocolError{Status: http.StatusTooManyRequests, Reason: "the session's memory budget is exhausted",
		Memory: true}
}

func (f *ProtocolError) Error() string { return "refuse the request head: " + f.Reason }

func malformed(format string, args ...any) *ProtocolError {
	return &ProtocolError{Status: http.StatusBadRequest, Reason: fmt.Sprintf(format, args...)}
}

// framing is what a validated head announces about its body.
type framing struct {
	chunked bool
	length  int64  // when not chunked; 0: no body
	minor   int    // HTTP/1.minor
	expects bool   // Expect: 100-continue
	host    string // the Host field
	fields  int    // how many header fields there are
}

// validate checks a raw head, its final empty line included, against a strict
// reading of RFC 9112, and returns how the body is framed. It accepts less than
// net/http does: no bare LF (section 2.2), no obs-fold (5.2), no white space
// before a colon (5.1), exactly one Host (3.2), no Content-Length beside
// Transfer-Encoding and no repeated Content-Length (6.3), no coding but a
// single "chunked" (6.1), no version but 1.0 and 1.1.
func validate(head string, limits Limits) (framing, *ProtocolError) {
	line, rest, _ := strings.Cut(head, "\r\n")
	f, perr := validateRequestLine(line, limits)
	if perr == nil {
		method, _, _ := strings.Cut(line, " ")
		perr = validateFields(rest, limits, method, &f)
	}
	if perr != nil {
		perr.Method, perr.Target = readable(line)
	}
	return f, perr
}

// checkPrefix checks an incomplete head. It reports whether the first line is
// complete and valid, and returns an error as soon as data cannot become a
// request.
func checkPrefix(data []byte, limits Limits) (certain bool, _ *ProtocolError) {
	line, _, whole := bytes.Cut(data, []byte("\n"))
	if !whole {
		method, _, spaced := bytes.Cut(line, []byte(" "))
		if !spaced {
			method = bytes.TrimSuffix(method, []byte("\r")) // perhaps half of an empty line
		}
		if len(method) > 32 || (spaced || len(method) > 0) && !isToken(method) {
			return false, malformed("the method is not a token")
		}
		return false, nil
	}
	text := string(bytes.TrimSuffix(line, []byte("\r")))
	if _, perr := validateRequestLine(text, limits); perr != nil {
		perr.Method, perr.Target = readable(text)
		return false, perr
	}
	return true, nil
}

func validateRequestLine(line string, limits Limits) (framing, *ProtocolError) {
	if len(line) > limits.Target+64 {
		return framing{}, &ProtocolError{Status: http.StatusRequestURITooLong, Reason: "the request target is too long"}
	}
	method, target, version, ok := splitRequestLine(line)
	if !ok {
		return framing{}, malformed("the request line is not METHOD SP TARGET SP VERSION")
	}
	if !isToken(method) || len(method) > 32 {
		return framing{}, malformed("the method is not a token")
	}
	if perr := validateTarget(target); perr != nil {
		return framing{}, perr
	}
	switch version {
	case "HTTP/1.1":
		return framing{minor: 1}, nil
	case "HTTP/1.0":
		return framing{minor: 0}, nil
	}
	return framing{}, &ProtocolError{Status: http.StatusHTTPVersionNotSupported,
		Reason: "the version is neither HTTP/1.1 nor HTTP/1.0"}
}

// splitRequestLine splits a request line at its two spaces, and reports false when
// it has fewer or more.
func splitRequestLine(line string) (method, target, version string, ok bool) {
	method, rest, _ := strings.Cut(line, " ")
	target, version, ok = strings.Cut(rest, " ")
	return method, target, version, ok && strings.IndexByte(version, ' ') < 0
}

func validateFields(rest string, limits Limits, method string, f *framing) *ProtocolError {
	hosts, lengths, codings := 0, 0, 0
	for {
		line, after, found := strings.Cut(rest, "\r\n")
		if !found {
			return malformed("the head does not end with an empty line")
		}
		if len(line) == 0 {
			break
		}
		rest = after
		if f.fields++; f.fields > limits.Fields {
			return &ProtocolError{Status: http.StatusRequestHeaderFieldsTooLarge, Reason: "there are too many header fields"}
		}
		name, value, colon := strings.Cut(line, ":")
		if !colon || !isToken(name) {
			return malformed("a header field's name is not a token followed by a colon")
		}
		if HasControl(value) {
			return malformed("a header field's value has a control character")
		}
		text := TrimBlanks(value)
		switch {
		case strings.EqualFold(name, "Host"):
			hosts++
			f.host = text
		case strings.EqualFold(name, "Content-Length"):
			lengths++
			n, ok := Digits(text)
			if !ok {
				return malformed("Content-Length is not a number")
			}
			f.length = n
		case strings.EqualFold(name, "Transfer-Encoding"):
			codings++
			if !strings.EqualFold(text, "chunked") {
				return &ProtocolError{Status: http.StatusNotImplemented, Reason: "a transfer coding is not \"chunked\" alone"}
			}
			f.chunked = true
		case strings.EqualFold(name, "Expect"):
			if !strings.EqualFold(text, "100-continue") {
				return &ProtocolError{Status: http.StatusExpectationFailed, Reason: "an expectation is not \"100-continue\""}
			}
			f.expects = f.minor == 1
		}
	}
	switch {
	case hosts > 1:
		return malformed("there is more than one Host")
	case hosts == 1 && f.host == "":
		return malformed("the Host is empty")
	case hosts == 0 && f.minor == 1:
		return malformed("there is no Host")
	case lengths > 1:
		return malformed("there is more than one Content-Length")
	case codings > 1:
		return malformed("there is more than one Transfer-Encoding")
	case codings > 0 && lengths > 0:
		return malformed("there are both a Content-Length and a Transfer-Encoding")
	case codings > 0 && f.minor == 0:
		return malformed("there is a Transfer-Encoding in HTTP/1.0")
	case method == http.MethodConnect && (lengths > 0 || codings > 0):
		return malformed("CONNECT has no body, and this one announces one")
	case limits.Body > 0 && f.length > limits.Body:
		return &ProtocolError{Status: http.StatusRequestEntityTooLarge, Reason: "the request body is too large"}
	}
	return nil
}

// Readable returns the method and the target of a rejected request for the audit
// event: each is cut at its first byte that is not printable ASCII.
func Readable(method, target string) (string, string) {
	return readable(method + " " + target)
}

// IsMethod reports whether s is an accepted method: a token of at most 32 bytes.
func IsMethod(s string) bool { return len(s) <= 32 && isToken(s) }

// IsTarget reports whether s can be a request target: no blank, no control
// character, no fragment. Bytes beyond ASCII may be in it, as clients send what
// their users type; whether they may stay is for the one who judges the target.
func IsTarget(s string) bool { return validateTarget(s) == nil }

// IsPlain reports whether s is ASCII without blanks and control characters.
func IsPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f {
			return false
		}
	}
	return true
}

func validateTarget(target string) *ProtocolError {
	if len(target) == 0 {
		return malformed("the request target is empty")
	}
	for i := range len(target) {
		c := target[i]
		if c <= ' ' || c == 0x7f {
			return malformed("the request target has a blank or a control character")
		}
		if c == '#' {
			return malformed("the request target has a fragment")
		}
	}
	return nil
}

// readable is the method and the target of a request line for the audit row:
// each stops at its first byte that is not plain.
func readable(line string) (method, target string) {
	m, rest, _ := strings.Cut(line, " ")
	if isToken(m) && len(m) <= 32 {
		method = m
	}
	target, _, _ = strings.Cut(rest, " ")
	for i := range len(target) {
		if c := target[i]; c <= ' ' || c >= 0x7f || i >= 4096 {
			target = target[:i]
			break
		}
	}
	return strings.Clone(method), strings.Clone(target) // they outlive the head
}

// Digits parses 1*DIGIT without sign or leading zeros, up to 18 of them.
func Digits(s string) (int64, bool) {
	if s == "" || len(s) > 18 || s[0] == '0' && len(s) > 1 {
		return 0, false
	}
	var n int64
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}
