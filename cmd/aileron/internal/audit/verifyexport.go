package audit

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/review"
	"github.com/ALRubinger/aileron/internal/termsafe"
)

// verifyExport verifies the rows of a file of audit export; - is standard input.
func verifyExport(a *cli.App, path string, e audit.Evidence) error {
	var from io.Reader = a.Stdin
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return fmt.Errorf("verify the export: %w", err)
		}
		defer f.Close()
		from = f
	}
	report, err := audit.VerifyExport(from, e)
	switch {
	case errors.Is(err, audit.ErrNoSignedHead):
		return hint.New(err, "it must have what aileron audit head printed")
	case err != nil:
		return hint.New(fmt.Errorf("verify the export: %s: %w", path, err), "aileron audit export --format jsonl writes one")
	case a.JSON:
		return printVerdict(a, report, report.OK)
	}
	printExported(a, report)
	if report.OK {
		_, err := fmt.Fprintf(a.Stdout, "ok  %d rows, %d to %d  %s\n", report.Lines, report.First, report.Last, report.Head)
		return err
	}
	for _, f := range report.Findings[:min(len(report.Findings), MaxPrinted)] {
		fmt.Fprintf(a.Stdout, "broken  %s\n", termsafe.Line(review.FindingText(f)))
	}
	if more := len(report.Findings) + report.More - MaxPrinted; more > 0 {
		fmt.Fprintf(a.Stdout, "broken  %d findings more\n", more)
	}
	return hint.New(fmt.Errorf("verify the export: %s", termsafe.Line(review.FindingText(report.Findings[0]))),
		"the file or, before, the log was changed, or it is of another version: docs/audit.md explains each finding")
}

// printExported prints what the rows of an export can and cannot prove.
func printExported(a *cli.App, r audit.ExportReport) {
	if r.Pruned > 0 {
		a.Infof("aileron: %d rows before row %d had been pruned: a signed row stands for them", r.Pruned, r.First)
		if r.Absent -= r.Pruned; r.Pruned == r.First-1 {
			r.Gaps--
		}
	}
	if r.Absent > 0 {
		a.Infof("aileron: %d rows up to row %d are not in the export, in %d gaps: left out by a filter, or removed later",
			r.Absent, r.Last, r.Gaps)
	}
	if len(r.Signers) > 0 {
		a.Infof("aileron: signatures were not verified; name the public key with --key: %s", strings.Join(r.Signers, ", "))
	}
	if r.Signed > 0 && len(r.Signers) == 0 {
		a.Infof("aileron: signed up to row %d by %s", r.Signed, r.SignedBy)
	}
	if r.Kept > 0 && r.OK {
		a.Infof("aileron: the export has the rows of %d kept heads", r.Kept)
	}
}
