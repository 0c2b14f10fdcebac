package proxy

import (
	"errors"
	"net/netip"
	"strconv"
	"strings"
)

// Authority is the one host and port of an exchange. It is made once, from
// the request line that opened the way (CONNECT or an absolute target), and
// is from then on the only input to policy, name resolution, dialling, SNI,
// certificate verification, the Host header, the choice of a credential and
// the audit row. Everything else that claims to name a host (SNI, Host,
// :authority) must agree with it or the exchange is refused.
type Authority struct {
	Host string     // lower case; a DNS name, or an address as netip prints it
	Port uint16     // never 0
	Addr netip.Addr // set when Host is an address
}

var errAuthority = errors.New("read the authority: it is not a plain host and port")

// ParseAuthority reads "host:port" as RFC 9110 section 7.2 has it, strictly:
// letters, digits and inner hyphens in labels of 1 to 63 bytes, 253 in all,
// no trailing dot, no empty label, no number in place of a name except a full
// dotted quad, IPv6 in brackets without a zone, no userinfo, no escapes, a
// port of 1 to 65535 without sign or leading zero. port is used when s has
// none; 0 means that s must have one (RFC 9110 section 9.3.6, for CONNECT).
func ParseAuthority(s string, port uint16) (Authority, error) {
	host := s
	if strings.HasPrefix(s, "[") {
		end := strings.IndexByte(s, ']')
		if end < 0 {
			return Authority{}, errAuthority
		}
		inner := s[1:end]
		addr, err := netip.ParseAddr(inner)
		if err != nil || !addr.Is6() || addr.Zone() != "" || strings.IndexByte(inner, '%') >= 0 {
			return Authority{}, errAuthority
		}
		port, ok := authorityPort(s[end+1:], port)
		if !ok {
			return Authority{}, errAuthority
		}
		return Authority{Host: addr.String(), Port: port, Addr: addr}, nil
	}
	if i := strings.IndexByte(s, ':'); i >= 0 {
		host = s[:i]
	}
	port, ok := authorityPort(s[len(host):], port)
	if !ok {
		return Authority{}, errAuthority
	}
	host = strings.ToLower(host)
	if addr, err := netip.ParseAddr(host); err == nil && addr.Is4() {
		return Authority{Host: addr.String(), Port: port, Addr: addr}, nil
	}
	if !isDNSName(host) {
		return Authority{}, errAuthority
	}
	return Authority{Host: host, Port: port}, nil
}

// authorityPort reads "" or ":port".
func authorityPort(s string, def uint16) (uint16, bool) {
	if s == "" {
		return def, def != 0
	}
	if s[0] != ':' || len(s) < 2 || len(s) > 6 || s[1] == '0' {
		return 0, false
	}
	for _, c := range s[1:] {
		if c < '0' || c > '9' {
			return 0, false
		}
	}
	n, err := strconv.ParseUint(s[1:], 10, 16)
	return uint16(n), err == nil && n > 0
}

func isDNSName(s string) bool {
	if s == "" || len(s) > 253 {
		return false
	}
	last := ""
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for _, c := range []byte(label) {
			if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
				return false
			}
		}
		last = label
	}
	// A name whose last label is a number would be read as an address by some
	// resolvers (WHATWG URL, "ends in a number"): 127.1, 0x7f000001.
	return !looksNumeric(last)
}

func looksNumeric(label string) bool {
	if hex, ok := strings.CutPrefix(label, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return strings.Trim(label, "0123456789") == ""
}

// String is "host:port", with an IPv6 address in brackets.
func (a Authority) String() string {
	host := a.Host
	if a.Addr.Is6() {
		host = "[" + host + "]"
	}
	return host + ":" + strconv.Itoa(int(a.Port))
}

// HostHeader is the value of Host for this authority: without the port when
// it is the scheme's own.
func (a Authority) HostHeader(scheme string) string {
	if scheme == "https" && a.Port == 443 || scheme == "http" && a.Port == 80 {
		if a.Addr.Is6() {
			return "[" + a.Host + "]"
		}
		return a.Host
	}
	return a.String()
}
