package gateway_test

import (
	"net/netip"
	"testing"

	"github.com/google/nftables"
)

// What no rule matches is dropped by policy, over IPv4 and IPv6. The rules that
// refuse it, and the lack of a route, are each enough alone as well.
func TestTheSealDropsByPolicyToo(t *testing.T) {
	sealed(t, func(t *testing.T, b *box) {
		b.start()
		c, err := nftables.New()
		if err != nil {
			t.Fatal(err)
		}
		for family, rules := range map[nftables.TableFamily]int{nftables.TableFamilyIPv4: 3, nftables.TableFamilyIPv6: 2} {
			chains, err := c.ListChainsOfTableFamily(family)
			if err != nil {
				t.Fatal(err)
			}
			found := false
			for _, chain := range chains {
				if chain.Name != "seal" {
					continue
				}
				found = true
				if chain.Policy == nil || *chain.Policy != nftables.ChainPolicyDrop {
					t.Errorf("family %v: the policy is not to drop: %+v", family, chain)
				}
				if chain.Hooknum == nil || *chain.Hooknum != *nftables.ChainHookOutput {
					t.Errorf("family %v: the chain does not see what leaves a process: %+v", family, chain)
				}
				if got, err := c.GetRules(chain.Table, chain); err != nil || len(got) != rules {
					t.Errorf("family %v: %d rules, %v; want %d, of which the last refuses", family, len(got), err, rules)
				}
			}
			if !found {
				t.Errorf("family %v has no chain of the seal", family)
			}
		}
	})
}

// RFC 6761 section 6.3.
func TestLocalhostIsTheSandboxItself(t *testing.T) {
	sealed(t, func(t *testing.T, b *box) {
		b.start()
		for _, name := range []string{"localhost", "app.localhost", "APP.LocalHost"} {
			if at := b.address(name); at != netip.MustParseAddr("127.0.0.1") {
				t.Errorf("%s is %s", name, at)
			}
		}
		if at := b.address("localhost.example"); at.IsLoopback() {
			t.Errorf("localhost.example is %s", at)
		}
	})
}
