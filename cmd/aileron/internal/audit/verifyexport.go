package audit

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/review"
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
	return review.PrintExported(a.Console, report)
}
