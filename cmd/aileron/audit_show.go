package main

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/auditlog"
	"github.com/ALRubinger/aileron/internal/hint"
)

func newAuditShowCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "show ID",
		Short:   "Show one event in full",
		Example: "  aileron audit show 01JABCDEF…",
		Args:    usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := a.auditReader()
			if err != nil {
				return err
			}
			if l == nil {
				return hint.New(audit.ErrNotFound, "there is no audit log yet; it begins with the first session")
			}
			defer l.Close()
			row, err := l.Get(cmd.Context(), args[0])
			if errors.Is(err, audit.ErrNotFound) {
				return hint.New(err, "see the ids with: aileron audit list --json")
			}
			if err != nil {
				return auditlog.Hint(fmt.Errorf("show the audit event: %w", err))
			}
			if a.json {
				return a.printJSON(row)
			}
			raw, err := json.MarshalIndent(row, "", "  ")
			if err != nil {
				return err
			}
			fmt.Fprintln(a.stdout, string(raw))
			return nil
		},
	}
}
