package launch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/ALRubinger/aileron/internal/hostfiles"
	"github.com/ALRubinger/aileron/sandbox"
)

// hostWatchTime bounds one look at the project, and hostWatchGrace how long one that has to end may still take: a file
// system that does not respond holds it.
const (
	hostWatchTime  = 10 * time.Second
	hostWatchGrace = time.Second
)

// hostWatch compares what the host would run of a project before and after the work of a command that may be hostile.
type hostWatch struct {
	dir     string
	gitDirs []string // of the repository of a worktree
	before  func() hostfiles.Snapshot
	after   func() hostfiles.Snapshot // nil: the work has not ended

	made []string // empty directories that a sandbox's engine makes in the project

	found      []hostfiles.Change
	incomplete bool
}

// watchHostFiles begins to look at the project in dir and at directories of git, beside what else a start has to do.
func watchHostFiles(ctx context.Context, dir string, gitDirs ...string) *hostWatch {
	w := &hostWatch{dir: dir, gitDirs: gitDirs}
	w.before = look(ctx, func(ctx context.Context) hostfiles.Snapshot { return hostfiles.Take(ctx, dir, gitDirs...) })
	return w
}

// look begins a look, and returns what waits for it. It waits no longer than a look may take.
func look(ctx context.Context, take func(context.Context) hostfiles.Snapshot) func() hostfiles.Snapshot {
	ctx, cancel := context.WithTimeout(ctx, hostWatchTime)
	taken := make(chan hostfiles.Snapshot, 1)
	go func() {
		defer cancel()
		taken <- take(ctx)
	}()
	return sync.OnceValue(func() hostfiles.Snapshot {
		<-ctx.Done()
		select {
		case s := <-taken:
			return s
		case <-time.After(hostWatchGrace):
			return hostfiles.Snapshot{Incomplete: true}
		}
	})
}

// wait waits until the state before the work is known.
func (w *hostWatch) wait() { w.before() }

// ended begins to look at what the work has left: nothing of it runs any more.
func (w *hostWatch) ended(ctx context.Context) {
	if w.after == nil {
		w.after = look(context.WithoutCancel(ctx), func(ctx context.Context) hostfiles.Snapshot {
			return hostfiles.Take(ctx, w.dir, w.gitDirs...)
		})
	}
}

// cover copies what the command must not change to a new directory: git's hooks, or with all set whatever the host
// would run, of the project and of the directories of git alike. The held directories of the project keep their names.
func (w *hostWatch) cover(to string, all bool, held []sandbox.Cover) ([]sandbox.Cover, error) {
	places := w.places(".", all, hostfiles.HookDirs(w.dir))
	if git := ".git"; len(w.gitDirs) > 0 && !slices.Contains(places, git) { // the file of a worktree
		places = append(places, git)
	}
	covers, err := coversOf(w.dir, places, to, "")
	if err == nil {
		covers, err = w.coverNoHooks(covers, filepath.Join(w.dir, ".git"), ".git", to+"-no-hooks")
	}
	for i, dir := range w.gitDirs {
		if err != nil {
			return nil, err
		}
		var more []sandbox.Cover
		copies := fmt.Sprintf("%s-git-%d", to, i)
		more, err = coversOf(dir, w.places(dir, all, hostfiles.CommonHookDirs(dir)), copies, dir)
		if err == nil {
			more, err = w.coverNoHooks(more, dir, dir, copies+"-no-hooks")
		}
		covers = append(covers, more...)
	}
	return append(slices.Clone(held), covers...), err // first: what is read-only lies in them
}

// coverNoHooks adds a cover of hooks that are not there in a directory of git, which lies at a place in the sandbox: it
// could make them.
func (w *hostWatch) coverNoHooks(covers []sandbox.Cover, git, at, empty string) ([]sandbox.Cover, error) {
	hooks := filepath.Join(git, "hooks")
	if info, err := os.Lstat(git); err != nil || !info.IsDir() {
		return covers, nil //nolint:nilerr // there is no directory of git
	}
	if _, err := os.Lstat(hooks); !errors.Is(err, fs.ErrNotExist) {
		return covers, nil
	}
	//nolint:gosec // the sandbox's user reads it
	if err := errors.Join(os.Mkdir(empty, 0o755), os.Chmod(empty, 0o755)); err != nil {
		return nil, fmt.Errorf("protect git's hooks: %w", err)
	}
	w.made = append(w.made, hooks)
	return append(covers, sandbox.Cover{Source: empty, Path: filepath.Join(at, "hooks")}), nil
}

// removeMade removes the empty directories that the engine has made, once the sandbox is removed. One in which there is
// something stays.
func (w *hostWatch) removeMade() {
	for _, dir := range w.made {
		git, err := os.OpenRoot(filepath.Dir(dir))
		if err != nil {
			continue
		}
		if info, err := git.Lstat(filepath.Base(dir)); err == nil && info.IsDir() {
			_ = git.Remove(filepath.Base(dir))
		}
		_ = git.Close()
	}
}

// places returns what is covered of a directory, "." being the project: its hooks, or with all set also what was found
// there, as paths relative to it.
func (w *hostWatch) places(dir string, all bool, hooks []string) []string {
	if !all {
		return hooks
	}
	for _, at := range w.before().Paths() {
		if filepath.IsAbs(at) == (dir == ".") {
			continue
		}
		if rel, err := filepath.Rel(dir, at); err == nil && filepath.IsLocal(rel) && !slices.Contains(hooks, rel) {
			hooks = append(hooks, rel)
		}
	}
	return hooks
}

// coversOf copies places of dir, which lie below prefix in a sandbox.
func coversOf(dir string, places []string, to, prefix string) ([]sandbox.Cover, error) {
	copies, err := hostfiles.Copy(dir, places, to)
	if err != nil {
		return nil, err
	}
	var covers []sandbox.Cover
	for _, c := range copies {
		covers = append(covers, sandbox.Cover{Source: c.Source, Path: filepath.Join(prefix, c.Path)})
	}
	return covers, nil
}

// changes returns what the command has changed, if it began.
func (w *hostWatch) changes(ctx context.Context, began bool) []hostfiles.Change {
	before := w.before()
	if !began {
		return nil
	}
	w.ended(ctx)
	after := w.after()
	w.found, w.incomplete = before.Changes(after), before.Incomplete || after.Incomplete
	return w.found
}
