package hostfiles

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// walk reads one tree.
type walk struct {
	ctx     context.Context //nolint:containedctx // a walk is one call
	root    *os.Root
	prefix  string // before the paths of entries: "" for the project
	out     *Snapshot
	dirs    int
	entries int
	built   int // how many directories of builtDirs the walk is in
}

// list returns the entries of a directory, nil if the walk has reached a bound.
func (w *walk) list(at string, depth int) []fs.DirEntry {
	w.dirs++
	if w.dirs > maxDirs || w.entries > maxEntries || depth > maxDepth || w.ctx.Err() != nil {
		w.out.Incomplete = true
		return nil
	}
	f, err := w.root.OpenFile(at, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		w.out.Incomplete = true
		return nil
	}
	defer f.Close()
	entries, err := f.ReadDir(maxEntries)
	if err != nil && err != io.EOF {
		w.out.Incomplete = true
	}
	w.entries += len(entries)
	return entries
}

// dir reads a directory of the project.
func (w *walk) dir(at string, depth int) {
	entries := w.list(at, depth)
	if isBareRepository(entries) {
		w.gitDir(at, depth)
	}
	for _, e := range entries {
		name := path.Join(at, e.Name())
		when, whole := wholeDirs[e.Name()]
		switch {
		case e.Name() == ".git" && e.IsDir():
			w.gitDir(name, depth+1)
		case e.Name() == ".git":
			w.add(name, whenGit)
		case whole && e.IsDir():
			w.whole(name, when, depth+1)
		case whole:
			w.add(name, when)
		case e.IsDir() && builtDirs[e.Name()]:
			w.built++
			w.dir(name, depth+1)
			w.built--
		case e.IsDir() && !skipped[e.Name()]:
			w.dir(name, depth+1)
		case !e.IsDir():
			w.file(name, e)
		}
	}
}

// file watches a file by its name, or because it can be executed.
func (w *walk) file(at string, e fs.DirEntry) {
	if when := whenFile(at); when != "" {
		w.add(at, when)
		return
	}
	if !e.Type().IsRegular() || w.built > 0 {
		return
	}
	found, err := w.root.Lstat(at)
	if err == nil && found.Mode().IsRegular() && found.Mode()&0o111 != 0 {
		w.put(at, entry{when: whenExecuted, sum: stamp(found)})
	}
}

// whole watches every file of a directory.
func (w *walk) whole(at, when string, depth int) {
	for _, e := range w.list(at, depth) {
		name := path.Join(at, e.Name())
		if e.IsDir() {
			w.whole(name, when, depth+1)
			continue
		}
		w.add(name, when)
	}
}

// isBareRepository reports whether git takes the directory for a repository (gitrepository-layout(5)).
func isBareRepository(entries []fs.DirEntry) bool {
	found := 0
	for _, e := range entries {
		switch e.Name() {
		case "HEAD", "objects", "refs":
			found++
		}
	}
	return found == 3
}

// gitDir watches what git runs by itself: hooks, and settings that name programs.
func (w *walk) gitDir(at string, depth int) {
	for _, e := range w.list(at, depth) {
		name := path.Join(at, e.Name())
		switch e.Name() {
		case "config", "config.worktree":
			w.config(name)
		case "hooks":
			w.hooks(name, e, depth+1)
		case "info":
			w.add(path.Join(name, "attributes"), whenGit)
		case "commondir", "gitdir":
			w.add(name, whenGit)
		case "modules", "worktrees":
			w.gitDirs(name, e, depth+1)
		}
	}
}

// gitDirs watches the git directories of submodules and worktrees, at any depth: a submodule's name may have slashes.
func (w *walk) gitDirs(at string, e fs.DirEntry, depth int) {
	if !e.IsDir() {
		w.add(at, whenGit)
		return
	}
	entries := w.list(at, depth)
	for _, sub := range entries {
		if sub.Name() == "HEAD" {
			w.gitDir(at, depth)
			return
		}
	}
	for _, sub := range entries {
		if sub.IsDir() {
			w.gitDirs(path.Join(at, sub.Name()), sub, depth+1)
		}
	}
}

func (w *walk) hooks(at string, e fs.DirEntry, depth int) {
	if !e.IsDir() {
		w.add(at, whenGit)
		return
	}
	for _, hook := range w.list(at, depth) {
		if !strings.HasSuffix(hook.Name(), ".sample") {
			w.add(path.Join(at, hook.Name()), whenGit)
		}
	}
}

// config watches those settings of a git configuration that can make git run something.
func (w *walk) config(at string) {
	data, sum, ok := w.read(at)
	if !ok {
		return
	}
	if data == nil {
		w.put(at, entry{when: whenGit, sum: sum})
		return
	}
	if keys := riskySettings(data); len(keys) > 0 {
		w.put(at, entry{when: whenGit, sum: sumOf(canonical(keys)), keys: keys})
	}
}

// add watches what matters of a file, if it is there.
func (w *walk) add(at, when string) {
	data, sum, ok := w.read(at)
	if !ok {
		return
	}
	if path.Base(at) == "package.json" && data != nil {
		scripts, isJSON := scriptsOf(data)
		switch {
		case isJSON && scripts == nil:
			return
		case isJSON:
			sum = sumOf(scripts)
		}
	}
	w.put(at, entry{when: when, sum: sum})
}

func (w *walk) put(at string, e entry) {
	if len(w.out.entries) >= maxWatched {
		w.out.Incomplete = true
		return
	}
	if w.prefix != "" {
		at = path.Join(w.prefix, at)
	}
	w.out.entries[at] = e
}

// read returns the content of a regular file and its sum. data is nil for what is not read: a link, a special file, or
// one that is too large. ok is false if there is none.
func (w *walk) read(at string) (data []byte, sum string, ok bool) {
	info, err := w.root.Lstat(at)
	switch {
	case err != nil:
		return nil, "", false
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := w.root.Readlink(at)
		return nil, sumOf([]byte("link " + target)), err == nil
	case info.IsDir():
		return nil, "", false
	case !info.Mode().IsRegular(), info.Size() > maxFile:
		return nil, stamp(info), true
	}
	// Another process may put a pipe there meanwhile: O_NONBLOCK keeps it from holding us.
	f, err := w.root.OpenFile(at, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		w.out.Incomplete = true
		return nil, stamp(info), true
	}
	defer f.Close()
	if data, err = io.ReadAll(io.LimitReader(f, maxFile)); err != nil {
		return nil, stamp(info), true
	}
	return data, sumOf(fmt.Appendf(nil, "%o\n%s", info.Mode().Perm()&0o111, data)), true
}

// stamp returns what stands for the content of a file that is not read.
func stamp(info fs.FileInfo) string {
	return sumOf(fmt.Appendf(nil, "%v %d %d", info.Mode(), info.Size(), info.ModTime().UnixNano()))
}

// scriptsOf returns the scripts of a package.json in a form that does not depend on its layout, nil if it has none.
func scriptsOf(data []byte) (scripts []byte, isJSON bool) {
	var p struct {
		Scripts map[string]any `json:"scripts"`
	}
	if json.Unmarshal(data, &p) != nil {
		return nil, false
	}
	if len(p.Scripts) == 0 {
		return nil, true
	}
	var out bytes.Buffer
	_ = json.NewEncoder(&out).Encode(p.Scripts) // sorts the names
	return out.Bytes(), true
}
