package cli

import (
	"context"
	"time"

	"github.com/ALRubinger/aileron/internal/config"
	"github.com/ALRubinger/aileron/sandbox"
	"github.com/ALRubinger/aileron/sandbox/engine"
)

// FindEngine finds an engine of a kind, within the timeouts of config.toml, and prints what it waits for.
func (a *App) FindEngine(ctx context.Context, kind string) (*sandbox.Engine, error) {
	home, err := a.HomePath()
	if err != nil {
		return nil, err
	}
	conf, err := config.Read(home)
	if err != nil {
		return nil, err
	}
	return sandbox.Find(ctx, kind, a.Patience(conf.Sandbox))
}

// Patience returns how long engines are waited for, and prints the waits.
func (a *App) Patience(conf config.Sandbox) engine.Patience {
	line := a.NewWaitLine()
	return engine.Patience{Limit: time.Duration(conf.EngineTimeout), Report: func(w engine.Wait) {
		line.Report(w.Engine+" to "+w.Step, w.For, w.Over)
	}}
}
