// Package hosts reads the hosts that a connector names, each a pattern of a name and a port:
//
//	h, err := hosts.Parse("*.example.com:8443")
package hosts

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/ALRubinger/aileron/internal/hostport"
)

// Pattern is an allowed host and port.
type Pattern struct {
	Name     string // lower case; without "*." when Wildcard
	Port     uint16
	Wildcard bool // any one label before Name
}

// String returns "host:port", with "*." before it for a wildcard.
func (h Pattern) String() string {
	s := h.Name + ":" + strconv.Itoa(int(h.Port))
	if h.Wildcard {
		return "*." + s
	}
	return s
}

// Covers reports whether the pattern is for a host, in lower case, and a port.
func (h Pattern) Covers(host string, port uint16) bool {
	if h.Port != port {
		return false
	}
	if !h.Wildcard {
		return h.Name == host
	}
	label, parent, ok := strings.Cut(host, ".")
	return ok && label != "" && parent == h.Name
}

// reservedNames lead to the machine itself or nowhere (RFC 6761, RFC 6762).
var reservedNames = []string{"localhost", "internal", "local", "invalid", "onion", "home.arpa", "localdomain"}

// Parse reads "host", "host:port", "*.host" or "*.host:port". The host is a
// name of at least two labels that [hostport.ParseName] accepts: never an
// address and never a name that leads to the machine itself.
func Parse(s string) (Pattern, error) {
	h := Pattern{Port: 443}
	if scheme, rest, isURL := strings.Cut(s, "://"); isURL && scheme != "" {
		name, _, _ := strings.Cut(rest, "/")
		return h, fmt.Errorf("%s is a URL; name the host alone, as in %s", quote(s), quote(name))
	}
	if name, _, isPath := strings.Cut(s, "/"); isPath && name != "" {
		return h, fmt.Errorf("%s has a path; name the host alone, as in %s", quote(s), quote(name))
	}
	name, port, found := strings.Cut(s, ":")
	if found {
		n, err := hostport.ParsePort(port)
		if err != nil {
			return h, errors.New(quote(s) + " has no port between 1 and 65535")
		}
		h.Port = n
	}
	name, h.Wildcard = strings.CutPrefix(name, "*.")
	if _, err := netip.ParseAddr(name); err == nil {
		return h, errors.New(quote(s) + " is an address; name the host")
	}
	name, err := hostport.ParseName(name)
	if err != nil {
		return h, fmt.Errorf("%s is not a host name with an optional port: %w", quote(s), err)
	}
	h.Name = name
	return h, h.checkName(s)
}

// checkName returns an error if h, written as s, is a name that no connector
// may have.
func (h Pattern) checkName(s string) error {
	for _, r := range reservedNames {
		if h.Name == r || strings.HasSuffix(h.Name, "."+r) {
			return errors.New(quote(s) + " leads to this machine or nowhere, and is never allowed")
		}
	}
	if strings.Contains(h.Name, ".") {
		return nil
	}
	if h.Wildcard {
		return errors.New(quote(s) + " covers a whole top-level domain")
	}
	// The resolver's search list would choose the host that gets the credential.
	return errors.New(quote(s) + " is a host name of one label; write the full name")
}

func quote(s string) string { return strconv.Quote(s) }

// Parent returns the wildcard that covers the host of h. A wildcard has none.
func (h Pattern) Parent() (Pattern, bool) {
	_, name, ok := strings.Cut(h.Name, ".")
	return Pattern{Name: name, Port: h.Port, Wildcard: true}, ok && !h.Wildcard
}

// ParseDeclared reads a host of a specification, in which each has one spelling: it has no final dot.
func ParseDeclared(s string) (Pattern, error) {
	if name, _, _ := strings.Cut(s, ":"); len(name) > 1 && strings.HasSuffix(name, ".") {
		return Pattern{}, fmt.Errorf("%s has a final dot; write %s", quote(s), quote(strings.TrimRight(name, ".")))
	}
	return Parse(s)
}
