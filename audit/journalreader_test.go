package audit

import (
	"path/filepath"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

// A reader lacks nothing of running sessions, nor of one that was killed.
func TestAReaderSeesWhatIsInJournals(t *testing.T) {
	path := filepath.Join(t.TempDir(), databaseName)
	deadJournal(t, path, NewID(), 5)
	session := NewID()
	l := openSession(t, path, session)
	defer l.Close()
	for i := range 100 {
		want := appendNumbered(t, l, session, i)
		reader := must.Get(OpenReader(path))(t)
		got, err := reader.Get(t.Context(), want.ID)
		if err != nil || got.Host != want.Host || reader.Unfolded() != 0 {
			t.Fatalf("Get = %+v, %v; %d rows are not folded", got, err, reader.Unfolded())
		}
		_ = reader.Close()
	}
	if rows, report := all(t, path); len(rows) != 1+5+100 || !report.OK {
		t.Errorf("%d rows, Verify = %+v", len(rows), report)
	}
}

// What a killed session left and cannot be added is counted, and changes nothing.
func TestAReaderOfALogThatCannotBeWrittenCountsWhatItLacks(t *testing.T) {
	impatient(t, &settleTimeout)
	path := filepath.Join(t.TempDir(), databaseName)
	deadJournal(t, path, NewID(), 5)
	refuse(t, path, "1")
	for range 2 {
		reader := must.Get(OpenReader(path))(t)
		report, err := reader.Verify(t.Context())
		if reader.Unfolded() != 5 || err != nil || !report.OK || report.Spilled != 5 {
			t.Errorf("%d rows are not folded, Verify = %+v, %v; want 5", reader.Unfolded(), report, err)
		}
		_ = reader.Close()
	}
}
