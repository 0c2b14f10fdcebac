package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/detached"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/launch"
	"github.com/ALRubinger/aileron/internal/session"
	"github.com/ALRubinger/aileron/internal/trust"
)

type proxyOptions struct {
	cli.SessionOptions
	listen string
	caOut  string
	env    bool
	detach bool
}

func NewProxy(a *cli.App) *cobra.Command {
	opts := &proxyOptions{}
	cmd := &cobra.Command{
		Use:   "proxy",
		Short: "Serve a session's proxy without a sandbox, until it is interrupted or stopped",
		Long: `Serve the proxy of one session on a TCP port of this machine. A program that has
the session's token may use it; nothing makes a program use it, so this is
cooperative. The first SIGINT or SIGTERM drains, the second ends at once.

With --detach the command ends when the proxy is ready, and leaves it running
until aileron session stop. This is what a shell needs that sets its variables
from --env (bash, zsh, fish).`,
		Example: `  eval "$(aileron proxy --detach --env)"    # and at last: aileron session stop $AILERON_SESSION_ID
  aileron proxy --listen 127.0.0.1:3128 --ca-out ca.pem
  aileron proxy --json               # {"session_id", "proxy_url", "ca_file", "api_url"}`,
		Args: cli.UsageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := opts.Check(); err != nil {
				return err
			}
			if opts.env && a.JSON {
				return failure.Usagef("--env and --json exclude each other")
			}
			return opts.run(cmd.Context(), a)
		},
	}
	opts.Register(cmd)
	f := cmd.Flags()
	f.StringVar(&opts.listen, "listen", "127.0.0.1:0", "address to listen on")
	f.StringVar(&opts.caOut, "ca-out", "", "file to write the session's CA to (default in the session's directory)")
	f.BoolVar(&opts.env, "env", false, "print export lines for a shell when ready")
	f.BoolVarP(&opts.detach, "detach", "d", false,
		"leave the proxy running in the background when it is ready: aileron session stop ends it")
	return cmd
}

func (o *proxyOptions) run(ctx context.Context, a *cli.App) error {
	if err := cli.CheckListen(o.listen); err != nil {
		return err
	}
	if o.detach && a.Detached == nil {
		return o.runDetached(ctx, a)
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)

	stop := session.NewStopRequest()
	l, err := Launcher(a, &o.SessionOptions)
	if err != nil {
		return err
	}
	if a.Detached != nil {
		if o.Opened, err = a.Detached.OpenVault(a.VaultAt(l.Home)); err != nil {
			return err
		}
	}
	host, err := l.OpenHost(ctx, launch.Host{Mode: "proxy", Listen: o.listen, CAFile: o.caOut, Stop: stop})
	if err != nil {
		return err
	}
	if host.Exposed {
		a.Infof("aileron: warning: %s is not a loopback address: the session's token, with which others can use "+
			"the session, crosses the network in clear text", o.listen)
	}
	err = o.ready(a, l.Home, host)
	cause := "output closed"
	if err == nil {
		select {
		case sig := <-signals:
			cause = sig.String()
		case <-stop.Done():
			cause = session.StoppedCause
		case <-ctx.Done():
			cause = "cancelled"
		}
	}
	drain, cancel := context.WithCancel(context.WithoutCancel(ctx))
	go func() { // a second signal ends the drain
		select {
		case <-signals:
			cancel()
		case <-drain.Done():
		}
	}()
	closed := host.Close(drain, 0, cause)
	cancel()
	if cause == session.StoppedCause {
		a.Infof("aileron: %s", session.StoppedCause)
	}
	return errors.Join(err, closed)
}

// runDetached leaves the proxy running in a process of its own, which prints how to use it. A passphrase is asked for
// here, where the terminal is.
func (o *proxyOptions) runDetached(ctx context.Context, a *cli.App) error {
	if err := unlockBound(ctx, a, &o.SessionOptions); err != nil {
		return err
	}
	id, err := a.Detach(ctx, &o.SessionOptions)
	if err == nil {
		a.Infof("aileron: session %s serves in the background; a program that ignores its proxy is not mediated; "+
			"end it with: aileron session stop %[1]s", id)
	}
	return err
}

// ready prints how to use the session, and lets go of the streams of the process that left this one running: a shell's
// $(…) waits until no process has its end of the pipe.
func (o *proxyOptions) ready(a *cli.App, home string, host *launch.HostSession) error {
	if err := o.printReady(a, host); err != nil {
		return fmt.Errorf("print how to use the session: %w", err)
	}
	if a.Detached == nil {
		if !a.JSON {
			a.Infof("aileron: ready; the proxy is cooperative: a program that ignores it is not mediated. " +
				"Ctrl-C drains and ends.")
		}
		return nil
	}
	messages, err := detached.MakeLog(detached.Session{
		Home: home, ID: host.ID(), Alive: func(id string) bool { return session.Alive(home, id) },
	})
	if err != nil {
		a.Infof("aileron: warning: %v; session logs will have none of this session", err)
	}
	a.Detached.Begun(home, host.ID(), messages)
	return nil
}

// printReady prints how to use the session.
func (o *proxyOptions) printReady(a *cli.App, host *launch.HostSession) error {
	switch {
	case a.JSON:
		return a.PrintJSON(map[string]string{
			"session_id": host.ID(), "proxy_url": host.ProxyURL, "ca_file": host.CAFile, "api_url": host.APIURL,
		})
	case o.env:
		out := a.Stdout
		if !launch.IsTerminal(a.Child.Stdout) {
			out = a.Child.Stdout // a shell evaluates these lines: a path in them keeps its bytes
		}
		_, err := io.WriteString(out, trust.Exports(host.Environment()))
		return err
	}
	_, err := fmt.Fprintf(a.Stdout, "session  %s\nproxy    %s\nca       %s\napi      %s\n",
		host.ID(), host.ProxyURL, host.CAFile, host.APIURL)
	return err
}
