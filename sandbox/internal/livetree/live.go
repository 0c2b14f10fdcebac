// Package livetree writes trees of files that a sandbox reads and only this host changes, before it starts and while it
// runs.
package livetree

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// File is one file, or directory, of a sandbox.
type File struct {
	Path string
	Mode fs.FileMode
	Data []byte
}

// Live is a tree in a sandbox that runs, which only this host can change. Its zero value is a tree without a
// place: the sandbox has the files of its start.
type Live struct {
	mu  sync.Mutex
	dir string             // on this host; "": there is none, or the sandbox has ended
	has map[string]content // what the sandbox reads, by path
}

// content identifies what a file has.
type content struct {
	mode fs.FileMode
	sum  [sha256.Size]byte
}

func contentOf(f File) content { return content{f.Mode, sha256.Sum256(f.Data)} }

// ErrNotLive is returned for a tree that cannot be changed: the sandbox is not sealed, or has ended.
var ErrNotLive = errors.New("the files of this sandbox cannot be changed")

// New returns the tree whose files were written to a directory of this host.
func New(dir string, files []File) *Live {
	t := &Live{dir: dir, has: map[string]content{}}
	for _, f := range files {
		t.has[f.Path] = contentOf(f)
	}
	return t
}

// Replace makes files the tree's. A program in the sandbox reads each of them as it was or as it is to be, never in
// part; those that are new are there before any is removed. After an error, some may be as they were: the next call
// writes them.
func (t *Live) Replace(files []File) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.dir == "" {
		return ErrNotLive
	}
	root, err := os.OpenRoot(t.dir)
	if err != nil {
		return fmt.Errorf("change the sandbox's files: %w", err)
	}
	defer root.Close()
	keep := map[string]bool{".": true}
	for _, f := range files {
		for at := filepath.Clean(f.Path); !keep[at]; at = filepath.Dir(at) {
			if !filepath.IsLocal(at) {
				return fmt.Errorf("change the sandbox's files: %s is not below its directory", f.Path)
			}
			keep[at] = true
		}
		if is := contentOf(f); t.has[f.Path] != is {
			if err := exchange(root, f); err != nil {
				return fmt.Errorf("change the sandbox's %s: %w", f.Path, err)
			}
			t.has[f.Path] = is
		}
	}
	return t.remove(root, keep)
}

// remove removes what is not to be kept, and directories that it leaves empty.
func (t *Live) remove(root *os.Root, keep map[string]bool) error {
	var gone []string
	for at := range t.has {
		if !keep[filepath.Clean(at)] {
			gone = append(gone, at)
		}
	}
	slices.Sort(gone)
	slices.Reverse(gone) // what is in a directory is before it
	for _, at := range gone {
		if err := root.Remove(at); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove the sandbox's %s: %w", at, err)
		}
		delete(t.has, at)
		for dir := filepath.Dir(at); !keep[dir] && root.Remove(dir) == nil; dir = filepath.Dir(dir) {
			delete(t.has, dir)
		}
	}
	return nil
}

// exchangeName is that of a file which is yet to get its own.
const exchangeName = ".aileron-new"

// exchange puts a file in the place of what is there, in one step.
func exchange(root *os.Root, f File) error {
	if f.Mode.IsDir() {
		return makePublic(root, f.Path)
	}
	if err := makePublic(root, filepath.Dir(f.Path)); err != nil {
		return err
	}
	_ = root.Remove(exchangeName) // of a call that failed
	err := root.WriteFile(exchangeName, f.Data, f.Mode.Perm())
	if err == nil {
		err = root.Chmod(exchangeName, f.Mode.Perm()) // whatever the umask
	}
	if err == nil {
		err = root.Rename(exchangeName, f.Path)
	}
	if err != nil {
		_ = root.Remove(exchangeName)
	}
	return err
}

// makePublic makes directories that the sandbox's user reads, whatever the umask.
func makePublic(root *os.Root, dir string) error {
	if info, err := root.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	if err := makePublic(root, filepath.Dir(dir)); err != nil {
		return err
	}
	if err := root.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return root.Chmod(dir, 0o755)
}

// End keeps the tree from being changed: its directory is about to be removed.
func (t *Live) End() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dir = ""
}
