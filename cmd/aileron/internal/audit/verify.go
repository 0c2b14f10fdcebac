package audit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/auditlog"
	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/review"
)

func newAuditVerifyCommand(a *cli.App) *cobra.Command {
	var heads string
	var evidence audit.Evidence
	cmd := &cobra.Command{
		Use:   "verify [FILE.jsonl]",
		Short: "Check the chain of hashes, the heads kept outside the log, and signatures",
		Long: "Check the chain of hashes, every head that is kept outside the log, and the signed\n" +
			"heads, and list what does not match. The exit code is 0 if everything matches, and 1\n" +
			"otherwise. With --head, the log must also have the rows that aileron audit head printed\n" +
			"earlier: a log that was replaced together with all that is kept beside it lacks them.\n\n" +
			"With a file of aileron audit export, its rows are checked instead, and no home is read.\n" +
			"Signatures are then checked with the public keys of --key; --complete allows no gaps.",
		Example: "  aileron audit verify --head /mnt/elsewhere/aileron.head",
		Args:    cli.UsageArgs(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, files []string) error {
			var err error
			if evidence.Heads, err = readKept(a, heads); err != nil {
				return err
			}
			if evidence.Complete && len(files) == 0 {
				return failure.Usagef("--complete is for a file of audit export; a home's log is always verified whole")
			}
			if len(files) > 0 {
				return verifyExport(a, files[0], evidence)
			}
			report, err := verifyAudit(cmd.Context(), a, evidence)
			if errors.Is(err, audit.ErrNoSignedHead) {
				return hint.New(err, "it must have what aileron audit head printed")
			}
			if err != nil {
				return auditlog.Hint(err)
			}
			if a.JSON {
				return printVerdict(a, report, report.OK)
			}
			return review.PrintReport(a.Console, report)
		},
	}
	cmd.Flags().StringVar(&heads, "head", "", "a file with signed heads of aileron audit head; - for standard input")
	cmd.Flags().BoolVar(&evidence.Complete, "complete", false, "the file must have every row up to its last one")
	cmd.Flags().StringArrayVar(&evidence.Keys, "key", nil, "a further public key that signed heads may have")
	return cmd
}

// printVerdict prints a report as JSON. The exit code is 1 if there are findings.
func printVerdict(a *cli.App, report any, ok bool) error {
	if err := a.PrintJSON(report); err != nil {
		return err
	}
	if !ok {
		return console.Exit(1)
	}
	return nil
}

// maxKept bounds the file of --head: 200,000 signed heads.
const maxKept = 64 << 20

// readKept reads the signed heads of --head.
func readKept(a *cli.App, path string) (string, error) {
	if path == "" {
		return "", nil
	}
	from := a.Stdin
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return "", fmt.Errorf("read the kept head: %w", err)
		}
		defer f.Close()
		from = f
	}
	raw, err := io.ReadAll(io.LimitReader(from, maxKept))
	if err != nil {
		return "", fmt.Errorf("read the kept head: %w", err)
	}
	if len(raw) == 0 {
		return "", hint.New(fmt.Errorf("read the kept head: %s is empty", path), "aileron audit head > FILE makes one")
	}
	return string(raw), nil
}

// verifyAudit verifies the log of the home, even if its database is missing.
func verifyAudit(ctx context.Context, a *cli.App, e audit.Evidence) (audit.Report, error) {
	l, err := a.AuditReader()
	if err != nil {
		return audit.Report{}, err
	}
	if l != nil {
		defer l.Close()
		return l.VerifyWith(ctx, e)
	}
	home, err := a.Home()
	if err != nil {
		return audit.Report{}, err
	}
	report, err := audit.VerifyMissing(filepath.Join(home, "audit.db"), e)
	if errors.Is(err, fs.ErrNotExist) {
		return report, hint.New(errors.New("verify the audit log: there is none yet"), "it begins with the first session")
	}
	return report, err
}
