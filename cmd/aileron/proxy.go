package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/ca"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/hostport"
	"github.com/ALRubinger/aileron/internal/session"
	"github.com/ALRubinger/aileron/internal/trust"
	"github.com/ALRubinger/aileron/proxy"
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
		Short: "Serve the plane without a box, until it is interrupted",
		Long: `Serve one session's plane on a TCP port of this machine. Whoever holds the
session's token may use it; nothing forces anyone to, so this is cooperative.
The first SIGINT or SIGTERM drains, the second ends at once.`,
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
			return runProxy(cmd.Context(), a, opts)
		},
	}
	opts.register(cmd)
	f := cmd.Flags()
	f.StringVar(&opts.listen, "listen", "127.0.0.1:0", "address to listen on")
	f.StringVar(&opts.caOut, "ca-out", "", "file to write the session's CA to (default in the session's directory)")
	f.BoolVar(&opts.env, "env", false, "print export lines for a shell when ready")
	return cmd
}

func runProxy(ctx context.Context, a *app, opts *proxyOptions) error {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)

	stop := session.NewStopRequest()
	host, err := a.openHostSession(ctx, sessionPlan{mode: "proxy", opts: &opts.sessionOptions, stop: stop}, opts.listen, opts.caOut)
	if err != nil {
		return err
	}
	if host.exposed {
		a.infof("aileron: warning: %s is not a loopback address: the session's token, with which others can use "+
			"the session, crosses the network in clear text", opts.listen)
	}
	switch {
	case a.json:
		err = a.printJSON(map[string]string{"session_id": host.ID(), "proxy_url": host.proxyURL, "ca_file": host.caFile, "api_url": host.apiURL})
	case opts.env:
		out := a.stdout
		if !isTerminal(a.child.stdout) {
			out = a.child.stdout // a shell evaluates these lines: a path in them keeps its bytes
		}
		for _, e := range host.env() {
			fmt.Fprintln(out, exportLine(e))
		}
	default:
		fmt.Fprintf(a.stdout, "session  %s\nproxy    %s\nca       %s\napi      %s\n", host.ID(), host.proxyURL, host.caFile, host.apiURL)
		a.infof("aileron: ready; the proxy is cooperative: a program that ignores it is not mediated. Ctrl-C drains and ends.")
	}
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

// hostSession is a session whose plane listens on a TCP port of this machine.
type hostSession struct {
	*session.Session
	proxyURL string // with the token
	apiURL   string
	caFile   string
	bundle   string
	exposed  bool // other machines may reach the listener
}

// openHostSession opens a session, writes its CA and bundle, and serves the
// plane on addr. The caller closes it.
func (a *app) openHostSession(ctx context.Context, plan sessionPlan, addr, caOut string) (_ *hostSession, err error) {
	s, _, err := a.openSession(ctx, plan)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.Abandon(ctx)
		}
	}()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, hint.New(fmt.Errorf("listen on %s: %w", addr, errors.Unwrap(err)), "choose a free port with --listen, or 127.0.0.1:0 for any")
	}
	h := &hostSession{Session: s, caFile: filepath.Join(s.Dir(), "ca.pem"), bundle: filepath.Join(s.Dir(), "bundle.pem")}
	if caOut != "" {
		if h.caFile, err = filepath.Abs(caOut); err != nil {
			return nil, errors.Join(err, l.Close())
		}
	}
	if err = h.writeTrust(); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	at := reachable(l.Addr())
	h.exposed = isExposed(l.Addr())
	h.proxyURL = "http://aileron:" + s.Token() + "@" + at
	h.apiURL = "http://" + at + "/v1"
	if err = s.Serve(ctx, false); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	s.Listen(ctx, l, proxy.Listener{Names: listenNames(addr, l.Addr())})
	s.Sweep(ctx)
	return h, nil
}

// reachable is a listener's address as its clients on this machine write it: a
// listener on every address is reached on loopback.
func reachable(at net.Addr) string {
	tcp, ok := at.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return at.String()
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(tcp.Port))
}

// isExposed reports whether other machines may reach the address.
func isExposed(at net.Addr) bool {
	tcp, ok := at.(*net.TCPAddr)
	return ok && !tcp.IP.IsLoopback()
}

// listenNames is the name that --listen gave the listener, if it is one.
func listenNames(asked string, at net.Addr) []string {
	host, _, err := net.SplitHostPort(asked)
	tcp, ok := at.(*net.TCPAddr)
	if err != nil || !ok {
		return nil
	}
	name, err := hostport.ParseName(host)
	if err != nil {
		return nil // an address, or empty
	}
	//nolint:gosec // a port
	return []string{hostport.Authority{Host: name, Port: uint16(tcp.Port)}.String()}
}

// writeTrust writes the public halves: the CA, and a bundle of it and the
// system's roots.
func (h *hostSession) writeTrust() error {
	root := h.RootPEM()
	if err := os.WriteFile(h.caFile, root, 0o644); err != nil { //nolint:gosec // a CA certificate is public
		return hint.New(fmt.Errorf("write the session's CA: %w", err), "--ca-out names a file in a directory that exists")
	}
	system, err := ca.SystemBundle()
	if err != nil {
		system = nil // a host without roots trusts the session's CA alone
	}
	if err := os.WriteFile(h.bundle, ca.Bundle(system, root), 0o600); err != nil {
		return fmt.Errorf("write the trust bundle: %w", err)
	}
	return nil
}

// env is what a child of this host gets: proxy, trust, API and placeholders.
func (h *hostSession) env() []string {
	env := trust.Environment{
		Proxy: h.proxyURL, NoProxy: []string{"localhost", "127.0.0.1", "::1"}, CA: h.caFile, Bundle: h.bundle,
	}.Variables()
	env = append(env, identity(h.Session, h.apiURL)...)
	return append(env, h.Placeholders()...)
}

// identity tells a command which session it is in.
func identity(s *session.Session, apiURL string) []string {
	return []string{"AILERON_API_URL=" + apiURL, "AILERON_TOKEN=" + s.Token(), "AILERON_SESSION_ID=" + s.ID()}
}
