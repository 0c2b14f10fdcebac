// Package doctor checks what a session depends on: the home, the vault, the audit log, connectors, agents, sessions,
// and the engines. Open [Doctor.Examine] first, which lists the checks.
package doctor

import (
	"cmp"
	"context"
	"fmt"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/home"
	"github.com/ALRubinger/aileron/internal/session"
	"github.com/ALRubinger/aileron/internal/unlock"
	"github.com/ALRubinger/aileron/sandbox/engine"
)

// The states of a finding.
const (
	StateOK   = "ok"
	StateWarn = "warn"
	StateFail = "fail"
)

// Finding is the result of one check.
type Finding struct {
	Check string `json:"check"`
	State string `json:"state"` // ok, warn or fail
	Text  string `json:"text"`
	Fix   string `json:"fix,omitempty"` // what to do, unless it is ok
}

func healthy(check, format string, args ...any) Finding {
	return Finding{Check: check, State: StateOK, Text: fmt.Sprintf(format, args...)}
}

func warning(check, fix, format string, args ...any) Finding {
	return Finding{Check: check, State: StateWarn, Text: fmt.Sprintf(format, args...), Fix: fix}
}

// failed returns the finding of an error. fix is for one that has no hint of its own.
func failed(check string, err error, fix string) Finding {
	return Finding{Check: check, State: StateFail, Text: err.Error(), Fix: cmp.Or(hint.Of(err), fix)}
}

// Doctor makes the checks.
type Doctor struct {
	*home.Dir
	Unlocker *unlock.Unlocker
	Sessions func(home string) session.Lister
	Patience func() engine.Patience // with each engine
	Found    func(Finding)          // takes each finding as it comes in
}

// Examine makes all checks, in their order, until ctx ends.
func (d *Doctor) Examine(ctx context.Context) error {
	checks := []func(context.Context){d.checkHome, d.checkDisk, d.checkLimits, d.checkNetwork}
	if d.hasHome() { // what the others read would create it
		checks = append(checks, d.checkClock, d.checkKeyring, d.checkVault, d.checkConnectors, d.checkAgents, d.checkLog,
			d.checkSessions, d.checkTrust)
	}
	for _, check := range append(checks, d.checkEngines) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		check(ctx)
	}
	return nil
}

func (d *Doctor) add(found ...Finding) {
	for _, f := range found {
		d.Found(f)
	}
}
