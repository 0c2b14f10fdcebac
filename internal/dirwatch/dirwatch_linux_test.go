package dirwatch

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/e2e/must"
)

// Each kind of change is reported, in directories that come later too.
func TestEachChangeIsReported(t *testing.T) {
	home := t.TempDir()
	deep := filepath.Join(home, "store", "deep")
	outside := filepath.Join(t.TempDir(), "new")
	write := func(path, text string) { must.Do(t, os.WriteFile(path, []byte(text), 0o600)) }
	w := must.Get(New(Dir{Path: home, Names: []string{"store"}},
		Dir{Path: filepath.Join(home, "store"), Deep: true}))(t)
	defer w.Close()
	follow := func() { must.Do(t, w.Follow()) }
	follow()
	for _, c := range []struct {
		what string
		do   func()
	}{
		{"a directory that comes later", func() { must.Do(t, os.Mkdir(filepath.Join(home, "store"), 0o700)) }},
		{"one in it", func() { must.Do(t, os.Mkdir(deep, 0o700)) }},
		{"a new file", func() { write(filepath.Join(deep, "file"), "a") }},
		{"its contents", func() { write(filepath.Join(deep, "file"), "b") }},
		{"its mode", func() { must.Do(t, os.Chmod(filepath.Join(deep, "file"), 0o640)) }},
		{"another in its place", func() { write(outside, "c"); must.Do(t, os.Rename(outside, filepath.Join(deep, "file"))) }},
		{"one less", func() { must.Do(t, os.Remove(filepath.Join(deep, "file"))) }},
		{"a directory that is moved", func() { must.Do(t, os.Rename(filepath.Join(home, "store"), outside)) }},
		{"and is back", func() { must.Do(t, os.Rename(outside, filepath.Join(home, "store"))) }},
		{"one that is removed", func() { must.Do(t, os.RemoveAll(deep)) }},
		{"home itself", func() { must.Do(t, os.Rename(home, outside)); must.Do(t, os.Rename(outside, home)) }},
	} {
		c.do()
		<-w.C // or the test hangs
		follow()
		// What was reported while it went on is of no interest.
		write(filepath.Join(home, "store-of-another"), c.what)
		select {
		case <-w.C:
		default:
		}
	}
}

// A mount over a directory, and a move above it, are seen by a look at it.
func TestAnotherDirectoryIsSeen(t *testing.T) {
	above := t.TempDir()
	home := filepath.Join(above, "above", "home")
	must.Do(t, os.MkdirAll(home, 0o700))
	w := must.Get(New(Dir{Path: home}, Dir{Path: filepath.Join(home, "none")}))(t)
	defer w.Close()
	must.Do(t, w.Follow())
	if w.Moved() {
		t.Error("nothing was moved")
	}
	must.Do(t, os.Rename(filepath.Join(above, "above"), filepath.Join(above, "away")))
	if !w.Moved() {
		t.Error("the move of the directory above is not seen")
	}
	must.Do(t, os.MkdirAll(home, 0o700))
	if !w.Moved() {
		t.Error("another directory in its place is not seen")
	}
}

// A file system of which the kernel does not see every change is not followed.
func TestAFileSystemThatIsNotSeenIsAnError(t *testing.T) {
	var s unix.Statfs_t
	if err := unix.Statfs("/proc/self", &s); err != nil {
		t.Skip("there is no /proc")
	}
	w := must.Get(New(Dir{Path: "/proc/self"}))(t)
	defer w.Close()
	if w.Follow() == nil {
		t.Error("/proc is followed")
	}
}

// Files that are not followed, beside those that are, are not reported.
func TestOtherFilesAreNotReported(t *testing.T) {
	w := must.Get(New(Dir{Path: t.TempDir(), Names: []string{"store"}}))(t)
	defer w.Close()
	must.Do(t, w.Follow())
	for number := range w.names {
		for name, want := range map[string]bool{"audit.db": false, "store": true, "": true} {
			w.reported(number, name)
			if got := len(w.C) == 1; got != want {
				t.Errorf("%q is reported: %v, want %v", name, got, want)
			}
			for len(w.C) > 0 {
				<-w.C
			}
		}
	}
}
