package doctor

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"github.com/ALRubinger/aileron/internal/config"
	"github.com/ALRubinger/aileron/proxy/upstream"
)

// surveyTimeout bounds how long the resolver is waited for.
const surveyTimeout = 5 * time.Second

// checkNetwork checks how hosts are reached: a proxy of this host that sessions do not use, and a resolver whose
// addresses are not those of hosts.
func (d *Doctor) checkNetwork(ctx context.Context) {
	var conf config.Config
	if home, err := d.HomePath(); err == nil {
		conf, _ = config.Read(home) // checkHome has the error
	}
	if conf.Upstream.Proxy != "" {
		d.add(healthy("network", "hosts are reached through the proxy of config.toml"))
		return
	}
	name := config.HostProxy()
	if name != "" {
		d.add(warning("network", "pass --upstream-proxy URL, or set proxy below [upstream] in config.toml",
			"this host uses a proxy (%s), and sessions do not", name))
	}
	client, err := upstream.New(upstream.Options{})
	if err != nil {
		return
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, surveyTimeout)
	defer cancel()
	s, err := client.Survey(ctx)
	if err != nil && name != "" {
		return // such networks resolve no names
	}
	d.add(surveyed(s, err, conf.Upstream.AllowRanges))
}

// surveyed returns the finding of a survey.
func surveyed(s upstream.Survey, err error, allowed []string) Finding {
	isAllowed := func(text string) bool {
		p, err := netip.ParsePrefix(text)
		return err == nil && p.Bits() <= s.Fake.Bits() && p.Contains(s.Fake.Addr())
	}
	switch {
	case err != nil:
		return warning("network", "check the network and its name servers; "+
			"behind a company's proxy, pass --upstream-proxy URL", "names cannot be resolved")
	case s.Fake.IsValid() && slices.ContainsFunc(allowed, isAllowed):
		return healthy("network", "every name resolves to an address of %s, which allow_ranges allows", s.Fake)
	case s.Fake.IsValid():
		return warning("network", "if a local proxy does that, write allow_ranges = [\""+s.Fake.String()+
			"\"] below [upstream] in config.toml (docs/networks.md says what that gives up)",
			"every name resolves to an address of %s, which sessions do not reach", s.Fake)
	case len(s.NAT64) > 0:
		return healthy("network", "names resolve; NAT64 with the prefix %s", s.NAT64[0])
	}
	return healthy("network", "names resolve")
}
