package audit

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/audit/internal/chain"
	"github.com/ALRubinger/aileron/audit/internal/table"
	"github.com/ALRubinger/aileron/e2e/must"
)

// signedFiles are the files of a home with a signed log.
var signedFiles = []string{databaseName, headName, witnessName, "audit.checkpoints", "vault/audit.key"}

// signedHome returns a home with two sessions, whose log has three signed heads: behind row 1000, and behind the last
// row of each session. kept is the head of its last row, as a person keeps it elsewhere.
func signedHome(t testing.TB) (home, kept string) {
	t.Helper()
	home = t.TempDir()
	path := filepath.Join(home, databaseName)
	for _, session := range []string{"first", "second"} {
		l := openSession(t, path, session)
		for i := range 2 {
			group := make([]*Row, 300)
			for j := range group {
				group[j] = &Row{Event: EventProxyProxied, SessionID: session, Host: fmt.Sprintf("h%d.example", i*300+j)}
			}
			must.Do(t, l.commit(group, table.Extra{}))
		}
		must.Do(t, l.AppendSoon(t.Context(), Row{Event: EventSessionEnded, SessionID: session}))
		closeLog(t, l)
	}
	return home, signedHeadOf(t, path)
}

func signedHeadOf(t testing.TB, path string) string {
	t.Helper()
	l := openReader(t, path)
	kept := must.Get(l.SignedHead(t.Context()))(t)
	return kept
}

func verifyWith(t testing.TB, path string, e Evidence) Report {
	t.Helper()
	l := openReader(t, path)
	report := must.Get(l.VerifyWith(t.Context(), e))(t)
	return report
}

func TestHeadsAreSignedAtTheEndOfASessionAndEvery1000Rows(t *testing.T) {
	home, kept := signedHome(t)
	path := filepath.Join(home, databaseName)
	report := verifyWith(t, path, Evidence{Heads: kept})
	if !report.OK || report.Rows != 1205 || report.Signed != 1204 || report.Kept != 1 {
		t.Errorf("Verify = %+v", report)
	}
	rows, err := openReader(t, path).List(t.Context(), Filter{Event: EventCheckpoint})
	if err != nil || len(rows) != 3 || rows[0].Seq != 602 || rows[1].Seq != 1001 || rows[2].Seq != 1205 {
		t.Fatalf("signed heads are in the rows %+v, %v", rows, err)
	}
	raw, err := os.ReadFile(chain.SignedHeadsPath(path))
	notes, rest := chain.SplitNotes(string(raw))
	if err != nil || len(notes) != 3 || rest != "" {
		t.Fatalf("audit.checkpoints has %d notes and %q: %v", len(notes), rest, err)
	}
	for i, n := range notes {
		if n != rows[i].Fields[chain.CheckpointField] {
			t.Errorf("note %d is %q, and its row has %q", i, n, rows[i].Fields[chain.CheckpointField])
		}
	}
	for _, name := range []string{"vault/audit.key", "audit.checkpoints"} {
		info, err := os.Stat(filepath.Join(home, name))
		if err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}

// A log that an earlier version wrote has no signed heads. It fits, and so do its rows behind which one is added.
func TestALogWithoutSignedHeadsFits(t *testing.T) {
	home := t.TempDir()
	path := history(t, home, "first", 20)
	if report := verifyPath(t, path); !report.OK || report.Signed != 0 {
		t.Errorf("Verify = %+v", report)
	}
	if _, err := os.Stat(chain.KeyPath(path)); err == nil {
		t.Error("there is a key, and nothing is signed")
	}
}

// A home in which no key can be made gets every row, and no signed head.
func TestALogWithoutAKeyIsWritten(t *testing.T) {
	home := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(home, "vault"), nil, 0o600))
	path := filepath.Join(home, databaseName)
	l := openSession(t, path, "first")
	appendNumbered(t, l, "first", 0)
	must.Do(t, l.AppendSoon(t.Context(), Row{Event: EventSessionEnded, SessionID: "first"}))
	closeLog(t, l)
	if report := verifyPath(t, path); !strings.Contains(whys(report), "not a directory") && !report.OK ||
		report.Rows != 2 || report.Signed != 0 {
		t.Errorf("Verify = %+v", report)
	}
}

// sqliteShell runs a script in Debian's SQLite shell, which shares no code with this program.
func sqliteShell(t testing.TB, path, script string) {
	t.Helper()
	shell, err := exec.LookPath("sqlite3")
	if err != nil {
		t.Skip("there is no sqlite3; scripts/prepare --tests installs it")
	}
	cmd := exec.CommandContext(t.Context(), shell, "-bail", path)
	cmd.Stdin = strings.NewReader("BEGIN;" + dropTriggers + script + ";COMMIT;")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("sqlite3: %v: %s", err, out)
	}
}

// forge changes rows, drops those for which change returns false, numbers and chains the others anew, and writes them
// by the SQLite shell. With heads set, audit.head and the witness fit the result.
func forge(t testing.TB, home string, heads bool, change func(*Row) bool) {
	t.Helper()
	path := filepath.Join(home, databaseName)
	rows := must.Get(openReader(t, path).List(t.Context(), Filter{}))(t)
	last := chain.Head{Hash: chain.ZeroHash}
	var script strings.Builder
	script.WriteString("DELETE FROM events;")
	for _, r := range rows {
		if !change(&r) {
			continue
		}
		fields := must.Get(r.Complete(last))(t)
		last = chain.Head{Seq: r.Seq, Hash: r.Hash}
		fmt.Fprintf(&script, "INSERT INTO events VALUES (%d,'%s','%s','%s','%s','%s','','','','','','','','','','%s',0,"+
			"'','',0,0,0,0,0,'%s','%s','%s');\n",
			r.Seq, r.ID, r.Stamp(), r.Event, r.SessionID, r.Source, r.Host, fields, r.PrevHash, r.Hash)
	}
	sqliteShell(t, path, script.String())
	if heads {
		remove(t, home, headName, witnessName)
		must.Do(t, chain.NewHeadFile(path).Begin(last))
	}
}

func plainEdit(r *Row) bool {
	if r.Seq == 7 {
		r.Host = "innocent.example"
	}
	return true
}

// TestTamperingByTheSQLiteShellIsFound changes a signed log in every way that a person with the SQLite shell has.
func TestTamperingByTheSQLiteShellIsFound(t *testing.T) {
	base, kept := signedHome(t)
	sql := func(script string) func(*testing.T, string) {
		return func(t *testing.T, home string) { sqliteShell(t, filepath.Join(home, databaseName), script) }
	}
	other, _ := signedHome(t)
	for _, c := range []struct {
		name string
		do   func(t *testing.T, home string)
		want string // of Verify; "": it finds nothing, and only the kept head does
		kept string // of Verify with the kept head
	}{
		{"a column edited", sql("UPDATE events SET host = 'x' WHERE seq = 7"),
			"its content does not have its hash", ""},
		{"the fields edited", sql(`UPDATE events SET fields = '{"a":1}' WHERE seq = 7`),
			"its content does not have its hash", ""},
		{"the time edited", sql("UPDATE events SET ts = '2020-01-02T03:04:05.000000000Z' WHERE seq = 7"),
			"its content does not have its hash", ""},
		{"a row inserted", sql("UPDATE events SET seq = -seq - 1 WHERE seq > 7; UPDATE events SET seq = -seq WHERE seq < 0;" +
			"INSERT INTO events SELECT 8, 'x', ts, event, session_id, source, decision, reason, connector_fqn, " +
			"connector_version, tool, operation, binding, method, scheme, host, port, path, http_version, status, " +
			"request_bytes, response_bytes, redactions, duration_us, fields, hash, prev_hash FROM events WHERE seq = 7"),
			"row 8 (x) is broken: its content does not have its hash", ""},
		{"a row deleted", sql("DELETE FROM events WHERE seq = 7"), "row 7 is missing before it", ""},
		{"the first rows deleted", sql("DELETE FROM events WHERE seq < 7"), "rows 1 to 6 are missing before it", ""},
		{"two rows swapped", sql("UPDATE events SET seq = 0 WHERE seq = 7; UPDATE events SET seq = 7 WHERE seq = 8;" +
			"UPDATE events SET seq = 8 WHERE seq = 0"), "its prev_hash is not the hash of the row before it", ""},
		{"the tail cut", sql("DELETE FROM events WHERE seq > 900"), "the log ends at row 900, and once had row 1205", ""},
		{"the tail cut, with its heads", func(t *testing.T, home string) {
			forge(t, home, true, func(r *Row) bool { return r.Seq <= 900 })
		}, "the log ends at row 900, and once had row 1000: audit.checkpoints has its hash", ""},
		{"a row edited, and chained again with its heads", func(t *testing.T, home string) {
			forge(t, home, true, plainEdit)
		}, "its signed head is row 601 with hash", ""},
		{"the same, without signed heads", func(t *testing.T, home string) {
			forge(t, home, true, func(r *Row) bool { return plainEdit(r) && r.Event != EventCheckpoint })
		}, "audit.checkpoints has another hash for row 601: expected", ""},
		{"a signed head forged, and chained again with its heads", func(t *testing.T, home string) {
			last := chain.Head{Hash: chain.ZeroHash}
			forge(t, home, true, func(r *Row) bool {
				if plainEdit(r); r.Event == EventCheckpoint {
					s, err := chain.ParseSignedHead(r.Fields[chain.CheckpointField].(string))
					text, failed := chain.CheckpointText(s.Origin, last)
					if err != nil || failed != nil {
						t.Fatal(err, failed)
					}
					_, signature, _ := strings.Cut(s.Note, "\n\n")
					r.Fields[chain.CheckpointField] = text + "\n" + signature
				}
				copied := *r
				must.Get(copied.Complete(last))(t)
				last = chain.Head{Seq: copied.Seq, Hash: copied.Hash}
				return true
			})
		}, "the signed head in row 602 has a signature that does not fit its text (and 2 more)", ""},
		{"wholly rewritten, with all that is beside it", func(t *testing.T, home string) {
			forge(t, home, true, func(r *Row) bool { return plainEdit(r) && r.Event != EventCheckpoint })
			remove(t, home, "audit.checkpoints")
		}, "", "the log ends at row 1202, and once had row 1205: the kept head has its hash"},
		{"rewritten by one who has the key", func(t *testing.T, home string) {
			path := filepath.Join(home, databaseName)
			k, err := chain.ReadKey(chain.KeyPath(path))
			if err != nil {
				t.Fatal(err)
			}
			last := chain.Head{Hash: chain.ZeroHash}
			forge(t, home, true, func(r *Row) bool {
				if plainEdit(r); r.Event == EventCheckpoint {
					if r.Fields[chain.CheckpointField], err = k.Sign(last); err != nil {
						t.Fatal(err)
					}
				}
				copied := *r
				must.Get(copied.Complete(last))(t)
				last = chain.Head{Seq: copied.Seq, Hash: copied.Hash}
				return true
			})
			must.Do(t, os.WriteFile(chain.SignedHeadsPath(path), nil, 0o600))
		}, "", "the kept head has another hash for row 1205: expected"},
		{"replaced by the log of another home", func(t *testing.T, home string) {
			replaceFiles(t, other, home, signedFiles...)
		}, "", "the kept head of row 1205 is signed by another key: " + chain.OriginPrefix},
		{"the key replaced", func(t *testing.T, home string) {
			replaceFiles(t, other, home, "vault/audit.key")
		}, "the signed head in row 602 is signed by another key: " + chain.OriginPrefix, ""},
		{"the key removed", func(t *testing.T, home string) {
			remove(t, home, "vault/audit.key")
		}, "the signed head in row 602 cannot be checked, because vault/audit.key is missing", ""},
		{"audit.checkpoints removed", func(t *testing.T, home string) {
			remove(t, home, "audit.checkpoints")
		}, "audit.checkpoints is missing, and rows have signed heads", ""},
		{"audit.checkpoints garbled", func(t *testing.T, home string) {
			must.Do(t, os.WriteFile(filepath.Join(home, "audit.checkpoints"), []byte("garbage\n"), 0o600))
		}, "audit.checkpoints has 8 bytes that are no signed head", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			home := t.TempDir()
			must.Do(t, os.Mkdir(filepath.Join(home, "vault"), 0o700))
			for _, name := range signedFiles {
				copyFile(t, filepath.Join(base, name), filepath.Join(home, name))
			}
			c.do(t, home)
			path := filepath.Join(home, databaseName)
			for _, w := range []struct {
				e    Evidence
				want string
			}{{Evidence{}, c.want}, {Evidence{Heads: kept}, c.kept}} {
				report := verifyWith(t, path, w.e)
				found := findingTexts(report)
				if w.e.Heads == "" && report.OK != (c.want == "") || w.e.Heads != "" && report.OK ||
					!strings.Contains(found, w.want) {
					t.Errorf("Verify with the head %.80q finds:\n%s; want %q", w.e.Heads, found, w.want)
				}
			}
		})
	}
}

func findingTexts(r Report) string {
	var b strings.Builder
	for _, f := range r.Findings {
		if f.ID != "" {
			fmt.Fprintf(&b, "row %d (%s) is broken: ", f.Seq, f.ID)
		}
		b.WriteString(f.Why + "\n")
	}
	return b.String()
}
