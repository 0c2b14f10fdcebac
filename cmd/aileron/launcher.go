package main

import (
	"cmp"
	"context"
	"log/slog"
	"os"
	"os/exec"
	"strings"

	"github.com/ALRubinger/aileron/internal/config"
	"github.com/ALRubinger/aileron/internal/detached"
	"github.com/ALRubinger/aileron/internal/launch"
	"github.com/ALRubinger/aileron/internal/session"
	"github.com/ALRubinger/aileron/vault"
)

// launcher returns what runs commands behind sessions, by the flags and config.toml.
func (a *app) launcher(opts *sessionOptions) (*launch.Launcher, error) {
	if err := checkOpenFiles(openFileLimit()); err != nil {
		return nil, err
	}
	home, err := a.Home()
	if err != nil {
		return nil, err
	}
	conf, err := config.Read(home)
	if err != nil {
		return nil, err
	}
	ended := func(e launch.Ended) {
		if opts.reported || a.detached != nil || a.messagesOnTerminal() && !isUneventful(e) {
			a.reportEnded(e)
		}
	}
	if opts.quiet {
		ended = nil
	}
	var terminal *detached.Terminal
	if a.detached != nil {
		terminal = a.detached.terminal
	}
	return &launch.Launcher{
		Home: home, Config: conf.Sandbox, Patience: a.patience(conf.Sandbox),
		Open: func(ctx context.Context, agent, mode string, stop *session.StopRequest) (*session.Session, error) {
			return a.openSession(ctx, opts, conf, session.Options{Home: home, Agent: agent, Mode: mode, Stop: stop})
		},
		Stdin: a.stdin, Stdout: a.child.stdout, Stderr: a.child.stderr, Terminal: a.childTerminal(),
		Detached: terminal,
		Environ:  without(os.Environ(), secretVariables()...),
		Start:    func(cmd *exec.Cmd) error { return a.protected.start(cmd) }, WithoutReaper: a.protected == nil,
		Ended: ended, Progress: a.newBuildProgress(), Infof: a.infof, Report: a.report, Log: a.logger(),
	}, nil
}

// openSession opens the session that s describes, with the flags and config.toml.
func (a *app) openSession(
	ctx context.Context, opts *sessionOptions, conf config.Config, s session.Options,
) (*session.Session, error) {
	up, err := opts.upstream(conf)
	if err != nil {
		return nil, err
	}
	chosen, err := opts.bindings(a)
	if err != nil {
		return nil, err
	}
	if s.Connectors, s.Versions, err = opts.used(a); err != nil {
		return nil, err
	}
	s.Store, _ = a.openStore() // the session opens it again, and records why it cannot
	s.Reading = opts.reading
	a.warnOfRemovedKeys(s.Connectors, s.Versions)
	s.Config, s.Upstream, s.Passthrough, s.Bindings = conf, up, opts.egress == "passthrough", chosen
	s.Allow, s.Shared, s.Optional = opts.allow, opts.shares, opts.optional
	if opts.project.file != nil {
		s.Project = session.ProjectFile{Hash: opts.project.file.Hash, Widens: opts.project.asked()}
	}
	s.Version, s.UpstreamCA = thisBuild().String(), cmp.Or(opts.upstreamCA, conf.Upstream.CA)
	s.Detached = a.detached != nil
	s.Capture, s.Export = opts.capture, a.exportTarget()
	s.Locks, s.Vault = a.locks, a.vaultAt(s.Home)
	s.Unlock = func(ctx context.Context) (*vault.Vault, error) {
		if opts.opened != nil {
			return opts.opened, nil
		}
		return a.openVault(ctx, opts.passphraseFile)
	}
	s.Log, s.Infof, s.Report = a.logger(), a.infof, a.report
	return session.Open(ctx, s)
}

// report prints an error that does not decide the exit code.
func (a *app) report(err error) { _ = a.exitCode(err) }

// logger returns a logger to stderr of the level of --log-level.
func (a *app) logger() *slog.Logger {
	level := slog.LevelWarn
	_ = level.UnmarshalText([]byte(a.logLevel)) // one of four
	return slog.New(slog.NewTextHandler(a.stderr, &slog.HandlerOptions{Level: level}))
}

// without returns env without the variables that are named.
func without(env []string, names ...string) []string {
	var kept []string
	for _, entry := range env {
		named := false
		for _, name := range names {
			named = named || strings.HasPrefix(entry, name+"=")
		}
		if !named {
			kept = append(kept, entry)
		}
	}
	return kept
}
