package launch

import (
	"context"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/approvals"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/protect"
	"github.com/ALRubinger/aileron/internal/serve"
)

type serveOptions struct {
	cli.SessionOptions
	serve serve.Options
	check bool
}

// NewServe returns aileron serve.
func NewServe(a *cli.App) *cobra.Command {
	opts := &serveOptions{}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the proxy for agents that you start yourself, until SIGTERM",
		Long: `Serve the proxy of one session on two sockets in a directory, for a sandbox that
aileron does not start: an orchestrator's, a Pod, a compose file. Start aileron
gateway where that directory is mounted, and the agent in the gateway's network
namespace.

What is granted is read from a directory: grants.toml names connectors by their
content hashes, and for each the file of its credential, or a program that prints
it. The directory is followed. It may be empty at first: everything is refused
until it is filled.

It never asks, and has no vault. The log is JSON, a line an event, on standard
output. SIGTERM drains, a second one ends at once; SIGHUP reads the grants again.`,
		Example: `  aileron serve --dir /run/aileron --grants /etc/aileron/grants
  aileron serve --dir /run/aileron --grants grants --health 127.0.0.1:9464
  aileron serve --dir /run/aileron --check     # exit code 0: it serves`,
		Args: cli.UsageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch err := opts.SessionOptions.Check(); {
			case err != nil:
				return err
			case opts.serve.Dir == "" && opts.serve.Relay == (serve.Relay{}):
				return failure.Usagef("--dir DIR is needed: the directory of the sockets")
			case (opts.serve.Relay.Key == "") != (opts.serve.Relay.Dial+opts.serve.Relay.Listen == ""):
				return failure.Usagef("--uplink-key is for --dial or --listen, and needed with it")
			case opts.check:
				return serve.Check(cmd.Context(), opts.serve.Dir)
			case opts.serve.Grants == "":
				return failure.Usagef("--grants DIR is needed: the directory of what is granted, which may be empty")
			}
			return opts.run(cmd.Context(), a)
		},
	}
	opts.RegisterTraffic(cmd)
	f := cmd.Flags()
	f.StringVar(&opts.serve.Dir, "dir", "", "directory of the sockets, for the gateway alone")
	f.StringVar(&opts.serve.Public, "public", "",
		"directory of what the agent reads: ca.pem, bundle.pem, env (default public in --dir)")
	f.StringVar(&opts.serve.Grants, "grants", "", "directory of grants.toml and of connectors")
	f.StringVar(&opts.serve.Health, "health", "", "serve /healthz, /readyz and /metrics on HOST:PORT or unix:PATH")
	f.StringVar(&opts.serve.Relay.Dial, "dial", "", "HOST:PORT of a gateway elsewhere, see docs/kubernetes.md")
	f.StringVar(&opts.serve.Relay.Listen, "listen", "", "HOST:PORT to which a gateway elsewhere connects")
	f.StringVar(&opts.serve.Relay.Key, "uplink-key", "", "file of the key that this gateway has, too")
	cmd.MarkFlagsMutuallyExclusive("dial", "listen")
	f.StringVar(&opts.serve.Session.Agent, "agent", "", "name of the agent, for the audit log")
	f.BoolVar(&opts.check, "check", false, "ask the aileron serve of --dir whether it serves, and exit")
	return cmd
}

func (o *serveOptions) run(ctx context.Context, a *cli.App) error {
	home, conf, err := a.Settings()
	if err != nil {
		return err
	}
	var level slog.Level
	_ = level.UnmarshalText([]byte(a.LogLevel)) // one of four
	o.serve.Log = slog.New(slog.NewJSONHandler(a.Stdout, &slog.HandlerOptions{Level: min(level, slog.LevelInfo)}))
	a.Stderr = serve.Lines(o.serve.Log)
	o.serve.Session.Home, o.serve.Session.Mode = home, "serve"
	environ := approvals.NewEnviron(protect.WithoutSecrets(os.Environ()))
	if err := describeTraffic(a, &o.SessionOptions, conf, environ, &o.serve.Session); err != nil {
		return err
	}
	return serve.Run(ctx, o.serve)
}
