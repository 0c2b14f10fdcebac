package launch

import (
	"cmp"
	"context"
	"io"
	"os"
	"os/exec"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/approvals"
	"github.com/ALRubinger/aileron/internal/config"
	"github.com/ALRubinger/aileron/internal/connectors"
	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/detached"
	"github.com/ALRubinger/aileron/internal/launch"
	"github.com/ALRubinger/aileron/internal/protect"
	"github.com/ALRubinger/aileron/internal/report"
	"github.com/ALRubinger/aileron/internal/session"
	"github.com/ALRubinger/aileron/sandbox"
	"github.com/ALRubinger/aileron/sandbox/agents"
	"github.com/ALRubinger/aileron/vault"
)

// Launcher returns what runs commands behind sessions, by the flags and config.toml.
func Launcher(a *cli.App, opts *cli.SessionOptions) (*launch.Launcher, error) {
	if err := launch.CheckOpenFiles(launch.OpenFileLimit()); err != nil {
		return nil, err
	}
	home, conf, err := a.Settings()
	if err != nil {
		return nil, err
	}
	ended := func(e launch.Ended) {
		if opts.Reported || a.Detached != nil || a.MessagesOnTerminal() && !report.IsUneventful(e) {
			report.Print(a.Console, e)
		}
	}
	if opts.Quiet {
		ended = nil
	}
	var terminal *detached.Terminal
	if a.Detached != nil {
		terminal = a.Detached.Terminal
	}
	environ := approvals.NewEnviron(protect.WithoutSecrets(os.Environ()))
	return &launch.Launcher{
		Home: home, Config: conf.Sandbox, Patience: a.Patience(conf.Sandbox),
		Programs: approvals.Programs{Decider: conf.Approval.Decider.Command, Socket: conf.Approval.Decider.Socket,
			Notify: conf.Approval.Notify, Environ: environ},
		Open: func(ctx context.Context, agent, mode string, stop *session.StopRequest) (*session.Session, error) {
			s := session.Options{Home: home, Agent: agent, Mode: mode, Stop: stop}
			return openSession(ctx, a, opts, conf, environ, s)
		},
		Vault: func(ctx context.Context) (*vault.Vault, error) {
			err := unlockBound(ctx, a, opts)
			return opts.Opened, err
		},
		Stdin: a.Stdin, Stdout: a.Child.Stdout, Stderr: a.Child.Stderr, Terminal: a.ChildTerminal(),
		Detached: terminal,
		Environ:  protect.WithoutSecrets(os.Environ()),
		Start:    func(cmd *exec.Cmd) error { return a.Protected.Start(cmd) }, WithoutReaper: a.Protected == nil,
		Ended: ended, Progress: a.NewBuildProgress(console.BuildLog(home)), Infof: a.Infof,
		Report: func(err error) { printError(a, err) },
		Log:    a.Logger(),
	}, nil
}

// openSession opens the session that s describes, with the flags and config.toml. environ is of the programs that
// the host runs.
func openSession(
	ctx context.Context, a *cli.App, opts *cli.SessionOptions, conf config.Config, environ *approvals.Environ,
	s session.Options,
) (*session.Session, error) {
	err := describeTraffic(a, opts, conf, environ, &s)
	if err != nil {
		return nil, err
	}
	if s.Bindings, err = opts.Bindings(a.Dir); err != nil {
		return nil, err
	}
	if s.Connectors, s.Versions, err = opts.Used(a.Dir); err != nil {
		return nil, err
	}
	s.Store, _ = a.OpenStore() // the session opens it again, and records why it cannot
	s.Reading = opts.Reading
	connectors.WarnOfRemovedKeys(a.Dir, s.Connectors, s.Versions)
	s.Detached, s.Vault = a.Detached != nil, a.VaultAt(s.Home)
	s.Unlock = func(ctx context.Context) (*vault.Vault, error) {
		if opts.Opened != nil {
			return opts.Opened, nil
		}
		return a.OpenVault(ctx, opts.PassphraseFile)
	}
	s.Log, s.Infof, s.Report = a.Logger(), a.Infof, func(err error) { printError(a, err) }
	return session.Open(ctx, s)
}

// describeTraffic puts into s what the flags and config.toml say of requests: which are allowed or asked about, how
// upstreams are reached, and what is recorded.
func describeTraffic(
	a *cli.App, opts *cli.SessionOptions, conf config.Config, environ *approvals.Environ, s *session.Options,
) (err error) {
	if s.Upstream, err = opts.Upstream(conf); err != nil {
		return err
	}
	s.Config, s.Passthrough = conf, opts.Egress == "passthrough"
	s.Allow, s.Shared, s.Optional, s.Learn = opts.Allow, opts.Shares, opts.Optional, opts.Learn
	if s.Approve, err = opts.Asks(conf.Approval.Approve...); err != nil {
		return err
	}
	if s.Budget, err = conf.Budget.OfSession(opts.Budget, opts.Project.Budget()); err != nil {
		return err
	}
	if len(s.Approve) > 0 && len(conf.Tunnel) > 0 {
		a.Infof("aileron: approve asks about no request to the hosts of tunnel in config.toml: they are not decrypted")
	}
	agent, _ := agents.Find(s.Agent)
	s.Unasked = connectors.IsOwnModel(agent)
	s.Notifier = notifier(a, conf.Approval, environ, s.Mode)
	if by := conf.Approval.Decider; by.IsSet() {
		s.Decider = approvals.NewDecider(&approvals.Decider{Socket: by.Socket, Command: by.Command,
			Warn: s.Notifier.Warn, Environ: environ, Start: s.Notifier.Start})
	}
	s.Project = opts.ProjectFile()
	s.Version, s.UpstreamCA = a.Build.String(), cmp.Or(opts.UpstreamCA, conf.Upstream.CA)
	s.Capture, s.Export, s.Locks, s.Start = opts.Capture, a.ExportTarget(), a.Locks, environ.Start(a.Protected.Start)
	return nil
}

// notifier returns what tells the person of a request that waits. It prints where no command has the terminal.
func notifier(a *cli.App, conf config.Approval, environ *approvals.Environ, mode string) *approvals.Notifier {
	n := approvals.Notifier{Command: conf.Notify, Environ: environ,
		Start: func(cmd *exec.Cmd) error { return a.Protected.Start(cmd) },
		Warn:  func(err error) { a.Infof("aileron: warning: %v", err) }}
	if mode == "proxy" || a.Detached != nil || a.ChildTerminal() == nil {
		n.Line = func(text string) {
			a.Infof("aileron: %s", text)
			if a.MessagesOnTerminal() {
				_, _ = io.WriteString(a.Child.Stderr, "\a")
			}
		}
	}
	return approvals.NewNotifier(n)
}

// printError prints an error that does not decide the exit code.
func printError(a *cli.App, err error) { _ = a.ExitCode(err) }

// RunSandboxed runs a command in a sandbox with a session of its own. The flags complete s.
func RunSandboxed(ctx context.Context, a *cli.App, opts *cli.SandboxOptions, s launch.Sandbox) error {
	l, err := Launcher(a, &opts.SessionOptions)
	if err != nil {
		return err
	}
	s.Engine, s.Build, s.Proxy = opts.Engine, opts.Build, opts.Proxy
	opts.Native = opts.Engine == sandbox.Native
	if err := opts.ParseShared(l.Home); err != nil {
		return err
	}
	a.Into(&opts.Sandbox, &s)
	opts.Shares = opts.Shared.Recorded()
	if err := opts.CheckCapture(); err != nil {
		return err
	}
	if s.Image, err = a.ImageOf(&opts.Sandbox, s.Image, l.Config.Packages); err != nil {
		return err
	}
	if a.Detached != nil {
		s.Began = func(running *session.Session) {
			a.Detached.Begun(l.Home, running.ID(), detached.MessagesPath(l.Home, running.ID()))
		}
		if opts.Opened, err = a.Detached.OpenVault(a.VaultAt(l.Home)); err != nil {
			return err
		}
		return sandboxed(ctx, a, l, opts, s)
	}
	if opts.Detach {
		if err := makeFirst(ctx, a, opts, s); err != nil {
			return err
		}
		if err := unlockBound(ctx, a, &opts.SessionOptions); err != nil {
			return err
		}
		id, err := a.Detach(ctx, &opts.SessionOptions)
		if err != nil {
			return err
		}
		return a.PrintDetached(id)
	}
	if err := UnlockFirst(ctx, a, &opts.SessionOptions); err != nil {
		return err
	}
	return sandboxed(ctx, a, l, opts, s)
}

// makeFirst makes the image of a session that is to be detached, where that may need an answer of the person here.
func makeFirst(ctx context.Context, a *cli.App, opts *cli.SandboxOptions, s launch.Sandbox) error {
	if !a.Interactive() || !a.UnansweredLayer(&opts.Sandbox, s.Agent) {
		return nil // otherwise it is refused there
	}
	e, err := a.FindEngine(ctx, opts.Engine)
	if err != nil {
		return err
	}
	defer e.Close()
	_, err = a.MakeImage(ctx, e, &opts.Sandbox, s.Image, s.Agent, opts.Build)
	return err
}

// sandboxed runs a command in a sandbox. The installed connectors are read while the engine is waited for.
func sandboxed(ctx context.Context, a *cli.App, l *launch.Launcher, opts *cli.SandboxOptions, s launch.Sandbox) error {
	if installed, err := a.OpenStore(); err == nil { // otherwise the session has the error
		opts.Reading = installed.Begin()
		defer opts.Reading.Wait()
	}
	return l.Sandboxed(ctx, s)
}
