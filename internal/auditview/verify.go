package auditview

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/auditlog"
	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/review"
)

// Verify prints what does not verify: of the log, with the signed heads in the file heads if it is not empty; of a file
// of audit export; or of what was shipped to the database.
func (s *Source) Verify(ctx context.Context, heads string, e audit.Evidence, files []string) (err error) {
	if s.DB != "" {
		return s.verifyThere(ctx, e.Keys, heads != "" || e.Complete || len(files) > 0)
	}
	if e.Heads, err = ReadKept(s.Console, heads); err != nil {
		return err
	}
	if e.Complete && len(files) == 0 {
		return failure.Usagef("--complete is for a file of audit export; a home's log is always verified whole")
	}
	if len(files) > 0 {
		return s.verifyExport(files[0], e)
	}
	report, err := s.verifyHome(ctx, e)
	switch {
	case errors.Is(err, audit.ErrNoSignedHead):
		return hint.New(err, "it must have what aileron audit head printed")
	case err != nil:
		return auditlog.Hint(err)
	case *s.JSON:
		return s.printVerdict(report, report.OK)
	}
	return review.PrintReport(s.Console, report)
}

// printVerdict prints a report as JSON. The exit code is 1 if there are findings.
func (s *Source) printVerdict(report any, ok bool) error {
	if err := s.Console.PrintJSON(report); err != nil {
		return err
	}
	if !ok {
		return console.Exit(1)
	}
	return nil
}

// maxKept bounds the file of --head: 200,000 signed heads.
const maxKept = 64 << 20

// ReadKept reads the signed heads of a file, as aileron audit head prints them; - is standard input.
func ReadKept(con *console.Console, path string) (string, error) {
	if path == "" {
		return "", nil
	}
	from := con.Stdin
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

// verifyHome verifies the log of the home, even if its database is missing.
func (s *Source) verifyHome(ctx context.Context, e audit.Evidence) (audit.Report, error) {
	l, err := s.Dir.AuditReader()
	if err != nil {
		return audit.Report{}, err
	}
	if l != nil {
		defer l.Close()
		return l.VerifyWith(ctx, e)
	}
	home, err := s.Dir.Home()
	if err != nil {
		return audit.Report{}, err
	}
	report, err := audit.VerifyMissing(filepath.Join(home, "audit.db"), e)
	if errors.Is(err, fs.ErrNotExist) {
		return report, hint.New(errors.New("verify the audit log: there is none yet"), "it begins with the first session")
	}
	return report, err
}

// verifyExport verifies the rows of a file of audit export; - is standard input.
func (s *Source) verifyExport(path string, e audit.Evidence) error {
	from := s.Console.Stdin
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
	case *s.JSON:
		return s.printVerdict(report, report.OK)
	}
	return review.PrintExported(s.Console, report)
}
