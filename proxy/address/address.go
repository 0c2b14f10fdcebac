// Package address classifies IP addresses by whether the proxy may dial them.
// [Classify] returns a [Class]: public, which the IANA special-purpose registries
// leave to the public Internet, or the reason why not. This machine, its networks,
// metadata services and addresses that embed another address are not public. A
// [Network] is what is known of the network of this host: [Network.Classify] judges
// an address that NAT64 translates by the IPv4 address in it.
//
//	if class := address.Classify(addr); !class.Public {
//		return fmt.Errorf("dial: %s address", class.Reason)
//	}
//
// It resolves and dials nothing, so that the table can be reviewed by itself.
package address

import (
	_ "embed" // the registries below
	"net/netip"
	"strings"
	"sync"
)

// The registries, one block a line: prefix, reason, source. They follow the
// IANA IPv4 and IPv6 Special-Purpose Address Registries (RFC 6890 and its
// successors), completed by multicast, reserved space, the transition
// mechanisms that embed an IPv4 address, and well-known metadata services.
//
//go:embed special.csv
var special string

// Class is the class of an address. The zero value is not public.
type Class struct {
	Public  bool
	Reason  string       // "" when public
	Block   netip.Prefix // of the registries; not valid when public, or of none
	Allowed bool         // public because of the user's ranges alone
}

type block struct {
	prefix netip.Prefix
	reason string
}

var blocks = sync.OnceValue(func() []block {
	var all []block
	for line := range strings.Lines(special) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.SplitN(line, ",", 3)
		all = append(all, block{netip.MustParsePrefix(fields[0]), fields[1]})
	}
	return all
})

// Classify returns the class of addr where nothing is known of the network.
func Classify(addr netip.Addr) Class { return Network{}.Classify(addr) }

// classify returns the class of addr by the registries. IPv4 in IPv6 (RFC 4291 section 2.5.5.2) has
// the class of the IPv4 address; an address with a zone is never public.
func classify(addr netip.Addr) Class {
	if !addr.IsValid() {
		return Class{Reason: "invalid"}
	}
	if addr.Zone() != "" {
		return Class{Reason: "zoned"}
	}
	addr = addr.Unmap()
	for _, b := range blocks() {
		if b.prefix.Contains(addr) {
			return Class{Reason: b.reason, Block: b.prefix}
		}
	}
	// ISATAP (RFC 5214 section 6.1) hides an IPv4 address in any prefix.
	if addr.Is6() {
		b := addr.As16()
		if b[8]&0xfc == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe {
			return Class{Reason: "isatap-embedded"}
		}
		if !globalUnicast.Contains(addr) {
			return Class{Reason: "unassigned"}
		}
	}
	return Class{Public: true}
}

// globalUnicast is the block that IANA assigns from (RFC 4291 section 2.4).
var globalUnicast = netip.MustParsePrefix("2000::/3")
