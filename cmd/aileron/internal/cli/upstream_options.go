package cli

import (
	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/internal/config"
	"github.com/ALRubinger/aileron/internal/networks"
	"github.com/ALRubinger/aileron/proxy/upstream"
)

// UpstreamOptions are the flags of every verb that connects to hosts on the Internet.
type UpstreamOptions struct {
	Resolve       []string
	UpstreamCA    string
	upstreamProxy string
}

func (o *UpstreamOptions) Register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringArrayVar(&o.Resolve, "resolve", nil, "reach HOST:PORT at ADDR, an IP or IP:PORT (repeatable)")
	f.StringVar(&o.UpstreamCA, "upstream-ca", "", "PEM file of roots to trust upstream, besides the system's")
	f.StringVar(&o.upstreamProxy, "upstream-proxy", "",
		"http, https, socks5 or socks5h `URL` of a proxy through which upstreams are reached")
}

// Upstream merges flags and config into the plane's settings.
func (o *UpstreamOptions) Upstream(c config.Config) (upstream.Options, error) {
	return networks.Options(c, networks.Flags{Resolve: o.Resolve, CA: o.UpstreamCA, Proxy: o.upstreamProxy})
}

// ReachServices returns how authorization servers are reached, under o and the configuration, when that is needed.
func (a *App) ReachServices(o *UpstreamOptions) func() (upstream.Options, error) {
	return func() (upstream.Options, error) {
		_, conf, err := a.Settings()
		if err != nil {
			return upstream.Options{}, err
		}
		return o.Upstream(conf)
	}
}
