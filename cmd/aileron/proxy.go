package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/internal/launch"
	"github.com/ALRubinger/aileron/internal/session"
)

type proxyOptions struct {
	sessionOptions
	listen string
	caOut  string
	env    bool
}

func newProxyCommand(a *app) *cobra.Command {
	opts := &proxyOptions{}
	cmd := &cobra.Command{
		Use:   "proxy",
		Short: "Serve a session's proxy without a sandbox, until interrupted",
		Long: `Serve the proxy of one session on a TCP port of this machine. A program that has
the session's token may use it; nothing makes a program use it, so this is
cooperative. The first SIGINT or SIGTERM drains, the second ends at once.`,
		Example: `  aileron proxy --listen 127.0.0.1:3128 --ca-out ca.pem
  (umask 077; aileron proxy --env > proxy.env) &     # when it is ready: . ./proxy.env
  aileron proxy --json               # {"session_id", "proxy_url", "ca_file", "api_url"}`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := opts.check(); err != nil {
				return err
			}
			if opts.env && a.json {
				return usagef("--env and --json exclude each other")
			}
			return opts.run(cmd.Context(), a)
		},
	}
	opts.register(cmd)
	f := cmd.Flags()
	f.StringVar(&opts.listen, "listen", "127.0.0.1:0", "address to listen on")
	f.StringVar(&opts.caOut, "ca-out", "", "file to write the session's CA to (default in the session's directory)")
	f.BoolVar(&opts.env, "env", false, "print export lines for a shell when ready")
	return cmd
}

func (o *proxyOptions) run(ctx context.Context, a *app) error {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)

	stop := session.NewStopRequest()
	l, err := a.launcher(&o.sessionOptions)
	if err != nil {
		return err
	}
	host, err := l.OpenHost(ctx, launch.Host{Mode: "proxy", Listen: o.listen, CAFile: o.caOut, Stop: stop})
	if err != nil {
		return err
	}
	if host.Exposed {
		a.infof("aileron: warning: %s is not a loopback address: the session's token, with which others can use "+
			"the session, crosses the network in clear text", o.listen)
	}
	err = o.printReady(a, host)
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
		a.infof("aileron: %s", session.StoppedCause)
	}
	return errors.Join(err, closed)
}

// printReady prints how to use the session.
func (o *proxyOptions) printReady(a *app, host *launch.HostSession) error {
	switch {
	case a.json:
		return a.printJSON(map[string]string{
			"session_id": host.ID(), "proxy_url": host.ProxyURL, "ca_file": host.CAFile, "api_url": host.APIURL,
		})
	case o.env:
		out := a.stdout
		if !launch.IsTerminal(a.child.stdout) {
			out = a.child.stdout // a shell evaluates these lines: a path in them keeps its bytes
		}
		for _, e := range host.Environment() {
			fmt.Fprintln(out, exportLine(e))
		}
		return nil
	}
	fmt.Fprintf(a.stdout, "session  %s\nproxy    %s\nca       %s\napi      %s\n",
		host.ID(), host.ProxyURL, host.CAFile, host.APIURL)
	a.infof("aileron: ready; the proxy is cooperative: a program that ignores it is not mediated. Ctrl-C drains and ends.")
	return nil
}

// exportLine returns NAME=VALUE as a line that a POSIX shell evaluates.
func exportLine(e string) string {
	name, value, _ := strings.Cut(e, "=")
	return "export " + name + "='" + strings.ReplaceAll(value, "'", `'\''`) + "'"
}
