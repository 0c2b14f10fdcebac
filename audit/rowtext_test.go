package audit

import (
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/ALRubinger/aileron/audit/internal/chain"
	"github.com/ALRubinger/aileron/audit/internal/table"
	"github.com/ALRubinger/aileron/e2e/must"
)

// TestRowTextIsWhatIsHashed compares the fast way to read a row with the one by columns, for strings of all kinds.
func TestRowTextIsWhatIsHashed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.db")
	l := openTest(t, path)
	texts := []string{
		"", "plain", `quo"te`, "back\\slash", "<", ">", "&", "é", "\x00", "\n", "\x7f", "\xff", `","event":"x`, `"`, "}\n",
	}
	for i := range 400 {
		pick := func(n int) string {
			if k := (i/n + i*n) % (8 * len(texts)); k < len(texts) {
				return texts[k]
			}
			return "plain text"
		}
		r := Row{
			Event: EventProxyProxied, SessionID: pick(1), Host: pick(3), Path: pick(7), Reason: pick(11), Binding: pick(13),
			Port: i - 200, Fields: map[string]any{"request_id": pick(2), pick(5): i, "n": map[string]any{"request_id": "x"}},
		}
		if i%3 == 0 {
			r.Fields = map[string]any{"request_id": pick(2), pick(5): i}
		}
		must.Get(l.Append(t.Context(), r))(t)
	}
	s, err := l.db.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	plain := 0
	var parsed []chain.RowText
	err = table.EachText(t.Context(), s.Conn, func(seq int64, text string) error {
		var r chain.RowText
		if r.Parse(seq, text) {
			plain++
			parsed = append(parsed, r)
		}
		return nil
	})
	if err != nil || plain < 10 || plain > 300 {
		t.Fatalf("%d of 400 rows are unambiguous, %v", plain, err)
	}
	for _, r := range parsed {
		want := rowAt(t, l, r.Seq)
		request, _ := want.Fields["request_id"].(string)
		if r.Values[chain.CanonicalID] != want.ID || r.Values[chain.CanonicalEvent] != string(want.Event) ||
			r.Values[chain.CanonicalSession] != want.SessionID || r.Ts != want.TS.UnixNano() || r.RequestID() != request ||
			r.Hash != want.Hash || r.Prev != want.PrevHash {
			t.Errorf("row %d is %+v, want %+v", r.Seq, r, want)
		}
	}
	report, err := l.Verify(t.Context())
	if err != nil || !report.OK || report.Rows != 400 {
		t.Errorf("Verify = %+v, %v", report, err)
	}
}

// TestVerifyReadsWhatIsStored changes rows in ways that the constraints of the table rule out, so that only the file
// can be changed so. The columns of one line of the text must not pass for those of another.
func TestVerifyReadsWhatIsStored(t *testing.T) {
	for name, change := range map[string]string{
		"a value is lost":                  "UPDATE events SET reason = NULL WHERE seq = 3",
		"a hash is lost":                   "UPDATE events SET hash = NULL WHERE seq = 3",
		"a number is a text":               "UPDATE events SET status = 'x' WHERE seq = 3",
		"fields are lost":                  "UPDATE events SET fields = NULL WHERE seq = 3",
		"fields are no object":             "UPDATE events SET fields = '[]' WHERE seq = 3",
		"a line end is in a field":         "UPDATE events SET fields = fields || char(10) WHERE seq = 3",
		"a time is shifted":                "UPDATE events SET ts = host, host = ts WHERE seq = 3",
		"a value moves to the line before": "UPDATE events SET prev_hash = prev_hash || char(10), host = '' WHERE seq = 3",
		"a column has two": "UPDATE events SET method = method || '\",\"scheme\":\"' || scheme, scheme = " +
			"'' WHERE seq = 3",
		"the end of a hash is in the row": "UPDATE events SET fields = fields || '}' || char(10) || hash, hash = '' " +
			"WHERE seq = 3",
		"the row is in its prev_hash": "UPDATE events SET prev_hash = prev_hash || char(10) || '{\"seq\":3', id = '' " +
			"WHERE seq = 3",
	} {
		t.Run(name, func(t *testing.T) {
			path := history(t, t.TempDir(), "s", 5)
			db := must.Get(openLoose(path))(t)
			defer db.Close()
			must.Get(db.Exec(change))(t)
			report, err := openReader(t, path).Verify(t.Context())
			if err != nil || report.OK || report.BrokenSeq != 3 {
				t.Errorf("Verify = %+v, %v", report, err)
			}
		})
	}
}

// openLoose removes the constraints of a log's table.
func openLoose(path string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", path)
	if err == nil {
		_, err = db.Exec("ALTER TABLE events RENAME TO old; CREATE TABLE events AS SELECT * FROM old; DROP TABLE old")
	}
	return db, err
}

// TestALineOfARowEndsOnce moves the end of a row's fields to its hash: the text of the row is the same.
func TestALineOfARowEndsOnce(t *testing.T) {
	path := history(t, t.TempDir(), "s", 5)
	row := rowAt(t, openReader(t, path), 3)
	row.Chain(row.PrevHash, `{"a":{}}`+"\n")
	db := must.Get(openLoose(path))(t)
	defer db.Close()
	if _, err := db.Exec("UPDATE events SET fields = ?, hash = ? WHERE seq = 3", `{"a":{}`, "}\n"+row.Hash); err != nil {
		t.Fatal(err)
	}
	report, err := openReader(t, path).Verify(t.Context())
	if err != nil || report.OK || report.BrokenSeq != 3 {
		t.Errorf("Verify = %+v, %v", report, err)
	}
}
