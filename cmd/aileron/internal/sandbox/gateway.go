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
	"github.com/ALRubinger/aileron/sandbox/gateway"
)

func NewGatewayCommand(a *cli.App) *cobra.Command {
	cfg := gateway.Config{}
	cmd := &cobra.Command{
		Use:    "gateway",
		Short:  "Serve a sandbox that shares this network namespace (started by aileron itself)",
		Hidden: true,
		Args:   cli.UsageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cfg.User < 1 {
				return failure.Usagef("--user is %d; the gateway serves as an ordinary user", cfg.User)
			}
			return runGateway(cmd.Context(), a, cfg)
		},
	}
	f := cmd.Flags()
	f.StringVar(&cfg.Proxy, "proxy-socket", gateway.DefaultProxy, "the proxy's socket for clients configured for a proxy")
	f.StringVar(&cfg.Redirect, "redirect-socket", gateway.DefaultRedirect, "the proxy's socket for redirected connections")
	f.IntVar(&cfg.User, "user", gateway.DefaultUser, "user and group id to serve as")
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
