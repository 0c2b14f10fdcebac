package spec

import (
	"errors"
	"net/netip"
	"strconv"
	"strings"
)

// HostPattern is one allowed host and port.
type HostPattern struct {
	Name     string // lower case; without "*." when Wildcard
	Port     uint16
	Wildcard bool // any one label before Name
}

// String is "host:port", with "*." before it for a wildcard.
func (h HostPattern) String() string {
	s := h.Name + ":" + strconv.Itoa(int(h.Port))
	if h.Wildcard {
		return "*." + s
	}
	return s
}

// reservedNames lead to the machine itself, or to nobody.
var reservedNames = []string{"localhost", "internal", "local", "invalid", "onion", "home.arpa", "localdomain"}

// ParseHost reads "host", "host:port", "*.host" or "*.host:port": a DNS name
// without scheme, path, userinfo or trailing dot, never an address and never
// a name that leads to the machine itself.
func ParseHost(s string) (HostPattern, error) {
	h := HostPattern{Port: 443}
	name, port, found := strings.Cut(s, ":")
	if found {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 || strconv.FormatUint(n, 10) != port {
			return h, errors.New(quote(s) + " has no port between 1 and 65535")
		}
		h.Port = uint16(n)
	}
	if rest, ok := strings.CutPrefix(name, "*."); ok {
		h.Wildcard, name = true, rest
	}
	h.Name = strings.ToLower(name)
	if _, err := netip.ParseAddr(h.Name); err == nil {
		return h, errors.New(quote(s) + " is an address; name the host")
	}
	if !isHostName(h.Name) {
		return h, errors.New(quote(s) + " is not a host name with an optional port")
	}
	for _, r := range reservedNames {
		if h.Name == r || strings.HasSuffix(h.Name, "."+r) {
			return h, errors.New(quote(s) + " leads to this machine or nowhere, and is never allowed")
		}
	}
	if h.Wildcard && !strings.Contains(h.Name, ".") {
		return h, errors.New(quote(s) + " covers a whole top-level domain")
	}
	return h, nil
}

func quote(s string) string { return strconv.Quote(s) }

// isHostName reports LDH labels of 1 to 63 bytes, 253 in all, at least two of
// them, the last not a number (which some resolvers read as an address).
func isHostName(s string) bool {
	if s == "" || len(s) > 253 || !strings.Contains(s, ".") {
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
	return strings.Trim(last, "0123456789") != "" && !strings.HasPrefix(last, "0x")
}
