package address

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
)

// Network is what is known of the network of this host. The zero value is nothing.
type Network struct {
	// NAT64 are the prefixes that the network announces (RFC 7050), see [NAT64Prefixes]. They are what a name server
	// says: they make no address public but those of the range that is for nothing else.
	NAT64 []netip.Prefix
	// Ranges are those that the user allows, see [ParseRange].
	Ranges []netip.Prefix
}

var (
	wellKnownNAT64 = netip.MustParsePrefix("64:ff9b::/96")   // RFC 6052
	localNAT64     = netip.MustParsePrefix("64:ff9b:1::/48") // RFC 8215: of any network, for translation alone

	// nat64Lengths are those that a prefix may have: RFC 6052 section 2.2.
	nat64Lengths = []int{32, 40, 48, 56, 64, 96}
)

// Classify returns the class of addr. An address that NAT64 translates is public only if the IPv4 address in it is.
func (n Network) Classify(addr netip.Addr) Class {
	class := classify(addr)
	if addr = addr.Unmap(); wellKnownNAT64.Contains(addr) && addr.Zone() == "" {
		if classify(embedded(addr, wellKnownNAT64.Bits())).Public {
			return Class{Public: true}
		}
		return class
	}
	if !class.Public && mayAllow(class.Reason) && slices.ContainsFunc(n.Ranges, contains(addr)) {
		class = Class{Public: true, Allowed: true}
	}
	for _, p := range n.NAT64 {
		switch {
		case !p.Contains(addr):
		case !classify(embedded(addr, p.Bits())).Public:
			return Class{Reason: "nat64-embedded"}
		case localNAT64.Contains(addr) && harmless(addr, localNAT64.Bits()):
			class = Class{Public: true}
		}
	}
	return class
}

// contains returns a function that reports whether a prefix contains addr.
func contains(addr netip.Addr) func(netip.Prefix) bool {
	return func(p netip.Prefix) bool { return p.Contains(addr) }
}

// embedded returns the IPv4 address in an address whose NAT64 prefix has so many bits (RFC 6052 section 2.2). Byte 8 is
// not a part of it, and what follows it is ignored, as translators ignore it.
func embedded(addr netip.Addr, bits int) netip.Addr {
	from, at, v4 := addr.As16(), bits/8, [4]byte{}
	for i := range v4 {
		if at == 8 {
			at++
		}
		v4[i] = from[at]
		at++
	}
	return netip.AddrFrom4(v4)
}

// harmless reports whether addr leads to no address that is not public, whatever the length of the prefix is, if it is
// not below least: a name server that announces another one than the translator's must not make it reach what is
// private. Nothing forwards to 0.0.0.0/8, which the zeros of a prefix look like.
func harmless(addr netip.Addr, least int) bool {
	return !slices.ContainsFunc(nat64Lengths, func(bits int) bool {
		class := classify(embedded(addr, bits))
		return bits >= least && !class.Public && class.Reason != "this-network"
	})
}

// DependsOnNAT64 reports whether the class of addr depends on the prefixes that the network announces.
func (n Network) DependsOnNAT64(addr netip.Addr) bool {
	switch {
	case addr.Is4(), addr.Is4In6(), wellKnownNAT64.Contains(addr):
		return false
	case localNAT64.Contains(addr):
		return harmless(addr, localNAT64.Bits())
	}
	return n.Classify(addr).Public && !harmless(addr, nat64Lengths[0])
}

// IPv4Only is the name that has the addresses of [IsIPv4Only] and no others, wherever it is asked for: RFC 7050.
const IPv4Only = "ipv4only.arpa."

// IsIPv4Only reports whether addr is an address of [IPv4Only].
func IsIPv4Only(addr netip.Addr) bool {
	return addr == netip.AddrFrom4([4]byte{192, 0, 0, 170}) || addr == netip.AddrFrom4([4]byte{192, 0, 0, 171})
}

// NAT64Prefixes returns the prefixes that an IPv6 address of [IPv4Only] announces.
func NAT64Prefixes(addr netip.Addr) (prefixes []netip.Prefix) {
	for _, bits := range nat64Lengths {
		if addr.Is6() && !addr.Is4In6() && IsIPv4Only(embedded(addr, bits)) {
			p, _ := addr.WithZone("").Prefix(bits)
			prefixes = append(prefixes, p)
		}
	}
	return prefixes
}

// mayAllow reports whether a user may allow ranges of blocks with a reason. This machine, its links, metadata services
// and addresses that embed others are not among them.
func mayAllow(reason string) bool {
	switch reason {
	case "private", "shared", "benchmarking", "reserved", "unique-local":
		return true
	}
	return false
}

// ParseRange returns a range of special addresses that a user allows, such as 198.18.0.0/15: a part of one block of the
// registries that is for networks to use as they like.
func ParseRange(s string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(s)
	if err != nil {
		return p, errors.New("it is no range in CIDR, such as 198.18.0.0/15")
	}
	p = p.Masked()
	switch class := classify(p.Addr()); {
	case class.Public || !class.Block.IsValid() || class.Block.Bits() > p.Bits():
		return p, errors.New("it is not within one block of special addresses")
	case !mayAllow(class.Reason):
		return p, fmt.Errorf("its addresses (%s) are never reached", class.Reason)
	}
	return p, nil
}
