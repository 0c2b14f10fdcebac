package audit

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/audit/internal/table"
)

// A commit that panics returns an error with the place of the panic.
func TestAPanicOfACommitIsAnErrorWithItsOrigin(t *testing.T) {
	l := &Log{path: filepath.Join(t.TempDir(), "audit.db")} // without a database
	err := l.commitOrFail(nil, table.Extra{})
	if err == nil || !strings.HasPrefix(err.Error(), "commit: it panicked at ") ||
		!strings.Contains(err.Error(), "audit.(*Log).") {
		t.Errorf("got %v", err)
	}
}
