package review

import (
	"fmt"
	"strings"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/termsafe"
)

// MaxPrinted bounds the findings that are printed for a person; --json lists more.
const MaxPrinted = 20

// PrintReport lists the findings of a log, and returns the first one as the error.
func PrintReport(a *console.Console, r audit.Report) error {
	if r.OK {
		_, err := fmt.Fprintf(a.Stdout, "ok  %d rows  %s\n", r.Rows, r.Head)
		printSigned(a, r)
		printOutcomes(a, r)
		return err
	}
	printOutcomes(a, r)
	total := len(r.Findings) + r.More
	if r.Missing {
		fmt.Fprintf(a.Stdout, "broken  audit.db is missing, and what is kept beside it names rows: %d findings\n", total)
	}
	for _, f := range r.Findings[:min(len(r.Findings), MaxPrinted)] {
		fmt.Fprintf(a.Stdout, "broken  %s\n", termsafe.Line(FindingText(f)))
	}
	if total > MaxPrinted {
		fmt.Fprintf(a.Stdout, "broken  %d findings more; --json lists up to %d\n", total-MaxPrinted, len(r.Findings))
	}
	remedy := "the database or its heads were changed, or a power cut took rows; docs/audit.md explains each finding"
	if r.Damaged {
		remedy = "end the sessions of this home, then run: aileron audit recover (it keeps the old file)"
	}
	return hint.New(fmt.Errorf("verify the audit log: %s", termsafe.Line(FindingText(r.Findings[0]))), "%s", remedy)
}

// printSigned prints what signatures prove.
func printSigned(a *console.Console, r audit.Report) {
	if r.Signed > 0 {
		a.Infof("aileron: signed up to row %d by %s", r.Signed, r.SignedBy)
	}
	if r.Kept > 0 {
		a.Infof("aileron: the log has the rows of %d kept heads", r.Kept)
	}
	if r.KeptPruned > 0 {
		a.Infof("aileron: %d kept heads are of rows that were pruned, and were not compared", r.KeptPruned)
	}
	if p := r.Pruned; p != nil {
		a.Infof("aileron: rows %d to %d were pruned: row %d stands for them, and is signed", p.First, p.Last, p.Seq)
	}
	if r.Left > 0 {
		a.Infof("aileron: %d of them are still there, because the prune was killed; the next one removes them", r.Left)
	}
}

// printOutcomes prints the number of requests whose outcome the log does not have.
func printOutcomes(a *console.Console, r audit.Report) {
	if r.Unknown > 0 {
		a.Infof("aileron: unknown outcomes: %d; list them with: aileron audit list --event %s",
			r.Unknown, audit.EventProxyUnknown)
	}
	if r.Open > 0 {
		a.Infof("aileron: requests without an outcome: %d; they are in progress, or their session was killed", r.Open)
	}
	if r.Spilled > 0 {
		a.Infof("aileron: rows in the journals of sessions: %d; they are added as soon as the log can be written", r.Spilled)
	}
}

// PrintExported lists what was found in a file of audit export, and returns the first finding as the error.
func PrintExported(a *console.Console, report audit.ExportReport) error {
	printProven(a, report)
	if report.OK {
		_, err := fmt.Fprintf(a.Stdout, "ok  %d rows, %d to %d  %s\n", report.Lines, report.First, report.Last, report.Head)
		return err
	}
	for _, f := range report.Findings[:min(len(report.Findings), MaxPrinted)] {
		fmt.Fprintf(a.Stdout, "broken  %s\n", termsafe.Line(FindingText(f)))
	}
	if more := len(report.Findings) + report.More - MaxPrinted; more > 0 {
		fmt.Fprintf(a.Stdout, "broken  %d findings more\n", more)
	}
	return hint.New(fmt.Errorf("verify the export: %s", termsafe.Line(FindingText(report.Findings[0]))),
		"the file or, before, the log was changed, or it is of another version: docs/audit.md explains each finding")
}

// printProven prints what the rows of an export can and cannot prove.
func printProven(a *console.Console, r audit.ExportReport) {
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
