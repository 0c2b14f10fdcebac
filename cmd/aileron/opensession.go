package main

import (
	"context"
	"log/slog"
	"strings"

	"github.com/ALRubinger/aileron/internal/config"
	"github.com/ALRubinger/aileron/internal/session"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/vault"
)

// sessionPlan is what a command knows of the session that it opens.
type sessionPlan struct {
	agent string // the command's name, "" for the bare proxy
	mode  string
	opts  *sessionOptions
	stop  *session.StopRequest // ends the session from the moment it is listed
}

// openSession opens a session by flags and config.toml, which it returns too.
// See [session.Open].
func (a *app) openSession(ctx context.Context, plan sessionPlan) (*session.Session, config.Config, error) {
	home, err := a.Home()
	if err != nil {
		return nil, config.Config{}, err
	}
	conf, err := config.Read(home)
	if err != nil {
		return nil, conf, err
	}
	up, err := plan.opts.upstream(conf)
	if err != nil {
		return nil, conf, err
	}
	s, err := session.Open(ctx, session.Options{
		Home: home, Agent: plan.agent, Mode: plan.mode,
		Config: conf, Upstream: up, Passthrough: plan.opts.egress == "passthrough", Bindings: plan.opts.bindings(),
		Stop: plan.stop, Locks: a.locks, Vault: a.vaultAt(home),
		Unlock: func(ctx context.Context) (*vault.Vault, error) { return a.openVault(ctx, plan.opts.passphraseFile) },
		Log:    a.logger(), Infof: a.infof,
		Report: func(err error) { _ = a.exitCode(err) },
	})
	return s, conf, err
}

// bindings returns what --bind names.
func (o *sessionOptions) bindings() map[spec.FQN]string {
	chosen := map[spec.FQN]string{}
	for _, b := range o.binds {
		fqn, identity, _ := strings.Cut(b, "=")
		chosen[spec.FQN(fqn)] = identity
	}
	return chosen
}

func (a *app) logger() *slog.Logger {
	level := slog.LevelWarn
	_ = level.UnmarshalText([]byte(a.logLevel)) // one of four
	return slog.New(slog.NewTextHandler(a.stderr, &slog.HandlerOptions{Level: level}))
}
