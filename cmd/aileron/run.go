package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/ALRubinger/aileron/internal/session"
	"github.com/spf13/cobra"
)

func newRunCommand(a *app) *cobra.Command {
	opts := &sessionOptions{}
	cmd := &cobra.Command{
		Use:   "run [flags] -- CMD [ARG…]",
		Short: "Run a command on this host with the plane as its proxy (cooperative)",
		Long: `Run a command with a session of its own: the proxy and trust variables point at
the plane, and the connectors' placeholders are set. There is no box: a program
that ignores the variables is not mediated, and it can read what you can read.
The exit code is the command's, 127 when there is no such command and 126 when it
cannot be executed.`,
		Example: `  aileron run -- gh api user
  aileron run --resolve api.github.com:443:127.0.0.1:8443 --upstream-ca test-ca.pem -- curl https://api.github.com/user`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := opts.check(); err != nil {
				return err
			}
			if len(args) == 0 {
				return usagef("run wants a command: aileron run -- CMD")
			}
			return runOnHost(cmd.Context(), a, opts, "off", args[0], args, nil)
		},
	}
	opts.register(cmd)
	cmd.Flags().SetInterspersed(false)
	return cmd
}

// runOnHost runs command in a cooperative session, with extra variables for
// it, and ends with its exit code.
func runOnHost(ctx context.Context, a *app, opts *sessionOptions, mode, agent string, command, extra []string) error {
	path, err := findCommand(command[0])
	if err != nil {
		return err
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	defer signal.Stop(signals)

	stop := session.NewStopRequest()
	host, err := a.openHostSession(ctx, sessionPlan{agent: agent, mode: mode, opts: opts, stop: stop}, "127.0.0.1:0", "")
	if err != nil {
		return err
	}
	child := exec.Command(path, command[1:]...) //nolint:gosec,noctx // the person's own command; it ends by signals, as a shell's child does
	child.Args[0] = command[0]
	child.Env = append(without(os.Environ(), secretVariables()...), append(host.env(), extra...)...)
	child.Stdin, child.Stdout, child.Stderr = a.stdin, a.child.stdout, a.child.stderr
	ward, err := a.startRunWarden(host.ID())
	if err != nil {
		_ = a.unrecorded(1, host.Close(ctx, 1, "the command did not start"))
		return err
	}
	defer ward.dismiss()
	ended, err := a.protected.startTied(child)
	if err != nil {
		_ = a.unrecorded(1, host.Close(ctx, 1, "the command did not start"))
		return startError(command[0], err)
	}
	ward.watch(child.Process.Pid)
	stopped, cause, kill := stop.Done(), "the command ended", (<-chan time.Time)(nil)
	for {
		select {
		case err := <-ended:
			code := exitCodeOf(err)
			err = host.Close(ctx, code, cause)
			if stop.Requested() {
				a.infof("aileron: %s", session.StoppedCause)
			}
			return a.unrecorded(code, err)
		case sig := <-signals:
			// On a terminal the child has the key's signal already.
			if !a.interactive() || sig == syscall.SIGTERM || sig == syscall.SIGHUP {
				_ = child.Process.Signal(sig)
			}
		case <-stopped:
			cause, stopped, kill = session.StoppedCause, nil, time.After(stopGrace)
			_ = child.Process.Signal(syscall.SIGTERM)
		case <-kill:
			_ = child.Process.Kill()
		}
	}
}

// stopGrace is how long the command of aileron run has between SIGTERM and
// SIGKILL when its session is stopped, as one in a box does.
const stopGrace = 5 * time.Second

// plainCause is why a command did not start, without its path.
func plainCause(err error) error {
	if bad := (*fs.PathError)(nil); errors.As(err, &bad) {
		return bad.Err
	}
	return err
}

// exitCodeOf is the code of a finished child: 128+N when signal N ended it.
func exitCodeOf(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case !errors.As(err, &exit):
		return 1
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return exit.ExitCode()
}

// without removes the named variables from env.
func without(env []string, names ...string) []string {
	var kept []string
next:
	for _, e := range env {
		for _, n := range names {
			if strings.HasPrefix(e, n+"=") {
				continue next
			}
		}
		kept = append(kept, e)
	}
	return kept
}
