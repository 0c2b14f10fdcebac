package audit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/ALRubinger/aileron/audit/rebuild"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/auditlog"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/session"
	"github.com/ALRubinger/aileron/internal/termsafe"
)

func newAuditRecoverCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "recover",
		Short: "Recover a damaged log, and keep the old file",
		Long: "Copy every readable row of a damaged audit.db to a new one, in order and unchanged.\n" +
			"The old file is kept under another name; the event audit.recovered names it and the\n" +
			"rows that are lost. A log that is not damaged is left as it is. End the sessions of\n" +
			"this home first.",
		Example: "  aileron audit recover",
		Args:    cli.UsageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			done, err := recoverAudit(cmd.Context(), a)
			if err != nil {
				return err
			}
			if a.JSON {
				return a.PrintJSON(done)
			}
			_, err = fmt.Fprintln(a.Stdout, termsafe.Line(recoveryText(done)))
			return err
		},
	}
}

func recoverAudit(ctx context.Context, a *cli.App) (rebuild.Recovery, error) {
	home, conf, err := a.Settings()
	if err != nil {
		return rebuild.Recovery{}, err
	}
	opts := audit.Options{Durability: conf.Audit.Durability, OnBroken: auditlog.Reporter{Log: a.Logger()}.Broken}
	done, err := rebuild.Recover(ctx, filepath.Join(home, "audit.db"), opts, func() error {
		id, err := session.AnyAlive(home)
		if err == nil && id != "" {
			err = fmt.Errorf("%w: session %s runs", rebuild.ErrInUse, id)
		}
		return err
	})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return done, hint.New(errors.New("recover the audit log: there is no audit.db"),
			"put the file back if it was moved; aileron audit verify lists what is known of its rows")
	case errors.Is(err, rebuild.ErrInUse):
		return done, hint.New(err, "end the session with: aileron session stop ID (aileron session list shows it)")
	}
	return done, auditlog.Hint(err)
}

func recoveryText(r rebuild.Recovery) string {
	if !r.Needed {
		return "nothing to recover: every row of audit.db can be read"
	}
	text := fmt.Sprintf("recovered  %d rows, %d lost  the old file is %s", r.Rows, r.Lost, r.Kept)
	if r.Lost > 0 {
		text += "  lost: " + strings.Join(r.Missing, ", ")
	}
	return text
}
