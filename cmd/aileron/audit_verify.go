package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/auditlog"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/termsafe"
)

func newAuditVerifyCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "verify",
		Short: "Check the chain of hashes and the heads kept outside the log",
		Long: "Check the chain of hashes and every head that is kept outside the log, and list what\n" +
			"does not match. The exit code is 0 if everything matches, and 1 otherwise. Keep the\n" +
			"printed hash elsewhere: a log that was replaced together with its heads lacks it.",
		Example: "  aileron audit verify",
		Args:    usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			report, err := a.verifyAudit(cmd.Context())
			if err != nil {
				return auditlog.Hint(err)
			}
			if a.json {
				if err := a.printJSON(report); err != nil {
					return err
				}
				if !report.OK {
					return exitError{1}
				}
				return nil
			}
			return a.printReport(report)
		},
	}
}

// verifyAudit verifies the log of the home, even if its database is missing.
func (a *app) verifyAudit(ctx context.Context) (audit.Report, error) {
	l, err := a.auditReader()
	if err != nil {
		return audit.Report{}, err
	}
	if l != nil {
		defer l.Close()
		return l.Verify(ctx)
	}
	home, err := a.Home()
	if err != nil {
		return audit.Report{}, err
	}
	report, err := audit.VerifyMissing(filepath.Join(home, "audit.db"))
	if errors.Is(err, fs.ErrNotExist) {
		return report, hint.New(errors.New("verify the audit log: there is none yet"), "it begins with the first session")
	}
	return report, err
}

// maxPrinted bounds the findings that are printed for a person; --json lists more.
const maxPrinted = 20

// printReport lists the findings, and returns the first one as the error.
func (a *app) printReport(r audit.Report) error {
	if r.OK {
		_, err := fmt.Fprintf(a.stdout, "ok  %d rows  %s\n", r.Rows, r.Head)
		a.printOutcomes(r)
		return err
	}
	a.printOutcomes(r)
	total := len(r.Findings) + r.More
	if r.Missing {
		fmt.Fprintf(a.stdout, "broken  audit.db is missing, and what is kept beside it names rows: %d findings\n", total)
	}
	for _, f := range r.Findings[:min(len(r.Findings), maxPrinted)] {
		fmt.Fprintf(a.stdout, "broken  %s\n", termsafe.Line(findingText(f)))
	}
	if total > maxPrinted {
		fmt.Fprintf(a.stdout, "broken  %d findings more; --json lists up to %d\n", total-maxPrinted, len(r.Findings))
	}
	remedy := "the database or its heads were changed, or a power cut took rows; docs/audit.md explains each finding"
	if r.Damaged {
		remedy = "end the sessions of this home, then run: aileron audit recover (it keeps the old file)"
	}
	return hint.New(fmt.Errorf("verify the audit log: %s", termsafe.Line(findingText(r.Findings[0]))), "%s", remedy)
}

// printOutcomes prints the number of requests whose outcome the log does not have.
func (a *app) printOutcomes(r audit.Report) {
	if r.Unknown > 0 {
		a.infof("aileron: unknown outcomes: %d; list them with: aileron audit list --event %s",
			r.Unknown, audit.EventProxyUnknown)
	}
	if r.Open > 0 {
		a.infof("aileron: requests without an outcome: %d; they are in progress, or their session was killed", r.Open)
	}
	if r.Spilled > 0 {
		a.infof("aileron: rows in a spill file: %d; they are added as soon as the log can be written", r.Spilled)
	}
}

func findingText(f audit.Finding) string {
	if f.Seq == 0 {
		return f.Why
	}
	if f.ID == "" {
		return fmt.Sprintf("row %d: %s", f.Seq, f.Why)
	}
	return fmt.Sprintf("row %d (%s) is broken: %s", f.Seq, f.ID, f.Why)
}
