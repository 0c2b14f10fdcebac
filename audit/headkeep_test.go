package audit

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit/internal/chain"
)

// A log that loses its rows again and again is unavailable: no request is admitted, and audit.head does not grow
// without limit.
func TestALogThatNeverKeepsItsRowsIsUnavailable(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, databaseName)
	l := openSession(t, path, "mine")
	appendNumbered(t, l, "mine", 0)
	execSQL(t, path, "CREATE TRIGGER thief AFTER INSERT ON events BEGIN DELETE FROM events WHERE seq = NEW.seq; END")
	var err error
	rows := 0
	for ; err == nil && rows < 2*chain.MaxKept; rows++ {
		whileIdle(t, l, func() { l.attested = time.Time{} })
		_, err = l.Append(t.Context(), Row{Event: EventProxyStarted, Status: rows})
	}
	if !errors.Is(err, ErrUnavailable) || !errors.Is(err, chain.ErrTooManyBreaches) || rows < chain.MaxKept/2 {
		t.Errorf("after %d rows Append returns %v; want %v", rows, err, chain.ErrTooManyBreaches)
	}
	_ = l.Close()
	info, err := os.Stat(filepath.Join(dir, headName))
	if err != nil || info.Size() > (2*chain.MaxKept+2)*chain.LineSize {
		t.Errorf("audit.head has %d bytes, %v", info.Size(), err)
	}
	if _, report := all(t, path); report.OK {
		t.Error("Verify finds nothing")
	}
}
