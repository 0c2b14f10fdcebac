package address

import (
	"net/netip"
	"testing"
)

func TestEachKindOfAddressHasItsReason(t *testing.T) {
	for addr, want := range map[string]string{
		"93.184.215.14": "", "1.1.1.1": "", "2606:4700::1111": "", "192.0.1.1": "", "172.32.0.1": "",
		"223.255.255.255": "", "127.0.0.1": "loopback", "127.255.255.254": "loopback", "::1": "loopback",
		"0.0.0.0": "this-network", "::": "unspecified",
		"10.1.2.3": "private", "172.31.255.255": "private", "192.168.0.1": "private", "100.64.0.1": "shared",
		"169.254.169.254": "metadata", "169.254.1.1": "link-local", "fd00:ec2::254": "metadata", "168.63.129.16": "metadata",
		"::ffff:169.254.169.254": "metadata", "::ffff:7f00:1": "loopback", "::127.0.0.1": "v4-compatible",
		"64:ff9b::a9fe:a9fe": "nat64-embedded", "64:ff9b:1::a00:1": "nat64-embedded", "2002:a9fe:a9fe::1": "6to4-embedded",
		"2001:0:4136:e378:8000:63bf:3fff:fdd2": "teredo-embedded", "2606::5efe:a00:1": "isatap-embedded",
		"2606::200:5efe:a00:1": "isatap-embedded",
		"224.0.0.1":            "multicast", "ff02::1": "multicast", "240.0.0.1": "reserved", "255.255.255.255": "reserved",
		"198.18.0.1": "benchmarking", "192.0.2.1": "documentation", "2001:db8::1": "documentation", "fc00::1": "unique-local",
		"fe80::1": "link-local", "fe80::1%eth0": "zoned", "4000::1": "unassigned",
	} {
		if got := Classify(netip.MustParseAddr(addr)); got.Reason != want || got.Public != (want == "") {
			t.Errorf("Classify(%s) = %+v, want %q", addr, got, want)
		}
	}
	if Classify(netip.Addr{}).Public {
		t.Error("no address is public")
	}
}

func FuzzNothingSpecialIsPublic(f *testing.F) {
	f.Add([]byte{10, 0, 0, 1})
	f.Fuzz(func(t *testing.T, raw []byte) {
		addr, ok := netip.AddrFromSlice(raw)
		if !ok {
			return
		}
		special := addr.IsPrivate() || addr.IsLoopback() || addr.IsMulticast() || addr.IsLinkLocalUnicast() ||
			addr.IsUnspecified()
		if special && Classify(addr).Public {
			t.Errorf("%v is public", addr)
		}
		if m := addr.Unmap(); Classify(m).Public != Classify(addr).Public {
			t.Errorf("%v and %v differ", addr, m)
		}
	})
}

func BenchmarkClassify(b *testing.B) {
	addr := netip.MustParseAddr("93.184.215.14")
	b.ReportAllocs()
	for b.Loop() {
		Classify(addr)
	}
}
