package proxy

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/ALRubinger/aileron/internal/hostport"
	"github.com/ALRubinger/aileron/proxy/wire"
	"github.com/ALRubinger/aileron/spec"
)

// target makes the target of a request under its authority, or a denial. It
// never repairs: the bytes that it accepts are the bytes that are judged, sent
// and recorded. raw is the request target as it came.
//
// doubt is what in the target two servers might read differently, "" when it is
// canonical. Only a host that is allowed with all its paths may get such a
// target: no rule about paths can be evaded there, and real clients send them
// (npm an encoded slash, apt an escaped tilde).
func target(a Authority, scheme, method, raw, host string) (t spec.Target, doubt string, d *Denial) {
	path, absolute, ok := originForm(raw, scheme)
	if !ok {
		return spec.Target{}, "", ReasonMalformed.Deny("the request target is not a path")
	}
	for _, named := range []string{host, absolute} {
		if named == "" || named == a.Host && !a.Addr.IsValid() { // without a port: the authority's own name
			continue
		}
		if got, err := hostport.Parse(named, a.Port); err != nil || got != a {
			return spec.Target{}, "", ReasonAuthority.Deny("the Host is not the one that this connection was opened for")
		}
	}
	path, query, _ := strings.Cut(path, "?")
	doubt = ambiguous(path)
	switch {
	case doubt != "":
	case len(path) > maxPath:
		doubt = "the path is longer than 4096 bytes"
	case strings.IndexByte(query, ';') >= 0:
		doubt = "the query has a ';', which some servers read as '&'"
	}
	return spec.Target{Scheme: scheme, Host: a.Host, Port: a.Port, Method: method, Path: path, Query: query}, doubt, nil
}

const maxPath = 4096

// originForm splits a request target into path and query, and the authority where
// it is in the absolute form of the same scheme (RFC 9112 section 3.2.2).
func originForm(raw, scheme string) (path, authority string, ok bool) {
	if strings.HasPrefix(raw, "/") {
		return raw, "", true
	}
	rest, ok := strings.CutPrefix(raw, scheme+"://")
	if !ok {
		return "", "", false
	}
	i := strings.IndexAny(rest, "/?")
	if i < 0 {
		return "/", rest, rest != ""
	}
	if rest[i] == '?' {
		return "/" + rest[i:], rest[:i], i > 0
	}
	return rest[i:], rest[:i], i > 0
}

// ambiguous returns what in an escaped path two servers might read differently,
// "" when there is nothing. See SECURITY cases PTH-*: dot segments in any spelling,
// empty segments, encoded slashes, backslashes, NULs and control characters,
// path parameters that hide dots, broken or double escapes, escapes of
// characters that need none.
func ambiguous(path string) string {
	if path == "" || path[0] != '/' {
		return "the path does not begin with a slash"
	}
	for rest, more := path[1:], true; more; {
		var s string
		if s, rest, more = strings.Cut(rest, "/"); s == "" && more {
			return "the path has an empty segment"
		}
		if why := ambiguousSegment(s); why != "" {
			return why
		}
	}
	return ""
}

func ambiguousSegment(s string) string {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c != '%' {
			if strings.IndexByte("\\\"<>^`{|};#", c) >= 0 || c <= ' ' || c >= 0x7f {
				return "the path has a character that must be escaped or is read differently by servers"
			}
			continue
		}
		if i+2 >= len(s) || !isHex(s[i+1]) || !isHex(s[i+2]) {
			return "the path has a broken escape"
		}
		v := unhex(s[i+1])<<4 | unhex(s[i+2])
		switch {
		case v < 0x20 || v == 0x7f:
			return "the path has an escaped control character"
		case v == '/' || v == '\\':
			return "the path has an escaped slash"
		case v == '%':
			return "the path has an escaped percent sign"
		case v == '.' || v == '-' || v == '_' || v == '~' || isAlnum(v):
			return "the path escapes a character that needs no escape"
		}
		i += 2
	}
	if s == "." || s == ".." {
		return "the path has a dot segment"
	}
	if overlong(s) {
		return "the path has an escape that is not UTF-8"
	}
	return ""
}

// isPlainButSlashes reports whether a target is canonical but for escaped slashes in its path. Package spec judges
// those where an operation declares them.
func isPlainButSlashes(t spec.Target) bool {
	// A space, whose escape has as many bytes: no two halves of escapes meet.
	return ambiguous(strings.NewReplacer("%2F", "%20", "%2f", "%20").Replace(t.Path)) == "" &&
		len(t.Path) <= maxPath && strings.IndexByte(t.Query, ';') < 0
}

// overlong reports whether the escapes of s do not decode to valid UTF-8; overlong
// forms such as %c0%ae are among those.
func overlong(s string) bool {
	if strings.IndexByte(s, '%') < 0 {
		return false
	}
	return !utf8.ValidString(unescape(s))
}

// unescape decodes the escapes of s, which are well formed.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			b.WriteByte(unhex(s[i+1])<<4 | unhex(s[i+2]))
			i += 2
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func isAlnum(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

func unhex(c byte) byte {
	switch {
	case c >= 'a':
		return c - 'a' + 10
	case c >= 'A':
		return c - 'A' + 10
	}
	return c - '0'
}

// plainPath returns a denied target's path for the audit row: without the query,
// up to the first character that is not plain.
func plainPath(raw string) string {
	if i := strings.Index(raw, "://"); i >= 0 {
		raw = raw[i+3:]
		j := strings.IndexByte(raw, '/')
		if j < 0 {
			return ""
		}
		raw = raw[j:]
	}
	for i := range len(raw) {
		c := raw[i]
		if !isAlnum(c) && strings.IndexByte("/-._~", c) < 0 {
			return raw[:i]
		}
	}
	return raw[:min(len(raw), maxPath)]
}

// wholePath returns an allowed target's path for the audit row: what is not plain ASCII in it is escaped.
func wholePath(path string) string {
	if wire.IsPlain(path) {
		return path
	}
	var b strings.Builder
	for _, c := range []byte(path) {
		if c >= 0x7f {
			fmt.Fprintf(&b, "%%%02X", c)
			continue
		}
		b.WriteByte(c)
	}
	return b.String()
}

// RowPath returns the path of a target as an audit row has it.
func RowPath(path string) string { return wholePath(strings.TrimSuffix(path, "?")) }

// Authority is the one host and port of an exchange. It is made once, from
// the request line that opened the way (CONNECT or an absolute target), and
// is from then on the only input to policy, name resolution, dialling, SNI,
// certificate verification, the Host header, the choice of a credential and
// the audit row. Everything else that claims to name a host (SNI, Host,
// :authority) must agree with it or the request is denied.
type Authority = hostport.Authority
