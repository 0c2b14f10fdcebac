// Package hostfiles finds what a project's files make the host run.
//
// A sandbox writes to its project, and the person goes on in it afterwards: git
// runs the hooks and programs that .git/config names, an editor the tasks in
// .vscode, a shell the .envrc. So a hostile agent can leave code that runs
// outside the sandbox. Call [Take] before and after the agent's work;
// [Snapshot.Changes] returns what differs, and when the host would run it:
//
//	before := hostfiles.Take(ctx, dir)
//	// the agent works
//	for _, c := range before.Changes(hostfiles.Take(ctx, dir)) {
//		fmt.Println(c.Path, "is run when you", c.When)
//	}
//
// A snapshot is taken through an [os.Root]: links are not followed, special files
// are not opened, and what is read is bounded. It is a list of known places and
// not a proof: what a build or a test runs can be any file of the project.
package hostfiles

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
)

// Snapshot is the state of what the host would run of a project. It is immutable.
type Snapshot struct {
	entries map[string]entry // by path, relative to the project and with slashes
	quiet   map[string]bool  // watched places in which nothing matters yet
	gitDirs []string         // whose entries have absolute paths
	// Incomplete reports whether the project has more than is looked at, or could not be read.
	Incomplete bool
}

// entry is one watched place.
type entry struct {
	when string            // the host runs it when the person …
	sum  string            // SHA-256 in hexadecimal of what matters of it
	keys map[string]string // of a git configuration: each setting that matters and its hash
}

// Change is a place that differs between two snapshots.
type Change struct {
	Path   string   // relative to the project
	When   string   // the host runs it when the person …: "use git", "open the project in VS Code"
	Before string   // SHA-256 in hexadecimal of what matters of the file; "": it was not there
	After  string   // "": it is gone
	Keys   []string // of a git configuration: the settings that differ
}

// IsProgram reports whether the change is about a file that is watched only because it can be executed.
func (c Change) IsProgram() bool { return c.When == whenExecuted }

// IsWorktree reports whether the change is about a file as git itself makes it for a worktree.
func (c Change) IsWorktree() bool { return c.When == whenWorktree }

// The bounds of a snapshot: a sandbox writes the files.
const (
	maxDirs    = 20_000
	maxEntries = 400_000
	maxDepth   = 24
	maxWatched = 5_000
	maxFile    = 16 << 20  // of a larger file its size and time stand for its content
	maxBytes   = 128 << 20 // after that, of every file
	maxParsed  = 1 << 20   // a larger configuration or package.json is compared as it is

	maxPrograms = 2_000 // of watched files
	maxWhole    = 500   // files of one directory of which all are watched
	maxFollowed = 8     // files that a configuration names
)

// Take returns the state of the project in dir. gitDirs are further directories
// of git that belong to it, such as the common one of a worktree, as absolute
// paths. What cannot be read is left out, and makes the snapshot incomplete; so
// does the end of ctx.
func Take(ctx context.Context, dir string, gitDirs ...string) Snapshot {
	s := Snapshot{entries: map[string]entry{}, quiet: map[string]bool{}, gitDirs: gitDirs}
	s.take(ctx, dir, "", (*walk).top)
	for _, g := range gitDirs {
		s.take(ctx, g, g, func(w *walk) { w.gitDir(".", 0) })
	}
	return s
}

func (s *Snapshot) take(ctx context.Context, dir, prefix string, read func(*walk)) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		s.Incomplete = true
		return
	}
	defer root.Close()
	read(&walk{ctx: ctx, root: root, prefix: prefix, out: s})
}

// Changes returns what differs in after, sorted by path.
func (s Snapshot) Changes(after Snapshot) []Change {
	var changes []Change
	for at, b := range s.entries {
		a, ok := after.entries[at]
		switch {
		case !ok && !after.Incomplete:
			changes = append(changes, Change{Path: at, When: b.when, Before: b.sum})
		case ok && a.sum != b.sum:
			changes = append(changes,
				Change{Path: at, When: a.when, Before: b.sum, After: a.sum, Keys: differing(b.keys, a.keys)})
		}
	}
	for at, a := range after.entries {
		if _, ok := s.entries[at]; !ok {
			changes = append(changes, Change{Path: at, When: a.when, After: a.sum, Keys: differing(nil, a.keys)})
		}
	}
	slices.SortFunc(changes, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	return changes
}

// Paths returns the watched places that are there, sorted, those of directories of
// git as absolute paths. A directory whose every file is watched stands for them.
func (s Snapshot) Paths() []string {
	places := map[string]bool{}
	for at, e := range s.entries {
		if e.when != whenExecuted { // a program is the person's to run, and an agent's to build
			places[s.place(at, e.when)] = true
		}
	}
	for at := range s.quiet {
		places[at] = true
	}
	return slices.Sorted(maps.Keys(places))
}

// place returns the directory that stands for a watched file, or the file itself.
func (s Snapshot) place(at, when string) string {
	root := ""
	for _, g := range s.gitDirs {
		if strings.HasPrefix(at, g+"/") {
			root = g
		}
	}
	for dir := path.Dir(at); dir != "." && dir != "/" && dir != root; dir = path.Dir(dir) {
		if wholeDirs[path.Base(dir)] != "" || when == whenGit && path.Base(dir) == "hooks" {
			return dir
		}
	}
	return at
}

// differing returns the keys whose values differ, sorted.
func differing(before, after map[string]string) []string {
	var keys []string
	for k, v := range before {
		if after[k] != v {
			keys = append(keys, k)
		}
	}
	for k := range after {
		if _, ok := before[k]; !ok {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}

func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
