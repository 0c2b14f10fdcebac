// Package doctor has the command aileron doctor, which prints what the checks of internal/doctor find.
package doctor

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"io"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/config"
	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/doctor"
	"github.com/ALRubinger/aileron/internal/termsafe"
	"github.com/ALRubinger/aileron/sandbox/engine"
)

func New(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Check everything that a session needs, and name the fix of what is wrong",
		Long: `Check what a session needs: the home, the disk, the network, the clock, the vault,
the connectors, the audit log with its chain, sessions that were killed and the
roots that they left in trust stores, the limits of this process, and the engines
with theirs. The resolver is asked for ipv4only.arpa. An engine that does not
respond is given up after 20 seconds. Nothing is changed, and no container is made.
The exit code is 1 if a line begins with FAIL; a warning needs a look.`,
		Example: `  aileron doctor
  aileron doctor --json`,
		Args: cli.UsageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return examine(cmd.Context(), a) },
	}
}

// examine prints the findings as they come in, or all of them with --json.
func examine(ctx context.Context, a *cli.App) error {
	all, isHealthy := []doctor.Finding{}, true
	d := &doctor.Doctor{Dir: a.Dir, Unlocker: &a.Unlocker, Sessions: a.Lister,
		Patience: func() engine.Patience { return a.Patience(config.Sandbox{}) }, // config.toml may be what is wrong
		Found: func(f doctor.Finding) {
			all = append(all, f)
			isHealthy = isHealthy && f.State != doctor.StateFail
			if !a.JSON {
				printFinding(a.FittedOut(), f)
			}
		}}
	if err := d.Examine(ctx); err != nil {
		return err
	}
	if a.JSON {
		if err := a.PrintJSON(map[string]any{"ok": isHealthy, "checks": all}); err != nil {
			return err
		}
	}
	if !isHealthy {
		return console.Exit(1)
	}
	return nil
}

func printFinding(out io.Writer, f doctor.Finding) {
	state := f.State
	if state == doctor.StateFail {
		state = "FAIL"
	}
	fmt.Fprintf(out, "%-4s  %-10s  %s\n", state, f.Check, termsafe.Line(strings.Join(strings.Fields(f.Text), " ")))
	if f.Fix != "" {
		fmt.Fprintf(out, "%-18sfix: %s\n", "", termsafe.Line(f.Fix))
	}
}
