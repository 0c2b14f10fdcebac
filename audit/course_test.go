package audit

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/audit/internal/chain"
	"github.com/ALRubinger/aileron/audit/internal/table"
	"github.com/ALRubinger/aileron/e2e/must"
)

// addForged chains rows to the newest one by the arithmetic of the seal, as a program with the database alone can.
func addForged(t testing.TB, home string, rows ...Row) {
	t.Helper()
	path := filepath.Join(home, databaseName)
	last := must.Get(openReader(t, path).db.Newest(t.Context()))(t)
	db := must.Get(sql.Open("sqlite", path))(t)
	defer db.Close()
	tx := must.Get(db.Begin())(t)
	for i := range rows {
		r := &rows[i]
		fields := must.Get(r.Complete(last))(t)
		last = chain.Head{Seq: r.Seq, Ts: r.TS, Hash: r.Hash}
		must.Get(tx.Exec(table.InsertRow, r.Seq, r.ID, r.Stamp(), r.Event, r.SessionID, r.Source, r.Decision, r.Reason,
			r.ConnectorFQN, r.ConnectorVersion, r.Tool, r.Operation, r.Binding, r.Method, r.Scheme, r.Host, r.Port, r.Path,
			r.HTTPVersion, r.Status, r.RequestBytes, r.ResponseBytes, r.Redactions, r.DurationUS, fields, r.PrevHash, r.Hash))(t)
	}
	must.Do(t, tx.Commit())
}

// withHead makes audit.head and the witness name the newest row, as a program with the home can.
func withHead(t testing.TB, home string) {
	t.Helper()
	path := filepath.Join(home, databaseName)
	h := chain.NewHeadFile(path)
	must.Do(t, h.Begin(must.Get(openReader(t, path).db.Newest(t.Context()))(t)))
	h.End(false)
}

// withoutClaims makes a reader not wait for a process that has yet to write its line of audit.head.
func withoutClaims(t testing.TB) {
	t.Helper()
	before := claimTimeout
	claimTimeout = 0
	t.Cleanup(func() { claimTimeout = before })
}

func requests(session string, n int) []Row {
	rows := make([]Row, n)
	for i := range rows {
		rows[i] = Row{Event: EventProxyProxied, SessionID: session, Host: fmt.Sprintf("forged%d.example", i)}
	}
	return rows
}

// Rows that were added with the arithmetic of the seal are findings, the next session reports them once, and nothing is
// signed behind them.
func TestAddedRowsAreFoundAndNotSigned(t *testing.T) {
	withoutClaims(t)
	for _, c := range []struct {
		name     string
		add      func(t *testing.T, home string)
		why      string // of Verify
		reason   string // of audit.broken
		expected float64
		found    string
	}{
		{"behind every line of audit.head", func(t *testing.T, home string) { addForged(t, home, requests("third", 3)...) },
			"rows 1206 to 1208 are behind row 1205, which is the newest that audit.head has",
			chain.ReasonRowAdded, 1205, "rows 1206 to 1208 behind it"},
		{"one row", func(t *testing.T, home string) { addForged(t, home, requests("third", 1)...) },
			"rows 1206 to 1206 are behind", chain.ReasonRowAdded, 1205, "rows 1206 to 1206 behind it"},
		{"of a session that had ended", func(t *testing.T, home string) {
			addForged(t, home, requests("second", 2)...)
			withHead(t, home)
		}, "row 1206 (", chain.ReasonRowAdded, 1205, "a row of a session that had ended behind it"},
		{"without the signed head of row 2000", func(t *testing.T, home string) {
			addForged(t, home, requests("third", 796)...)
			withHead(t, home)
		}, "no signed head follows row 2000", chain.ReasonUnsigned, 2000, "no signed head behind it"},
		{"up to row 2000", func(t *testing.T, home string) {
			addForged(t, home, requests("third", 795)...)
			withHead(t, home)
		}, "no signed head follows row 2000", chain.ReasonUnsigned, 2000, "no signed head behind it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			home, _ := signedHome(t)
			path := filepath.Join(home, databaseName)
			c.add(t, home)
			if report := verifyPath(t, path); report.OK || !strings.Contains(findingTexts(report), c.why) {
				t.Errorf("Verify finds:\n%s; want %q", findingTexts(report), c.why)
			}
			if head, err := openReader(t, path).SignedHead(t.Context()); !errors.Is(err, ErrRowsAdded) {
				t.Errorf("SignedHead = %q, %v", head, err)
			}
			signed := verifyPath(t, path).Signed
			for _, session := range []string{"fourth", "fifth"} {
				l := openSession(t, path, session)
				appendNumbered(t, l, session, 0)
				must.Do(t, l.AppendSoon(t.Context(), Row{Event: EventSessionEnded, SessionID: session}))
				closeLog(t, l)
			}
			rows, report := all(t, path)
			broken := wantOneBroken(t, rows, manipulation{reason: c.reason, found: c.found})
			if broken.SessionID != "fourth" || broken.Fields["expected_seq"] != c.expected {
				t.Errorf("audit.broken is %+v", broken)
			}
			if report.OK || report.Signed != signed {
				t.Errorf("Verify = %+v; signed up to %d before", report, signed)
			}
		})
	}
}

// The rows of a session that was killed before it wrote its line of audit.head are its own: its journal is there.
func TestRowsOfAKilledSessionAreItsOwn(t *testing.T) {
	withoutClaims(t)
	home := t.TempDir()
	path := history(t, home, "first", 3)
	heads := t.TempDir()
	l := must.Get(Open(path, Options{Session: NewID()}))(t)
	copyFile(t, filepath.Join(home, headName), filepath.Join(heads, headName))
	copyFile(t, filepath.Join(home, witnessName), filepath.Join(heads, witnessName))
	appendNumbered(t, l, l.opts.Session, 0)
	l.flush(t.Context())
	whileIdle(t, l, func() { // the process is killed here
		l.writer.timer.Stop()
		l.closed = true
	})
	l.checkpoints.Stop()
	l.health.Close()
	l.index.Close()
	l.tx.Close()
	must.Do(t, l.journal.File.Close())
	_ = l.db.SQL().Close()
	copyFile(t, filepath.Join(heads, headName), filepath.Join(home, headName))
	copyFile(t, filepath.Join(heads, witnessName), filepath.Join(home, witnessName))
	if report := verifyPath(t, path); !report.OK {
		t.Errorf("Verify = %+v", report)
	}
	history(t, home, "third", 3)
	if report := verifyPath(t, path); !report.OK {
		t.Errorf("behind another session, Verify = %+v", report)
	}
}

// A version before this one signed behind a whole transaction, and its rows had no other mark. Its log fits.
func TestTheCourseOfAnEarlierVersionFits(t *testing.T) {
	type row struct {
		seq    int64
		event  Event
		fields string
	}
	for _, c := range []struct {
		name string
		rows []row
		want int64
	}{
		{"signed late", []row{{998, EventCheckpoint, "{}"}, {999, "", ""}, {1000, "", ""}, {1001, "", ""},
			{1002, EventCheckpoint, "{}"}}, 0},
		{"signed too late", []row{{998, EventCheckpoint, "{}"}, {999, "", ""}, {1000, "", ""}, {1001, "", ""},
			{1002, EventCheckpoint, `{"every":1000}`}}, 1000},
		{"signed at once", []row{{998, EventCheckpoint, "{}"}, {999, "", ""}, {1000, "", ""},
			{1001, EventCheckpoint, `{"every":1000}`}}, 0},
		{"a signed head is row 1000", []row{{999, EventCheckpoint, "{}"}, {1000, EventCheckpoint, "{}"}, {1001, "", ""}}, 0},
		{"never signed", []row{{999, "", ""}, {1000, "", ""}, {1001, "", ""}}, 0},
		{"rows lost", []row{{998, EventCheckpoint, "{}"}, {999, "", ""}, {1000, "", ""}, {1004, "", ""}}, 0},
	} {
		var course chain.Course
		var got int64
		for _, r := range c.rows {
			if f := course.Row(r.seq, r.event, "", "", r.fields); f != nil {
				got = f.Seq
			}
		}
		if f := course.End(); f != nil {
			got = f.Seq
		}
		if got != c.want {
			t.Errorf("%s: a fault at row %d, want %d", c.name, got, c.want)
		}
	}
}

// A session signs with the files that it has open: an agent must not be able to prevent it by opening connections until
// no file can be opened.
func TestASessionSignsWithTheFilesThatItHasOpen(t *testing.T) {
	home, _ := signedHome(t)
	path := filepath.Join(home, databaseName)
	l := must.Get(Open(path, Options{Session: NewID()}))(t)
	appendNumbered(t, l, l.opts.Session, 0)
	l.flush(t.Context())
	must.Do(t, os.Rename(filepath.Join(home, "vault"), filepath.Join(home, "away")))
	must.Do(t, l.AppendSoon(t.Context(), Row{Event: EventSessionEnded, SessionID: l.opts.Session}))
	closeLog(t, l)
	must.Do(t, os.Rename(filepath.Join(home, "away"), filepath.Join(home, "vault")))
	if report := verifyPath(t, path); !report.OK || report.Signed != 1207 {
		t.Errorf("Verify = %+v", report)
	}
}
