package upstream

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/proxy/address"
)

func addrs(texts ...string) (all []netip.Addr) {
	for _, text := range texts {
		all = append(all, netip.MustParseAddr(text))
	}
	return all
}

func TestASurveyShowsWhatANetworkDoes(t *testing.T) {
	wellKnown := netip.MustParsePrefix("64:ff9b::/96")
	for name, c := range map[string]struct {
		found []netip.Addr
		nat64 []netip.Prefix
		fake  string
	}{
		"an ordinary one":         {addrs("192.0.0.170", "192.0.0.171"), nil, ""},
		"NAT64":                   {addrs("64:ff9b::c000:aa", "64:ff9b::c000:ab"), []netip.Prefix{wellKnown}, ""},
		"a local proxy":           {addrs("198.18.0.9"), nil, "198.18.0.0/15"},
		"the same, in both":       {addrs("fc00::9", "198.18.0.9"), nil, "198.18.0.0/15"},
		"one that knows the name": {addrs("192.0.0.170", "198.18.0.9"), nil, ""},
		"a portal":                {addrs("93.184.215.14"), nil, ""},
		"nothing":                 {nil, nil, ""},
	} {
		got := read(c.found)
		got.NAT64 = slices.Compact(got.NAT64)
		if fake := got.Fake; !slices.Equal(got.NAT64, c.nat64) || fake.IsValid() != (c.fake != "") ||
			c.fake != "" && fake.String() != c.fake {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// surveyed returns a client whose network was surveyed.
func surveyed(t *testing.T, s Survey, opts Options) *Client {
	t.Helper()
	u, err := New(opts)
	must.Do(t, err)
	u.surveys.last, u.surveys.at = s, time.Now()
	return u
}

// Where the network announces NAT64, both checks judge what is embedded.
func TestAnAddressBehindAnAnnouncedPrefixIsJudged(t *testing.T) {
	u := surveyed(t, Survey{NAT64: []netip.Prefix{netip.MustParsePrefix("2a00:1098:2b::/96")}}, Options{})
	for host, class := range map[string]string{
		"2a00:1098:2b::a9fe:a9fe": "nat64-embedded", "2a00:1098:2b::8c52:7903": "", "64:ff9b::8c52:7903": "",
		"64:ff9b::a00:1": "nat64-embedded", "64:ff9b:1::8c52:7903": "nat64-embedded",
	} {
		_, resolved := u.addresses(t.Context(), host)
		for _, err := range []error{resolved, u.denyPrivate(t.Context(), "tcp", "["+host+"]:443", nil)} {
			var denied *addressError
			if errors.As(err, &denied) != (class != "") || denied != nil && denied.class != class {
				t.Errorf("%s: %v, want %q", host, err, class)
			}
		}
	}
}

// A resolver that fails takes no prefix back.
func TestWhatANetworkAnnouncedStaysInForceWhileItsResolverFails(t *testing.T) {
	u := surveyed(t, Survey{NAT64: []netip.Prefix{netip.MustParsePrefix("2a00:1098:2b::/96")}}, Options{})
	u.resolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("no name server")
	}}
	u.surveys.at = time.Now().Add(-time.Hour)
	for range 2 { // the second asks for no survey
		var denied *addressError
		if _, err := u.addresses(t.Context(), "2a00:1098:2b::a9fe:a9fe"); !errors.As(err, &denied) || !u.surveys.failed {
			t.Errorf("a metadata service behind NAT64: %v, failed %t", err, u.surveys.failed)
		}
	}
}

// The denial names the range if every name leads there, and only then.
func TestARangeIsOfferedWhereAllNamesLeadThere(t *testing.T) {
	block := netip.MustParsePrefix("198.18.0.0/15")
	for host, s := range map[string]Survey{
		"198.18.0.9:443": {Fake: block}, "198.18.0.8:443": {}, "100.64.0.1:443": {Fake: block},
		"10.0.0.1:443": {Fake: netip.MustParsePrefix("10.0.0.0/8")},
	} {
		_, err := surveyed(t, s, Options{}).Dial(t.Context(), host)
		var e *Error
		if !errors.As(err, &e) || e.Kind != AddressDenied || e.Range.IsValid() != (host == "198.18.0.9:443") {
			t.Errorf("%s where the survey is %+v: %#v", host, s, e)
		}
	}
}

// A range that the user allows has no address of this machine in it.
func TestAnAddressOfThisMachineIsNotReachedByARange(t *testing.T) {
	own, err := net.InterfaceAddrs()
	must.Do(t, err)
	for _, a := range own {
		at, _ := netip.AddrFromSlice(a.(*net.IPNet).IP)
		at = at.Unmap()
		class := address.Classify(at)
		if class.Public || !class.Block.IsValid() {
			continue
		}
		n := address.Network{Ranges: []netip.Prefix{class.Block}}
		if got := judge(n, at); got.Public {
			t.Errorf("an address of this machine (%s) is %+v", class.Reason, got)
		}
	}
	if !isOwn(netip.MustParseAddr("127.0.0.1")) || isOwn(netip.MustParseAddr("198.18.0.9")) {
		t.Error("the addresses of this machine are not known")
	}
	u := surveyed(t, Survey{}, Options{Ranges: []netip.Prefix{netip.MustParsePrefix("198.18.0.0/15")}})
	if got, err := u.addresses(t.Context(), "198.18.0.9"); err != nil || len(got) != 1 {
		t.Errorf("an allowed address: %v, %v", got, err)
	}
	if err := u.denyPrivate(t.Context(), "tcp", "198.18.0.9:443", nil); err != nil {
		t.Errorf("an allowed address is not dialled: %v", err)
	}
}
