package main

import (
	"context"
	"fmt"
	"time"

	"github.com/ALRubinger/aileron/internal/config"
	"github.com/ALRubinger/aileron/sandbox"
	"github.com/ALRubinger/aileron/sandbox/engine"
)

// findEngine finds an engine of a kind, within the timeouts of config.toml, and prints what it waits for.
func (a *app) findEngine(ctx context.Context, kind string) (*sandbox.Engine, error) {
	home, err := a.homePath()
	if err != nil {
		return nil, err
	}
	conf, err := config.Read(home)
	if err != nil {
		return nil, err
	}
	return sandbox.Find(ctx, kind, a.patience(conf.Sandbox))
}

// patience returns how long engines are waited for, and prints the waits.
func (a *app) patience(conf config.Sandbox) engine.Patience {
	return engine.Patience{Limit: time.Duration(conf.EngineTimeout), Report: a.newWaitLine().report}
}

// waitLine prints the waits for an engine: on a terminal one line that is updated and cleared; else a line for the
// first wait, and for each later one that takes longer than laterWaits.
type waitLine struct {
	app     *app
	printed bool // the present wait
	any     bool // any wait
}

const laterWaits = 10 * time.Second

func (a *app) newWaitLine() *waitLine { return &waitLine{app: a} }

// report prints a wait. The engine calls it for one wait at a time.
func (l *waitLine) report(w engine.Wait) {
	text := fmt.Sprintf("aileron: waiting for %s to %s (%v; Ctrl-C ends it)",
		w.Engine, w.Step, w.For.Truncate(time.Second))
	switch {
	case w.Over:
		l.app.showStatus("")
		l.printed = false
	case l.app.showStatus(text):
	case l.printed, l.any && w.For < laterWaits:
	default:
		l.app.infof("%s", text)
		l.printed, l.any = true, true
	}
}
