// Package hostport has the one rule for host names, ports and authorities.
//
// Every name that policy, DNS, dialling or certificate verification sees has
// passed through [ParseName], alone or as part of an authority that [Parse]
// returned: names in connector specifications, in request targets and Host
// fields, in configuration and flags, and in the DNS queries of a sandbox. Two
// readers that disagree about a name are how a request for one host reaches
// another, so the rule is strict: what could be read in two ways is refused and
// never repaired.
//
// Callers may add restrictions (a connector names no address and no host with
// a single label), but none accepts what this package refuses.
package hostport

import (
	"errors"
	"net/netip"
	"strconv"
	"strings"
)

// Authority is a canonical host and port. Two authorities are the same host and
// port if and only if they are equal with ==.
type Authority struct {
	Host string     // a name in lower case, or an address as netip prints it
	Port uint16     // 1 to 65535 in an Authority that Parse returned
	Addr netip.Addr // the address, if Host is one
}

var (
	errPort    = errors.New("its port is not a number between 1 and 65535")
	errNoPort  = errors.New("it has no port")
	errBracket = errors.New("its brackets do not hold an IPv6 address without a zone")
)

// Parse reads "host" or "host:port", as in RFC 3986 section 3.2 and RFC 9110
// section 7.2 but without user information and escapes. A host is a name that
// [ParseName] accepts, an IPv4 address as four decimal numbers without leading
// zeros, or an IPv6 address in brackets without a zone. A port has no sign and
// no leading zero.
//
// Parse uses defaultPort if s has no port. If defaultPort is 0, s must have
// one, as the target of a CONNECT must (RFC 9110 section 9.3.6).
//
// An error states which rule s breaks and does not contain s, which may hold a
// password.
func Parse(s string, defaultPort uint16) (Authority, error) {
	if inner, ok := strings.CutPrefix(s, "["); ok {
		return parseBracketed(inner, defaultPort)
	}
	host, rest := s, ""
	if i := strings.IndexByte(s, ':'); i >= 0 {
		host, rest = s[:i], s[i:]
	}
	port, err := parseOptionalPort(rest, defaultPort)
	if err != nil {
		return Authority{}, err
	}
	if addr, err := netip.ParseAddr(host); err == nil && addr.Is4() {
		return Authority{Host: addr.String(), Port: port, Addr: addr}, nil
	}
	name, err := ParseName(host)
	if err != nil {
		return Authority{}, err
	}
	return Authority{Host: name, Port: port}, nil
}

// parseBracketed reads what follows the "[" of an IPv6 authority.
func parseBracketed(s string, defaultPort uint16) (Authority, error) {
	inner, rest, ok := strings.Cut(s, "]")
	if !ok {
		return Authority{}, errBracket
	}
	addr, err := netip.ParseAddr(inner)
	if err != nil || !addr.Is6() || addr.Zone() != "" || strings.IndexByte(inner, '%') >= 0 {
		return Authority{}, errBracket
	}
	port, err := parseOptionalPort(rest, defaultPort)
	if err != nil {
		return Authority{}, err
	}
	return Authority{Host: addr.String(), Port: port, Addr: addr}, nil
}

// parseOptionalPort reads "" or ":port".
func parseOptionalPort(s string, defaultPort uint16) (uint16, error) {
	switch {
	case s == "" && defaultPort == 0:
		return 0, errNoPort
	case s == "":
		return defaultPort, nil
	case s[0] != ':':
		return 0, errPort
	}
	return ParsePort(s[1:])
}

// ParsePort reads a port of 1 to 65535 in its only spelling: decimal digits
// without a sign or a leading zero.
func ParsePort(s string) (uint16, error) {
	if s == "" || s[0] < '1' || s[0] > '9' {
		return 0, errPort
	}
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil {
		return 0, errPort
	}
	return uint16(n), nil
}

// String returns "host:port", with an IPv6 address in brackets.
func (a Authority) String() string {
	return a.bracketed() + ":" + strconv.Itoa(int(a.Port))
}

// HostHeader returns the value of the Host field for a request to a: without
// the port if it is the default port of scheme, "http" or "https".
func (a Authority) HostHeader(scheme string) string {
	if scheme == "https" && a.Port == 443 || scheme == "http" && a.Port == 80 {
		return a.bracketed()
	}
	return a.String()
}

func (a Authority) bracketed() string {
	if a.Addr.Is6() {
		return "[" + a.Host + "]"
	}
	return a.Host
}

// The bounds of RFC 1035 section 2.3.4, in the text form without a dot at the end.
const (
	maxName  = 253
	maxLabel = 63
)

var (
	errNameLength   = errors.New("it is empty or longer than 253 bytes")
	errLabelLength  = errors.New("it has an empty label, or one of more than 63 bytes")
	errLabelHyphen  = errors.New("it has a label that begins or ends with a hyphen")
	errNameByte     = errors.New("it has a character other than a letter, a digit, a hyphen, an underscore or a dot")
	errNameIsNumber = errors.New("it ends in a number, which resolvers may read as an address")
)

// ParseName returns the host name s in its canonical form, lower case.
//
// It accepts the names of RFC 1123 section 2.1: labels of letters, digits and
// inner hyphens, each of 1 to 63 bytes, 253 bytes in all. One label is a name.
// Underscores are letters, as they are to DNS and TLS: buckets and previews have
// them. A dot at the end, as DNS writes a full name, is no part of the canonical
// form: both are the same host. An internationalised name is written in its A-label form of RFC
// 5890 (xn--…): a Unicode name is refused, as two programs may map it to two
// names.
//
// A name whose last label is a number, decimal or 0x with hexadecimal digits,
// is refused, whatever stands before it. Some resolvers read such a name as an
// IPv4 address (127.1, 0x7f000001, 0177.0.0.1); this is the "ends in a number"
// rule of the WHATWG URL standard. ParseName accepts no address at all.
//
// An error states which rule s breaks and does not contain s.
func ParseName(s string) (string, error) {
	s = strings.TrimSuffix(s, ".")
	if s == "" || len(s) > maxName {
		return "", errNameLength
	}
	last := ""
	for label := range strings.SplitSeq(s, ".") {
		if err := checkLabel(label); err != nil {
			return "", err
		}
		last = label
	}
	if isNumber(last) {
		return "", errNameIsNumber
	}
	// Only now: lower-casing before the check would make "k" of the Kelvin sign.
	return strings.ToLower(s), nil
}

// checkLabel returns an error unless label is one of a host name.
func checkLabel(label string) error {
	if label == "" || len(label) > maxLabel {
		return errLabelLength
	}
	if label[0] == '-' || label[len(label)-1] == '-' {
		return errLabelHyphen
	}
	for _, c := range []byte(label) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return errNameByte
		}
	}
	return nil
}

// isNumber reports whether an IPv4 parser may read label as a number: decimal
// or octal digits, or 0x with hexadecimal digits or none.
func isNumber(label string) bool {
	if hex, ok := strings.CutPrefix(strings.ToLower(label), "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return strings.Trim(label, "0123456789") == ""
}
