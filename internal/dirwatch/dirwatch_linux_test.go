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

// What is reported needs no look: a session that rests would wake up for it.
func TestAnotherDirectoryIsReported(t *testing.T) {
	for name, c := range map[string]struct {
		links  bool // the directory is named by a link
		root   bool // it needs root
		change func(t *testing.T, above, home string)
	}{
		"a move above": {change: func(t *testing.T, above, _ string) {
			must.Do(t, os.Rename(filepath.Join(above, "above"), filepath.Join(above, "away")))
		}},
		"a mount over it": {root: true, change: func(t *testing.T, _, home string) {
			must.Do(t, unix.Mount("none", home, "tmpfs", 0, ""))
			t.Cleanup(func() { _ = unix.Unmount(home, unix.MNT_DETACH) })
		}},
		"a mount above": {root: true, change: func(t *testing.T, above, _ string) {
			must.Do(t, unix.Mount("none", above, "tmpfs", 0, ""))
			t.Cleanup(func() { _ = unix.Unmount(above, unix.MNT_DETACH) })
		}},
		"a link": {links: true},
	} {
		t.Run(name, func(t *testing.T) {
			above := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
			home := filepath.Join(above, "above", "home")
			must.Do(t, os.MkdirAll(filepath.Join(home, "store"), 0o700))
			if c.links {
				link := filepath.Join(above, "link")
				must.Do(t, os.Symlink("above", link))
				home = filepath.Join(link, "home")
			}
			if c.root && os.Geteuid() != 0 {
				t.Skip("only root mounts")
			}
			dirs := []Dir{{Path: home, Names: []string{"store", "none"}}}
			if !c.links {
				dirs = append(dirs, Dir{Path: filepath.Join(home, "store")}, Dir{Path: filepath.Join(home, "none")})
			}
			w := must.Get(New(dirs...))(t)
			defer w.Close()
			must.Do(t, w.Follow())
			if got := w.Complete(); got == c.links {
				t.Fatalf("Complete = %v", got)
			}
			if c.links {
				return
			}
			c.change(t, above, home)
			<-w.C // or the test hangs
			if !w.Moved() {
				t.Error("it is reported, and nothing was moved")
			}
		})
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
