package address

import (
	"net/netip"
	"slices"
	"testing"
)

func prefixes(texts ...string) (all []netip.Prefix) {
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

// An address that NAT64 translates is judged by what is embedded in it; what a name server announces makes nothing
// public that is not for translation alone.
func TestATranslatedAddressIsJudgedByTheEmbeddedOne(t *testing.T) {
	for _, c := range []struct {
		announced []netip.Prefix
		addr      string
		reason    string
	}{
		{nil, "64:ff9b::8c52:7903", ""},
		{nil, "64:ff9b::a9fe:a9fe", "nat64-embedded"},
		{nil, "64:ff9b::a00:1", "nat64-embedded"},
		{nil, "64:ff9b::7f00:1", "nat64-embedded"},
		{nil, "64:ff9b::8c52:7903%eth0", "zoned"},
		{nil, "64:ff9b:1::8c52:7903", "nat64-embedded"},
		{prefixes("64:ff9b:1::/96"), "64:ff9b:1::8c52:7903", ""},
		{prefixes("64:ff9b:1::/96"), "64:ff9b:1::a00:1", "nat64-embedded"},
		{prefixes("64:ff9b:1::/96"), "64:ff9b:1:0:0:1:8c52:7903", "nat64-embedded"}, // another network's
		{prefixes("64:ff9b:1::/48"), "64:ff9b:1:8c52:79:300::", ""},
		// A prefix of the operator's own: public before, and still only where the embedded address is.
		{nil, "2a00:1098:2b::a9fe:a9fe", ""},
		{prefixes("2a00:1098:2b::/96"), "2a00:1098:2b::a9fe:a9fe", "nat64-embedded"},
		{prefixes("2a00:1098:2b::/96"), "2a00:1098:2b::8c52:7903", ""},
		{prefixes("2a00:1098:2b::/96"), "2a00:1098:2c::a9fe:a9fe", ""},
		{prefixes("2a00:1098::/32"), "2a00:1098:a00:1::", "nat64-embedded"},
		{prefixes("2a00:1098:1::/40"), "2a00:1098:a:1::", "nat64-embedded"},
		{prefixes("2a00:1098:1:2::/64"), "2a00:1098:1:2:a:0:100::", "nat64-embedded"},
		// A hostile name server announces what covers this machine's networks.
		{prefixes("fd00::/96"), "fd00::8c52:7903", "unique-local"},
		{prefixes("fe80::/96"), "fe80::8c52:7903", "link-local"},
		{prefixes("::/96"), "::8c52:7903", "v4-compatible"},
		{prefixes("64:ff9b::/32"), "64:ff9b::a9fe:a9fe", "nat64-embedded"},
		{prefixes("64:ff9b::/32"), "64:ff9b:808:808::", "unassigned"},
		// or another length than that of the translator, whose /64 makes 10.0.0.1 of this.
		{prefixes("64:ff9b:1:0:a::/96"), "64:ff9b:1:0:a:0:100:0", "nat64-embedded"},
	} {
		got := Network{NAT64: c.announced}.Classify(netip.MustParseAddr(c.addr))
		if got.Reason != c.reason || got.Public != (c.reason == "") {
			t.Errorf("%s where %v is announced: %+v, want %q", c.addr, c.announced, got, c.reason)
		}
		addr := netip.MustParseAddr(c.addr)
		if c.announced != nil && got.Public != Classify(addr).Public && !(Network{}).DependsOnNAT64(addr) {
			t.Errorf("%s depends on what is announced", c.addr)
		}
	}
}

func TestWhatIsAnnouncedIsRead(t *testing.T) {
	for addr, want := range map[string][]netip.Prefix{
		"64:ff9b::c000:aa":          prefixes("64:ff9b::/96"),
		"2a00:1098:2b::c000:ab":     prefixes("2a00:1098:2b::/96"),
		"2a00:1098:c000:aa::":       prefixes("2a00:1098::/32"),
		"2a00:1098:1c0:0:aa::":      prefixes("2a00:1098:100::/40"),
		"2a00:1098:1:c000:0:aa00::": prefixes("2a00:1098:1::/48"),
		"2a00:1098:1:2c0:0:aa::":    prefixes("2a00:1098:1:200::/56"),
		"2a00:1098:1:2:c0:0:aa00::": prefixes("2a00:1098:1:2::/64"),
		"2a00:1098:1:2:3:4:5:6":     nil,
		"::ffff:192.0.0.170":        nil,
		"192.0.0.170":               nil,
	} {
		if got := NAT64Prefixes(netip.MustParseAddr(addr)); !slices.Equal(got, want) {
			t.Errorf("%s announces %v, want %v", addr, got, want)
		}
	}
}

func TestAnAllowedRangeAllowsNoMore(t *testing.T) {
	n := Network{Ranges: prefixes("100.64.0.0/10", "198.18.0.0/15", "fd00::/8"), NAT64: prefixes("fd00:64::/96")}
	for addr, reason := range map[string]string{
		"198.18.0.7": "", "100.64.0.1": "", "fd7a:115c:a1e0::1": "", "fd00:64::8c52:7903": "",
		"100.100.100.200": "metadata", "fd00:ec2::254": "metadata", "fd00:64::a9fe:a9fe": "nat64-embedded",
		"10.0.0.1": "private", "fc00::1": "unique-local", "127.0.0.1": "loopback", "198.20.0.1": "",
		"::ffff:198.18.0.7": "", "::ffff:10.0.0.1": "private",
	} {
		got := n.Classify(netip.MustParseAddr(addr))
		if got.Reason != reason || got.Public != (reason == "") {
			t.Errorf("Classify(%s) = %+v, want %q", addr, got, reason)
		}
	}
}

func TestOnlyRangesThatNetworksUseAsTheyLikeMayBeAllowed(t *testing.T) {
	for text, ok := range map[string]bool{
		"198.18.0.0/15": true, "198.18.0.0/16": true, "100.64.0.0/10": true, "10.1.0.0/16": true, "fc00::/18": true,
		"240.0.0.0/4": true, "10.0.0.7/8": true,
		"0.0.0.0/0": false, "10.0.0.0/7": false, "127.0.0.0/8": false, "169.254.0.0/16": false, "100.100.100.200/32": false,
		"169.254.169.254/32": false, "fe80::/10": false, "64:ff9b:1::/48": false, "8.8.8.0/24": false, "::/0": false,
		"224.0.0.0/4": false, "2002::/16": false, "": false, "198.18.0.1": false, "fd00:ec2::254/128": false,
	} {
		if p, err := ParseRange(text); (err == nil) != ok {
			t.Errorf("ParseRange(%q) = %v, %v", text, p, err)
		}
	}
}
