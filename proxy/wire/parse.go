package wire

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"
)

var errHead = errors.New("parse the request head: the target or a field cannot be read")

// parse returns the request of a validated head, with the meaning that net/http
// gives it: a test holds the two against each other. All its strings are parts of
// head. It fails for a target that is no URL, and where the Trailer field names
// one that frames the body (RFC 9110 section 6.5.1).
func parse(ctx context.Context, head string, f framing) (*http.Request, error) {
	line, fields, _ := strings.Cut(head, "\r\n")
	method, target, version, _ := splitRequestLine(line)
	u, err := parseTarget(method, target)
	if err != nil {
		return nil, errHead
	}
	header := parseFields(fields, f.fields, true) // the Host is in the request's Host alone
	if f.chunked {
		delete(header, "Transfer-Encoding")
		if namesFraming(header["Trailer"]) {
			return nil, errHead
		}
		delete(header, "Trailer")
	}
	if pragma := header["Pragma"]; len(pragma) > 0 && pragma[0] == "no-cache" && header["Cache-Control"] == nil {
		header["Cache-Control"] = []string{"no-cache"} // RFC 9111 section 5.4
	}
	return (&http.Request{Method: method, URL: u, RequestURI: target, Header: header, Host: f.host,
		Proto: version, ProtoMajor: 1, ProtoMinor: f.minor}).WithContext(ctx), nil
}

// parseTarget returns the URL of a request target. That of CONNECT is an authority
// alone (RFC 9112 section 3.2.3), unless it begins as a path does.
func parseTarget(method, target string) (*url.URL, error) {
	if method != http.MethodConnect || target[0] == '/' {
		return url.ParseRequestURI(target)
	}
	u, err := url.ParseRequestURI("http://" + target)
	if err == nil {
		u.Scheme = ""
	}
	return u, err
}

// ParseFields returns the n fields of a validated head under their canonical
// names. The values share one array. Names that [CanonicalizeNames] has seen are
// parts of rest, as values are.
func ParseFields(rest string, n int) http.Header { return parseFields(rest, n, false) }

func parseFields(rest string, n int, skipHost bool) http.Header {
	size := n
	if skipHost {
		size--
	}
	header, values := make(http.Header, max(0, size)), make([]string, n)
	for i := range values {
		line, after, _ := strings.Cut(rest, "\r\n")
		rest = after
		name, value, _ := strings.Cut(line, ":")
		if value = TrimBlanks(value); !isCanonical(name) {
			name = textproto.CanonicalMIMEHeaderKey(name)
		}
		if skipHost && name == "Host" {
			continue
		}
		if more := header[name]; more != nil {
			header[name] = append(more, value)
			continue
		}
		values[i] = value
		header[name] = values[i : i+1 : i+1] // an append to it allocates
	}
	return header
}

// CanonicalizeNames changes the names of fields to their canonical case, in place, so
// that no copy of a name is needed. It takes the lines of a head before they are
// validated, and leaves what is no field as it is. It returns the length of the whole
// lines, up to the first empty one and with it.
func CanonicalizeNames(lines []byte) (length int) {
	for {
		rest := lines[length:]
		end := bytes.IndexByte(rest, '\n')
		if end < 0 {
			return length
		}
		length += end + 1
		if end == 1 && rest[0] == '\r' {
			return length
		}
		if colon := bytes.IndexByte(rest[:end], ':'); colon > 0 && isToken(rest[:colon]) {
			canonicalize(rest[:colon])
		}
	}
}

// isCanonical reports whether name is a token in its canonical case, as nearly every name
// is that [CanonicalizeNames] has seen.
func isCanonical(name string) bool {
	upper := true // the next letter
	for i := range len(name) {
		c := name[i]
		if !tokenBytes[c] || upper && c >= 'a' && c <= 'z' || !upper && c >= 'A' && c <= 'Z' {
			return false
		}
		upper = c == '-'
	}
	return true
}

func canonicalize(name []byte) {
	upper := true // the next letter
	for i, c := range name {
		switch {
		case upper && c >= 'a' && c <= 'z':
			name[i] = c - 'a' + 'A'
		case !upper && c >= 'A' && c <= 'Z':
			name[i] = c - 'A' + 'a'
		}
		upper = c == '-'
	}
}

// namesFraming reports whether a Trailer field announces one that would change how
// the body is read.
func namesFraming(trailer []string) bool {
	for _, line := range trailer {
		for name := range strings.SplitSeq(line, ",") {
			switch textproto.CanonicalMIMEHeaderKey(strings.Trim(name, " \t")) {
			case "Transfer-Encoding", "Trailer", "Content-Length":
				return true
			}
		}
	}
	return false
}
