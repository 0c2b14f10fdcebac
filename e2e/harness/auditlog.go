package harness

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/ALRubinger/aileron/audit"
)

// AuditRows returns the selected rows of the audit log in home, oldest first; none if there is no log. It reads the log
// as commands of aileron do: with the rows that sessions have in their journals. A reader that opens the database
// itself, or once for several reads, finds a row of a running session up to 200 ms later.
func AuditRows(t testing.TB, home string, filter audit.Filter) []audit.Row {
	t.Helper()
	log, err := audit.OpenReader(filepath.Join(home, "audit.db"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Errorf("open the audit log: %v", err)
		return nil
	}
	defer log.Close()
	rows, err := log.List(context.Background(), filter) // cleanups read it too
	if err != nil {
		t.Errorf("read the audit log: %v", err)
	}
	return rows
}
