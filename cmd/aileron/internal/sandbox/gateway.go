package sandbox

import (
	"context"
	"log/slog"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/uplink"
	"github.com/ALRubinger/aileron/sandbox/gateway"
)

func NewGatewayCommand(a *cli.App) *cobra.Command {
	cfg, relay := gateway.Config{}, gateway.Relay{}
	var key string
	var ports []uint
	var fence []string
	var check bool
	cmd := &cobra.Command{
		Use:    "gateway",
		Short:  "Serve a sandbox that shares this network namespace (started by aileron itself)",
		Hidden: true,
		Args:   cli.UsageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cfg.User < 1 || cfg.Plane < 1 || cfg.User == cfg.Plane {
				return failure.Usagef("--user is %d and --plane-user %d; the gateway serves as an ordinary user, which is not "+
					"that of the proxy", cfg.User, cfg.Plane)
			}
			if key != "" {
				if (relay.Listen == "") == (relay.Plane == "") {
					return failure.Usagef("--uplink-key takes either --uplink-listen or --uplink-dial")
				}
				cfg.Relay = &relay
			}
			if check {
				return gateway.Check(cmd.Context(), cfg)
			}
			if err := relay.SetAddresses(ports, fence); err != nil {
				return failure.Usage(err)
			}
			if key != "" {
				var err error
				if relay.Key, err = uplink.ReadKey(key); err != nil {
					return err
				}
			}
			return runGateway(cmd.Context(), a, cfg)
		},
	}
	f := cmd.Flags()
	f.StringVar(&cfg.Proxy, "proxy-socket", gateway.DefaultProxy, "the proxy's socket for clients configured for a proxy")
	f.StringVar(&cfg.Redirect, "redirect-socket", gateway.DefaultRedirect, "the proxy's socket for redirected connections")
	f.IntVar(&cfg.User, "user", gateway.DefaultUser, "user and group id to serve as")
	f.BoolVar(&cfg.Pod, "pod", false, "seal a network that has devices: the proxy's user alone may use them")
	f.IntVar(&cfg.Plane, "plane-user", gateway.DefaultPlane, "user id of the proxy in a Pod")
	f.StringVar(&key, "uplink-key", "", "serve without packet rules, for a proxy that has the key in this file")
	f.StringVar(&relay.Listen, "uplink-listen", "", "where the proxy dials in, as HOST:PORT")
	f.StringVar(&relay.Plane, "uplink-dial", "", "where the proxy listens, as HOST:PORT")
	f.UintSliceVar(&ports, "name-ports", nil, "ports at which names are reached (default 443,80)")
	f.StringSliceVar(&fence, "fence", nil, "one more address that must not be reached, as IP:PORT")
	f.StringVar(&relay.Public, "public", "", "directory for what the sandbox may read of the session")
	f.BoolVar(&check, "check", false, "exit with 0 if the gateway of this network namespace is ready")
	return cmd
}

func runGateway(ctx context.Context, a *cli.App, cfg gateway.Config) error {
	// As process 1 of its container it gets no signal that it does not ask for.
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	// Bytes move in the kernel; what the heap holds is small and worth
	// keeping small beside every sandbox.
	debug.SetGCPercent(50)
	cfg.Ready = a.Stdout
	cfg.Log = slog.New(slog.NewTextHandler(a.Stderr, nil))
	return gateway.Run(ctx, cfg)
}
