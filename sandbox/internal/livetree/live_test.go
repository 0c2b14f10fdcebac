package livetree

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

// treeOf returns the files below a directory, with what they have.
func treeOf(t *testing.T, dir string) (list []string) {
	t.Helper()
	must.Do(t, filepath.WalkDir(dir, func(at string, d fs.DirEntry, err error) error {
		if err != nil || at == dir {
			return err
		}
		info := must.Get(d.Info())(t)
		line := fmt.Sprintf("%s %v", must.Get(filepath.Rel(dir, at))(t), info.Mode())
		if !d.IsDir() {
			line += " " + string(must.Get(os.ReadFile(at))(t))
		}
		list = append(list, line)
		return nil
	}))
	return list
}

func TestALiveTreeBecomesWhatItIsReplacedBy(t *testing.T) {
	old := syscall.Umask(0o077) // the sandbox's user is another one
	defer syscall.Umask(old)
	file := func(at, text string, mode fs.FileMode) File { return File{at, mode, []byte(text)} }
	first := []File{{Path: "keep", Mode: fs.ModeDir | 0o755}, file("a", "one", 0o644), file("deep/er/b", "two", 0o755)}
	dir := filepath.Join(t.TempDir(), "tree")
	must.Do(t, Write(dir, first))
	tree := New(dir, first)
	for _, step := range []struct {
		files []File
		want  []string
	}{
		{first, []string{"a -rw-r--r-- one", "deep drwxr-xr-x", "deep/er drwxr-xr-x", "deep/er/b -rwxr-xr-x two",
			"keep drwxr-xr-x"}},
		{[]File{first[0], file("a", "three", 0o755), file("new/c", "four", 0o644)},
			[]string{"a -rwxr-xr-x three", "keep drwxr-xr-x", "new drwxr-xr-x", "new/c -rw-r--r-- four"}},
		{[]File{first[0]}, []string{"keep drwxr-xr-x"}},
	} {
		must.Do(t, tree.Replace(step.files))
		if got := treeOf(t, dir); !slices.Equal(got, step.want) {
			t.Errorf("the tree is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(step.want, "\n"))
		}
	}
	if err := tree.Replace([]File{file("../x", "out", 0o644)}); err == nil || !strings.Contains(err.Error(), "not below") {
		t.Errorf("a file outside of the tree: %v", err)
	}
	tree.End()
	if err := tree.Replace(first); !errors.Is(err, ErrNotLive) {
		t.Errorf("after the end: %v", err)
	}
	if err := new(Live).Replace(first); !errors.Is(err, ErrNotLive) {
		t.Errorf("without a place: %v", err)
	}
}

// What was written before an error is not written again, and what was not is.
func TestALiveTreeIsCompletedAfterAnError(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tree")
	must.Do(t, Write(dir, nil))
	tree := New(dir, nil)
	must.Do(t, os.MkdirAll(filepath.Join(dir, exchangeName, "in the way"), 0o700))
	files := []File{{"a", 0o644, []byte("one")}}
	if err := tree.Replace(files); err == nil {
		t.Fatal("a file was written through what is in its way")
	}
	must.Do(t, os.RemoveAll(filepath.Join(dir, exchangeName)))
	must.Do(t, tree.Replace(files))
	if got := treeOf(t, dir); !slices.Equal(got, []string{"a -rw-r--r-- one"}) {
		t.Errorf("the tree is %q", got)
	}
}

// A reader sees a file as it was, or as it is.
func TestNoReaderSeesAHalfFile(t *testing.T) {
	texts := [][]byte{bytes.Repeat([]byte("a"), 32<<10), bytes.Repeat([]byte("b"), 20<<10)}
	files := func(i int) []File { return []File{{"tools.txt", 0o644, texts[i%2]}} }
	dir := filepath.Join(t.TempDir(), "tree")
	must.Do(t, Write(dir, files(0)))
	tree := New(dir, files(0))
	done := make(chan struct{})
	var reading sync.WaitGroup
	reading.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			got, err := os.ReadFile(filepath.Join(dir, "tools.txt"))
			if err != nil || !bytes.Equal(got, texts[0]) && !bytes.Equal(got, texts[1]) {
				t.Errorf("a reader got %d bytes, %v", len(got), err)
				return
			}
		}
	})
	for i := range 200 {
		must.Do(t, tree.Replace(files(i)))
	}
	close(done)
	reading.Wait()
}
