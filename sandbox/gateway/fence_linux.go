package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// fence is what must stop the sandbox's packets where the relay cannot: a NetworkPolicy, a firewall, the lack of a
// route. A policy is a wish until a network plugin enforces it, and some do so only a while after a Pod has started. So
// the relay tries to reach what is likely to answer, and serves once nothing does.
type fence struct {
	targets []target
	again   time.Duration
}

// target is an address that must not be reached.
type target struct {
	what    string
	network string // tcp or udp
	at      netip.AddrPort
}

func (t target) String() string { return fmt.Sprintf("%s (%s %s)", t.what, t.network, t.at) }

const (
	fenceTime  = time.Second     // an answer of this network comes in less
	fencePause = time.Second / 4 // between tests that fail
	fenceAgain = 30 * time.Second
)

// outside are addresses that answer on most networks: public ones, the metadata services of clouds, and the resolver
// that many nodes have.
var outside = []target{
	{"the internet", "tcp", netip.MustParseAddrPort("1.1.1.1:443")},
	{"the internet", "udp", netip.MustParseAddrPort("8.8.8.8:53")},
	{"the internet over IPv6", "tcp", netip.MustParseAddrPort("[2606:4700:4700::1111]:443")},
	{"the metadata service", "tcp", netip.MustParseAddrPort("169.254.169.254:80")},
	{"the metadata service over IPv6", "tcp", netip.MustParseAddrPort("[fd00:ec2::254]:80")},
	{"the credentials service of ECS", "tcp", netip.MustParseAddrPort("169.254.170.2:80")},
	{"the credentials service of EKS", "tcp", netip.MustParseAddrPort("169.254.170.23:80")},
	{"the metadata service of Azure", "tcp", netip.MustParseAddrPort("168.63.129.16:80")},
	{"the metadata service of Alibaba", "tcp", netip.MustParseAddrPort("100.100.100.200:80")},
	{"the node's resolver", "udp", netip.MustParseAddrPort("169.254.20.10:53")},
}

// newFence returns the fence of a relay. getenv has what Kubernetes tells every container, and the node's address as
// AILERON_NODE_IP.
func newFence(rc *Relay, getenv func(string) string) *fence {
	f := &fence{targets: slices.Clone(outside), again: cmp.Or(rc.Again, fenceAgain)}
	if api, err := netip.ParseAddrPort(net.JoinHostPort(getenv("KUBERNETES_SERVICE_HOST"),
		getenv("KUBERNETES_SERVICE_PORT"))); err == nil {
		f.targets = append(f.targets, target{"the API server", "tcp", api})
		if a := api.Addr(); a.Is4() { // by convention the tenth address of services; a wrong guess is no harm
			b := a.As4()
			b[3] = 10
			dns := netip.AddrPortFrom(netip.AddrFrom4(b), 53)
			f.targets = append(f.targets, target{"the cluster's DNS", "udp", dns}, target{"the cluster's DNS", "tcp", dns})
		}
	}
	if node, err := netip.ParseAddr(getenv("AILERON_NODE_IP")); err == nil {
		f.targets = append(f.targets, target{"the kubelet", "tcp", netip.AddrPortFrom(node, 10250)})
	}
	for _, at := range rc.Fence {
		f.targets = append(f.targets, target{"an address of --fence", "tcp", at})
		if at.Port() == 53 {
			f.targets = append(f.targets, target{"an address of --fence", "udp", at})
		}
	}
	return f
}

// await returns when nothing outside answers. Until then it logs what does, whenever that changes.
func (f *fence) await(ctx context.Context, log *slog.Logger) error {
	for last := ""; ; {
		err := f.test(ctx, f.targets)
		if err == nil {
			log.Info("the fence holds", "addresses", len(f.targets))
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err.Error() != last {
			last = err.Error()
			log.Error("not ready: the sandbox could reach the network past aileron", "error", last,
				"hint", "a NetworkPolicy with policyTypes [Egress] and no egress, which the network plugin must enforce")
		}
		if wait(ctx, fencePause) != nil {
			return ctx.Err()
		}
	}
}

// watch tests the fence for as long as the relay serves. An error ends the relay.
func (f *fence) watch(ctx context.Context) error {
	for wait(ctx, f.again) == nil {
		if err := f.test(ctx, f.targets); err != nil && ctx.Err() == nil {
			return fmt.Errorf("the fence has fallen: %w", err)
		}
	}
	return nil
}

// mustNotReach returns an error if one of the ports answers.
func (f *fence) mustNotReach(ctx context.Context, at netip.Addr, ports []uint16) error {
	var targets []target
	for _, port := range ports {
		targets = append(targets, target{"the plane", "tcp", netip.AddrPortFrom(at, port)})
	}
	return f.test(ctx, targets)
}

// test tries all targets at once, and returns an error that names those that answered.
func (f *fence) test(ctx context.Context, targets []target) error {
	ctx, cancel := context.WithTimeout(ctx, fenceTime)
	defer cancel()
	answers := make([]string, len(targets))
	var running sync.WaitGroup
	for i, t := range targets {
		running.Go(func() {
			if how := t.try(ctx); how != "" {
				answers[i] = t.String() + " " + how
			}
		})
	}
	running.Wait()
	if all := strings.Join(nonEmpty(answers), "; "); all != "" {
		return errors.New(all)
	}
	return nil
}

func nonEmpty(list []string) (some []string) {
	for _, s := range list {
		if s != "" {
			some = append(some, s)
		}
	}
	return some
}

// dnsQuery is a query for the addresses of "aileron.invalid." (RFC 2606), which a resolver answers.
var dnsQuery = []byte("\x61\x6c\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x07aileron\x07invalid\x00\x00\x01\x00\x01")

// try returns how a target answered, "" if it did not. A reset is an answer: its packet came back. What a router or
// this machine says instead of the target (unreachable, prohibited) is none.
func (t target) try(ctx context.Context) string {
	var d net.Dialer
	conn, err := d.DialContext(ctx, t.network, t.at.String())
	if err == nil {
		defer conn.Close()
		if t.network == "tcp" {
			return "accepted a connection"
		}
		deadline, _ := ctx.Deadline()
		_ = conn.SetDeadline(deadline)
		if _, err = conn.Write(dnsQuery); err == nil {
			_, err = conn.Read(make([]byte, 512))
		}
		if err == nil {
			return "answered"
		}
	}
	switch {
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ECONNRESET):
		return "refused a connection, which only something that is reached can"
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded), isUnreachable(err):
		return ""
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE), errors.Is(err, syscall.ENOBUFS):
		return "could not be tried: " + err.Error() // undecided means no
	}
	return ""
}

func isUnreachable(err error) bool {
	for _, errno := range []syscall.Errno{syscall.ENETUNREACH, syscall.EHOSTUNREACH, syscall.EACCES, syscall.EPERM} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}
