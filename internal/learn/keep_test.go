package learn

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/must"
)

// notesAt writes notes of a session, of so many bytes, as if it had ended so many days ago.
func notesAt(t *testing.T, home string, n, days, size int) string {
	t.Helper()
	id := fmt.Sprintf("01M8JFKDHS0E5DX327S2%06d", n)
	path := NotesPath(home, id)
	must.Do(t, os.MkdirAll(filepath.Dir(path), 0o700))
	must.Do(t, os.WriteFile(path, nil, 0o600))
	must.Do(t, os.Truncate(path, int64(size)))
	at := time.Now().AddDate(0, 0, -days)
	must.Do(t, os.Chtimes(path, at, at))
	return id
}

func TestOldNotesArePruned(t *testing.T) {
	home := t.TempDir()
	before := time.Now().AddDate(0, 0, -30)
	if n, err := PruneNotes(home, before, func(string) bool { return false }); n != 0 || err != nil {
		t.Fatalf("a home without notes: %d, %v", n, err)
	}
	old, runs, fresh := notesAt(t, home, 1, 40, 9), notesAt(t, home, 2, 50, 9), notesAt(t, home, 3, 1, 9)
	others := []string{"mine.jsonl", "01m8jfkdhs0e5dx327s2000009.txt", ".jsonl"}
	for _, name := range others {
		path := filepath.Join(home, "learn", name)
		must.Do(t, os.WriteFile(path, nil, 0o600))
		must.Do(t, os.Chtimes(path, before.AddDate(-1, 0, 0), before.AddDate(-1, 0, 0)))
	}
	elsewhere := filepath.Join(t.TempDir(), "file")
	must.Do(t, os.WriteFile(elsewhere, nil, 0o600))
	link := NotesPath(home, "01M8JFKDHS0E5DX327S2000008")
	must.Do(t, os.Symlink(elsewhere, link))
	n, err := PruneNotes(home, before, func(id string) bool { return id == runs })
	if n != 1 || err != nil {
		t.Errorf("%d were removed, %v", n, err)
	}
	for path, want := range map[string]bool{NotesPath(home, old): false, NotesPath(home, runs): true,
		NotesPath(home, fresh): true, link: true, elsewhere: true, filepath.Join(home, "learn", others[0]): true,
		filepath.Join(home, "learn", others[1]): true, filepath.Join(home, "learn", others[2]): true} {
		if _, err := os.Lstat(path); (err == nil) != want {
			t.Errorf("%s is there: %v", path, err == nil)
		}
	}
}

func TestTheNotesOfAHomeAreBounded(t *testing.T) {
	home := t.TempDir()
	for i := range maxKept + 3 {
		notesAt(t, home, i, 20-i/100, 100)
	}
	never := time.Time{}
	none := func(string) bool { return false }
	if n, err := PruneNotes(home, never, none); n != 3 || err != nil {
		t.Errorf("of %d, %d were removed, %v", maxKept+3, n, err)
	}
	if _, err := os.Stat(NotesPath(home, "01M8JFKDHS0E5DX327S2000002")); err == nil {
		t.Error("the oldest is there")
	}
	n, err := PruneNotes(home, never, none)
	if n != 0 || err != nil {
		t.Errorf("within the bounds, %d were removed, %v", n, err)
	}
	var size int64
	for _, e := range must.Get(os.ReadDir(filepath.Join(home, "learn")))(t) {
		size += must.Get(e.Info())(t).Size()
	}
	if size > maxKeptSize {
		t.Errorf("%d bytes are left", size)
	}
}

// Sessions that fill their files displace notes as large as theirs, and no others.
func TestNotesAreDisplacedByNoLargerOnes(t *testing.T) {
	home := t.TempDir()
	own := notesAt(t, home, 1, 80, maxKeptSize/maxKept)
	var full []string
	for i := range 3 * maxKeptSize / maxNotesSize {
		full = append(full, notesAt(t, home, 100+i, 20, maxNotesSize))
	}
	n, err := PruneNotes(home, time.Time{}, func(string) bool { return false })
	if want := len(full) - maxKeptSize/maxNotesSize + 1; n != want || err != nil {
		t.Errorf("%d were removed, %v, want %d", n, err, want)
	}
	for id, want := range map[string]bool{own: true, full[0]: false, full[len(full)-1]: true} {
		if _, err := os.Stat(NotesPath(home, id)); (err == nil) != want {
			t.Errorf("the notes of %s are there: %v, want %v", id, err == nil, want)
		}
	}
}

// Notes are as old as the end of their session, not as their last note.
func TestNotesAreAsOldAsTheEnd(t *testing.T) {
	path := NotesPath(t.TempDir(), "01M8JFKDHS0E5DX327S2000001")
	notes := must.Get(CreateNotes(path))(t)
	began := time.Now().AddDate(0, 0, -100)
	must.Do(t, os.Chtimes(path, began, began))
	must.Do(t, notes.Close())
	if at := must.Get(os.Stat(path))(t).ModTime(); at.Before(began.AddDate(0, 0, 99)) {
		t.Errorf("the notes are of %v, want the end of the session", at)
	}
}
