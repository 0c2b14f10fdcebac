package audit

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A log that loses its rows again and again is unavailable: no request is admitted, and audit.head does not grow
// without limit.
func TestALogThatNeverKeepsItsRowsIsUnavailable(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, database)
	l := openSession(t, path, "mine")
	appendNumbered(t, l, "mine", 0)
	execSQL(t, path, "CREATE TRIGGER thief AFTER INSERT ON events BEGIN DELETE FROM events WHERE seq = NEW.seq; END")
	var err error
	rows := 0
	for ; err == nil && rows < 2*maxKept; rows++ {
		whileIdle(t, l, func() { l.attested = time.Time{} })
		_, err = l.Append(t.Context(), Row{Event: EventProxyStarted, Status: rows})
	}
	if !errors.Is(err, ErrUnavailable) || !errors.Is(err, errTooManyBreaches) || rows < maxKept/2 {
		t.Errorf("after %d rows Append returns %v; want %v", rows, err, errTooManyBreaches)
	}
	_ = l.Close()
	info, err := os.Stat(filepath.Join(dir, headName))
	if err != nil || info.Size() > (2*maxKept+2)*lineSize {
		t.Errorf("audit.head has %d bytes, %v", info.Size(), err)
	}
	if _, report := all(t, path); report.OK {
		t.Error("Verify finds nothing")
	}
}
