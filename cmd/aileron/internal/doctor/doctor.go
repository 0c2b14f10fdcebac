package doctor

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/termsafe"
)

func New(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Check everything that a session needs, and name the fix of what is wrong",
		Long: `Check what a session needs: the home, the disk, the clock, the vault, the
connectors, the audit log with its chain, sessions that were killed and the roots
that they left in trust stores, the limits of this process, and the engines with
theirs. An engine that does not respond is given up after 20 seconds. Nothing is
changed, and no container is made. The exit code is 1 if a line begins with FAIL; a
warning needs a look.`,
		Example: `  aileron doctor
  aileron doctor --json`,
		Args: cli.UsageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return examine(cmd.Context(), a) },
	}
}

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

// doctor prints the findings of all checks, as they come in.
func examine(ctx context.Context, a *cli.App) error {
	d := &doctor{App: a, isHealthy: true}
	checks := []func(context.Context){d.checkHome, d.checkDisk, d.checkLimits}
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
	if a.JSON {
		if err := a.PrintJSON(map[string]any{"ok": d.isHealthy, "checks": d.found}); err != nil {
			return err
		}
	}
	if !d.isHealthy {
		return console.Exit(1)
	}
	return nil
}

// doctor collects findings.
type doctor struct {
	*cli.App
	found     []Finding
	isHealthy bool
}

// add prints the findings, unless they are collected for --json.
func (d *doctor) add(found ...Finding) {
	for _, f := range found {
		d.found = append(d.found, f)
		d.isHealthy = d.isHealthy && f.State != StateFail
		if d.JSON {
			continue
		}
		out, state := d.FittedOut(), f.State
		if state == StateFail {
			state = "FAIL"
		}
		fmt.Fprintf(out, "%-4s  %-10s  %s\n", state, f.Check, termsafe.Line(strings.Join(strings.Fields(f.Text), " ")))
		if f.Fix != "" {
			fmt.Fprintf(out, "%-18sfix: %s\n", "", termsafe.Line(f.Fix))
		}
	}
}
