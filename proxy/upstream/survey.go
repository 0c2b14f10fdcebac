package upstream

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/ALRubinger/aileron/proxy/address"
)

// Survey is what a name whose addresses are known shows of the network of this host.
type Survey struct {
	NAT64 []netip.Prefix // of NAT64, as the network announces them (RFC 7050)
	// Fake is the block from which its resolver answers every name: a local proxy, which then gets the connections.
	// It is not valid if there is none.
	Fake netip.Prefix
}

// surveys keeps the last survey.
type surveys struct {
	mu     sync.Mutex
	last   Survey
	at     time.Time
	failed bool
}

// How long a survey is valid, and one that failed. The machine may move to another network.
const (
	surveyFor   = 10 * time.Minute
	noSurveyFor = 10 * time.Second
)

func (s *surveys) lasts() time.Duration {
	if s.failed {
		return noSurveyFor
	}
	return surveyFor
}

// Survey asks the host's resolver for a name whose addresses are known. With an error, it returns the last survey: what
// the network announced stays in force while its resolver fails, which a sandbox may bring about by asking too often.
func (c *Client) Survey(ctx context.Context) (Survey, error) {
	c.surveys.mu.Lock()
	defer c.surveys.mu.Unlock()
	if !c.surveys.at.IsZero() && elapsed(c.surveys.at) < c.surveys.lasts() {
		return c.surveys.last, nil
	}
	found, err := c.resolver.LookupNetIP(ctx, "ip", address.IPv4Only)
	if err != nil {
		if ctx.Err() == nil { // it is not asked for again with each name
			c.surveys.at, c.surveys.failed = time.Now(), true
		}
		return c.surveys.last, err
	}
	c.surveys.last, c.surveys.at, c.surveys.failed = read(found), time.Now(), false
	return c.surveys.last, nil
}

// read returns what the addresses of [address.IPv4Only] show.
func read(found []netip.Addr) (s Survey) {
	known := false
	for _, addr := range found[:min(len(found), maxAddresses)] {
		addr = addr.Unmap()
		s.NAT64 = append(s.NAT64, address.NAT64Prefixes(addr)...)
		known = known || address.IsIPv4Only(addr) || len(s.NAT64) > 0
		if block := address.Classify(addr).Block; addr.Is4() || !s.Fake.IsValid() {
			s.Fake = block
		}
	}
	if known {
		s.Fake = netip.Prefix{}
	}
	return s
}

// network returns what is known of the network, for addresses of which one depends on that. A network that has said
// nothing is taken for one without NAT64.
func (c *Client) network(ctx context.Context, addrs []netip.Addr) address.Network {
	n := address.Network{Ranges: c.opts.Ranges}
	if slices.ContainsFunc(addrs, n.DependsOnNAT64) {
		s, _ := c.Survey(ctx)
		n.NAT64 = s.NAT64
	}
	return n
}

// judge returns the class of addr in n. An address of this machine is not public because the user allows a range in
// which it lies.
func judge(n address.Network, addr netip.Addr) address.Class {
	class := n.Classify(addr)
	if class.Allowed && isOwn(addr) {
		return address.Class{Reason: "own"}
	}
	return class
}

// isOwn reports whether addr is an address of this machine, or may be.
func isOwn(addr netip.Addr) bool {
	own, err := net.InterfaceAddrs()
	return err != nil || slices.ContainsFunc(own, func(a net.Addr) bool {
		ip, ok := a.(*net.IPNet)
		if !ok {
			return false
		}
		at, ok := netip.AddrFromSlice(ip.IP)
		return ok && at.Unmap() == addr.Unmap()
	})
}
