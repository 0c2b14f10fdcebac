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
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/internal/system"
)

// walk reads one tree.
type walk struct {
	ctx      context.Context //nolint:containedctx // a walk is one call
	root     *os.Root
	prefix   string // before the paths of entries: "" for the project
	out      *Snapshot
	dirs     int
	entries  int
	programs int   // that can be executed, and are watched for that alone
	bytes    int64 // that were read
	built    int   // how many directories of builtDirs the walk is in
}

// enter counts a directory, and reports false if the walk has reached a bound.
func (w *walk) enter(depth int) bool {
	w.dirs++
	if w.dirs > maxDirs || w.entries > maxEntries || depth > maxDepth || w.ctx.Err() != nil {
		w.out.Incomplete = true
		return false
	}
	return true
}

// list returns the entries of a directory by its path, nil if the walk has reached a bound.
func (w *walk) list(at string, depth int) []fs.DirEntry {
	if !w.enter(depth) {
		return nil
	}
	l := w.open(at)
	defer l.close()
	return w.entriesOf(l, true)
}

// open opens a directory by its path.
func (w *walk) open(at string) *listing {
	f, err := w.root.OpenFile(at, dirFlags, 0)
	return &listing{f: f, err: err}
}

// entriesOf returns the entries of an open directory, all of them. built is whether it does not matter which of them
// can be executed.
func (w *walk) entriesOf(l *listing, built bool) []fs.DirEntry {
	if l.err == nil {
		l.read(maxEntries-len(l.entries), built)
	}
	if l.err != nil && l.err != io.EOF {
		w.out.Incomplete = true
	}
	w.entries += len(l.entries)
	return l.entries
}

// top reads the project.
func (w *walk) top() {
	if w.enter(0) {
		l := w.open(".")
		defer l.close()
		w.dir(l, ".", 0)
	}
}

// dir reads an open directory of the project. What matters most comes first: a sandbox may have made more than is
// looked at, so that something else is not found.
func (w *walk) dir(l *listing, at string, depth int) {
	entries := w.entriesOf(l, w.built > 0)
	if isBareRepository(entries) {
		w.gitDir(at, depth)
	}
	var below []fs.DirEntry
	for _, e := range byRank(entries) {
		name := e.Name()
		when, whole := wholeDirs[name]
		switch {
		case name == ".git" && e.IsDir():
			w.gitDir(path.Join(at, name), depth+1)
		case name == ".git":
			w.add(path.Join(at, name), whenGit)
		case whole && e.IsDir():
			w.whole(path.Join(at, name), when, depth+1)
		case whole:
			w.add(path.Join(at, name), when)
		case !e.IsDir():
			w.file(l, at, e)
		case !skipped[name]:
			below = append(below, e)
		}
	}
	w.below(l, at, below, depth+1)
}

// below reads directories of an open one, some of them ahead, until the walk has reached a bound.
func (w *walk) below(l *listing, at string, dirs []fs.DirEntry, depth int) {
	var ahead []func() *listing
	n := 0
	for ; n < len(dirs) && w.enter(depth); n++ {
		for len(ahead) < min(len(dirs), n+1+lookAhead) {
			name := dirs[len(ahead)].Name()
			ahead = append(ahead, l.ahead(w.root.Name(), path.Join(at, name), w.built > 0 || builtDirs[name]))
		}
		sub, name := ahead[n](), dirs[n].Name()
		if builtDirs[name] {
			w.built++
		}
		w.dir(sub, path.Join(at, name), depth)
		if builtDirs[name] {
			w.built--
		}
		sub.close()
	}
	for _, unread := range ahead[min(n, len(ahead)):] {
		unread().close()
	}
}

// byRank returns entries, those first that the host runs by itself. It changes what it is given.
func byRank(entries []fs.DirEntry) []fs.DirEntry {
	var first [3][]fs.DirEntry
	rest := entries[:0]
	for _, e := range entries {
		switch name := e.Name(); {
		case name == ".git", name == "config", name == "config.worktree":
			first[0] = append(first[0], e)
		case whenFile("", name) != "":
			first[1] = append(first[1], e)
		case wholeDirs[name] != "":
			first[2] = append(first[2], e)
		default:
			rest = append(rest, e)
		}
	}
	if len(rest) == len(entries) {
		return rest
	}
	return slices.Concat(first[0], first[1], first[2], rest)
}

// file watches a file of an open directory by its name, or because it can be executed.
func (w *walk) file(l *listing, in string, e fs.DirEntry) {
	if when := whenFile(in, e.Name()); when != "" {
		w.add(path.Join(in, e.Name()), when)
		return
	}
	if !l.programs[e.Name()] || w.built > 0 {
		return
	}
	at := path.Join(in, e.Name())
	found, err := w.root.Lstat(at)
	if err != nil || !found.Mode().IsRegular() || found.Mode()&0o111 == 0 {
		return
	}
	if w.programs++; w.programs > maxPrograms { // they must not displace what runs by itself
		w.out.Incomplete = true
		return
	}
	w.put(at, entry{when: whenExecuted, sum: stamp(found)})
}

// whole watches every file of a directory.
func (w *walk) whole(at, when string, depth int) { w.wholeUpTo(at, when, depth, new(maxWhole)) }

func (w *walk) wholeUpTo(at, when string, depth int, left *int) {
	for _, e := range w.list(at, depth) {
		if *left--; *left < 0 {
			w.out.Incomplete = true
			return
		}
		name := path.Join(at, e.Name())
		if e.IsDir() {
			w.wholeUpTo(name, when, depth+1, left)
			continue
		}
		w.add(name, when)
	}
}

// isBareRepository reports whether git takes the directory for a repository (gitrepository-layout(5)): it has HEAD,
// objects and refs, or a commondir file that names a directory with the latter two.
func isBareRepository(entries []fs.DirEntry) bool {
	has := func(name string) bool {
		return slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == name })
	}
	return has("HEAD") && (has("commondir") || has("objects") && has("refs"))
}

// gitDir watches what git runs by itself: hooks, and settings that name programs.
func (w *walk) gitDir(at string, depth int) {
	for _, e := range byRank(w.list(at, depth)) {
		name := path.Join(at, e.Name())
		switch e.Name() {
		case "config", "config.worktree":
			w.config(name, 0)
		case "hooks":
			w.hooks(name, e, depth+1)
		case "info":
			w.add(path.Join(name, "attributes"), whenGit)
		case "commondir", "gitdir":
			w.link(name)
		case "rebase-merge":
			w.rebase(name, e)
		case "modules", "worktrees":
			w.gitDirs(name, e, depth+1)
		}
	}
}

// link watches a file that names a directory to git. One that git makes for each worktree has it use the settings and
// the hooks of no other repository.
func (w *walk) link(at string) {
	data, sum, ok := w.read(at)
	if !ok {
		return
	}
	when := whenGit
	if path.Base(path.Dir(path.Dir(at))) == "worktrees" && (path.Base(at) == "gitdir" || string(data) == "../..\n") {
		when = whenWorktree
	}
	w.put(at, entry{when: when, sum: sum})
}

// execLine is a line of a rebase that runs a command (git-rebase(1), --exec).
var execLine = regexp.MustCompile(`(?m)^[ \t]*(?:exec|x)[ \t]`)

// rebase watches a rebase that was interrupted, if going on with it runs commands.
func (w *walk) rebase(at string, e fs.DirEntry) {
	if !e.IsDir() {
		w.add(at, whenRebase)
		return
	}
	todo := path.Join(at, "git-rebase-todo")
	if data, sum, ok := w.read(todo); ok && (data == nil || execLine.Match(data)) {
		w.put(todo, entry{when: whenRebase, sum: sum})
	}
}

// gitDirs watches the git directories of submodules and worktrees, at any depth: a submodule's name may have slashes.
func (w *walk) gitDirs(at string, e fs.DirEntry, depth int) {
	if !e.IsDir() {
		w.add(at, whenGit)
		return
	}
	entries := w.list(at, depth)
	// A HEAD that a sandbox puts above the git directories of submodules must not hide them.
	isGitDir := slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == "HEAD" })
	if isGitDir {
		w.gitDir(at, depth)
	}
	for _, sub := range entries {
		switch name := path.Join(at, sub.Name()); {
		case isGitDir && partsOfGitDir[sub.Name()]:
		case sub.IsDir():
			w.gitDirs(name, sub, depth+1)
		case sub.Type()&fs.ModeSymlink != 0 && sub.Name() != "HEAD":
			w.add(name, whenGit)
		}
	}
}

// partsOfGitDir are directories of a git directory that have no other one in them, or that gitDir reads.
var partsOfGitDir = map[string]bool{
	"objects": true, "refs": true, "logs": true, "hooks": true, "info": true, "modules": true, "worktrees": true,
}

func (w *walk) hooks(at string, e fs.DirEntry, depth int) {
	if !e.IsDir() {
		w.add(at, whenGit)
		return
	}
	for i, hook := range w.list(at, depth) {
		if i >= maxWhole {
			w.out.Incomplete = true
			return
		}
		if !strings.HasSuffix(hook.Name(), ".sample") {
			w.add(path.Join(at, hook.Name()), whenGit)
		}
	}
}

// config watches those settings of a git configuration that can make git run something, and the files and directories
// of the project that they name. depth counts the inclusions.
func (w *walk) config(at string, depth int) {
	data, sum, ok := w.read(at)
	if !ok {
		return
	}
	if len(data) > maxParsed {
		data = nil
	}
	if data == nil {
		w.put(at, entry{when: whenGit, sum: sum})
		return
	}
	risky := riskySettings(data)
	if len(risky.sums) > 0 {
		w.put(at, entry{when: whenGit, sum: sumOf(canonical(risky.sums)), keys: risky.sums})
	} else {
		w.putQuiet(at)
	}
	if depth >= maxFollowed {
		return
	}
	for _, name := range risky.includes {
		if to, ok := w.inside(path.Dir(at), name); ok && to != at {
			w.config(to, depth+1)
		}
	}
	for _, name := range risky.hooks { // relative to the top of the working tree
		to, ok := w.inside(path.Dir(path.Dir(at)), name)
		if !ok || w.prefix != "" {
			continue
		}
		if info, err := w.root.Lstat(to); err == nil && info.IsDir() {
			w.whole(to, whenGit, 0)
			continue
		}
		w.add(to, whenGit)
	}
}

// inside returns a path that a file below dir names, if it is one of the tree.
func (w *walk) inside(dir, name string) (string, bool) {
	if rest, ok := strings.CutPrefix(name, w.root.Name()+"/"); ok {
		dir, name = ".", rest
	}
	to := path.Join(dir, name)
	return to, !path.IsAbs(name) && filepath.IsLocal(to) && to != "."
}

// add watches what matters of a file, if it is there.
func (w *walk) add(at, when string) {
	data, sum, ok := w.read(at)
	if !ok {
		return
	}
	if path.Base(at) == "package.json" && data != nil && len(data) <= maxParsed {
		scripts, isJSON := scriptsOf(data)
		switch {
		case isJSON && scripts == nil:
			w.putQuiet(at)
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
	w.out.entries[w.named(at)] = e
}

// putQuiet notes a place in which nothing matters, and a sandbox could put something that does.
func (w *walk) putQuiet(at string) {
	if len(w.out.quiet) < maxWatched {
		w.out.quiet[w.named(at)] = true
	}
}

// named returns the path of an entry.
func (w *walk) named(at string) string {
	if w.prefix != "" {
		return path.Join(w.prefix, at)
	}
	return at
}

// read returns the content of a regular file and its sum. data is nil for what is not read: a link, a special file, or
// one that is too large. ok is false if there is none.
func (w *walk) read(at string) (data []byte, sum string, ok bool) {
	if w.ctx.Err() != nil { // a directory can have many large files
		w.out.Incomplete = true
		return nil, "", false
	}
	info, err := w.root.Lstat(at)
	switch {
	case err != nil:
		return nil, "", false
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := w.root.Readlink(at)
		return nil, sumOf([]byte("link " + target)), err == nil
	case info.IsDir():
		return nil, "", false
	case !info.Mode().IsRegular(), info.Size() > maxFile, w.bytes > maxBytes:
		return nil, stamp(info), true
	}
	w.bytes += info.Size()
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

// stamp returns what stands for the content of a file that is not read. A sandbox can set a file's time of
// modification, but not that of its last change.
func stamp(info fs.FileInfo) string {
	return sumOf(fmt.Appendf(nil, "%v %d %d %d", info.Mode(), info.Size(), info.ModTime().UnixNano(),
		system.Changed(info)))
}

// scriptsOf returns the scripts of a package.json in a form that does not depend on its layout, nil if it has none.
func scriptsOf(data []byte) (scripts []byte, isJSON bool) {
	// Maps and not a struct, which would take "Scripts" for "scripts" and merge the two: npm takes the last "scripts"
	// alone, so others could hide what it runs.
	var fields map[string]json.RawMessage
	if json.Unmarshal(data, &fields) != nil {
		return nil, false
	}
	var found map[string]any
	if raw, ok := fields["scripts"]; ok && json.Unmarshal(raw, &found) != nil {
		return nil, false
	}
	if len(found) == 0 {
		return nil, true
	}
	var out bytes.Buffer
	_ = json.NewEncoder(&out).Encode(found) // sorts the names
	return out.Bytes(), true
}
