package audit

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A process may be killed between the commit of the rows of a file and its removal.
func TestSpilledRowsAreAddedOnce(t *testing.T) {
	for _, committed := range []int{0, 2, 4} {
		dir := t.TempDir()
		path := filepath.Join(dir, database)
		session := NewID()
		file := oldSpill(t, path, session, 4)
		copyFile(t, file, filepath.Join(dir, "copy"))
		if committed > 0 {
			l := openSession(t, path, "")
			closeLog(t, l)
			execSQL(t, path, "DELETE FROM events WHERE seq > ?", committed+1)
			remove(t, dir, headName, witnessName)
			copyFile(t, filepath.Join(dir, "copy"), file)
		}
		for range 2 {
			closeLog(t, openSession(t, path, ""))
			copyFile(t, filepath.Join(dir, "copy"), file)
		}
		rows, _ := all(t, path)
		count := 0
		for _, r := range rows {
			if r.Fields[fieldSpilled] == true {
				count++
			}
		}
		if count != 4 {
			t.Errorf("with %d rows committed before: %d rows of the file are in the log, want 4", committed, count)
		}
	}
}

func TestASpillFileThatASessionDidNotWriteIsKeptAside(t *testing.T) {
	edit := func(old, with string) func([]byte) []byte {
		return func(raw []byte) []byte { return bytes.Replace(raw, []byte(old), []byte(with), 1) }
	}
	for _, c := range []struct {
		name string
		do   func(raw []byte) []byte
		why  string
	}{
		{"a status", edit(`"status":201`, `"status":404`), "line 3 is not a row"},
		{"an unknown column", edit(`"status":201`, `"st4tus":201`), "line 3 is not a row"},
		{"a row removed", func(raw []byte) []byte {
			lines := bytes.SplitAfter(raw, []byte{'\n'})
			return bytes.Join(append(lines[:1:1], lines[2:]...), nil)
		}, "line 2 is not a row"},
		{"a row doubled", func(raw []byte) []byte {
			lines := bytes.SplitAfter(raw, []byte{'\n'})
			return bytes.Join(append(lines[:2:2], lines[1:]...), nil)
		}, "line 3 is not a row"},
		{"another session", edit(`"session":"0`, `"session":"1`), "not the header"},
		{"another version", edit(`{"aileron_spill":1`, `{"aileron_spill":2`), "not the header"},
		{"no hash", edit(`"after_hash":"`, `"after_hash":"x`), "not the header"},
		{"a zero inside", edit(`"status":201`, "\"status\":\x00201"), "a zero is between"},
		{"garbage", func([]byte) []byte { return []byte("garbage\nand more of it\n") }, "not the header"},
		{"too large", func(raw []byte) []byte {
			return append(raw, bytes.Repeat([]byte("x\n"), spillSize)...)
		}, "larger than"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), database)
			file := oldSpill(t, path, NewID(), 4)
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			raw = bytes.TrimRight(raw, "\x00")
			if err := os.WriteFile(file, c.do(raw), 0o600); err != nil {
				t.Fatal(err)
			}
			if s := spilled(t, path); len(s) != 1 || s[0].Err == nil || len(s[0].Rows) > 0 {
				t.Errorf("Spills = %+v", s)
			}
			for range 2 { // reported once
				closeLog(t, openSession(t, path, ""))
			}
			rows, report := all(t, path)
			if len(rows) != 2 || rows[1].Event != EventBroken || rows[1].Reason != reasonSpillChanged ||
				!strings.Contains(fmt.Sprint(rows[1].Fields["found"]), c.why) {
				t.Fatalf("%d rows, the last is %+v", len(rows), rows[len(rows)-1])
			}
			if report.OK || !strings.Contains(report.Why, "is kept as "+keptAside) {
				t.Errorf("Verify = %+v", report)
			}
			kept, err := os.ReadFile(filepath.Join(filepath.Dir(path), fmt.Sprint(rows[1].Fields["kept_as"])))
			if err != nil || !bytes.Equal(kept, c.do(raw)) {
				t.Errorf("what is kept aside has %d bytes, %v", len(kept), err)
			}
		})
	}
}

// The unused file of a killed session is removed; one that is locked is not.
func TestOnlyTheFilesOfEndedSessionsAreAdopted(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, database)
	l := openSession(t, path, NewID())
	spill := filepath.Join(dir, spillPrefix+NewID()+"-"+NewID())
	journal := filepath.Join(dir, journalPrefix+NewID()+"-"+NewID())
	for _, killed := range []string{spill, journal} {
		if err := os.WriteFile(killed, make([]byte, spillSize), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	closeLog(t, openSession(t, path, ""))
	for _, killed := range []string{spill, journal} {
		if _, err := os.Stat(killed); !os.IsNotExist(err) {
			t.Errorf("the file of a killed session is left: %v", err)
		}
	}
	if _, err := os.Stat(l.journal.path); err != nil || allocated(l.journal.file) < journalAhead {
		t.Errorf("the file of a session that runs: %v, %d bytes", err, allocated(l.journal.file))
	}
	closeLog(t, l)
	if all, _ := os.ReadDir(dir); len(all) > 3+len(sidecars) {
		t.Errorf("left: %v", all)
	}
}
