package launch

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/ALRubinger/aileron/internal/hostfiles"
	"github.com/ALRubinger/aileron/sandbox"
)

// hostWatchTime bounds one look at the project.
const hostWatchTime = 10 * time.Second

// hostWatch compares what the host would run of a project before and after the work of a command that may be hostile.
type hostWatch struct {
	dir     string
	gitDirs []string      // of the repository of a worktree
	taken   chan struct{} // closed when before is known

	before     hostfiles.Snapshot
	found      []hostfiles.Change
	incomplete bool
}

// watchHostFiles begins to look at the project in dir and at directories of git, beside what else a start has to do.
func watchHostFiles(ctx context.Context, dir string, gitDirs ...string) *hostWatch {
	w := &hostWatch{dir: dir, gitDirs: gitDirs, taken: make(chan struct{})}
	go func() {
		defer close(w.taken)
		ctx, cancel := context.WithTimeout(ctx, hostWatchTime)
		defer cancel()
		w.before = hostfiles.Take(ctx, dir, gitDirs...)
	}()
	return w
}

// wait waits until the state before the work is known.
func (w *hostWatch) wait() { <-w.taken }

// cover copies what the command must not change to a new directory: git's hooks, or with all set whatever the host
// would run.
func (w *hostWatch) cover(to string, all bool) ([]sandbox.Cover, error) {
	places := hostfiles.HookDirs(w.dir)
	if all {
		places = slices.DeleteFunc(w.before.Paths(), filepath.IsAbs) // those of gitDirs
	}
	copies, err := hostfiles.Copy(w.dir, places, to)
	if err != nil {
		return nil, err
	}
	var covers []sandbox.Cover
	for _, c := range copies {
		covers = append(covers, sandbox.Cover(c))
	}
	for i, dir := range w.gitDirs {
		copies, err := hostfiles.Copy(dir, hostfiles.CommonHookDirs(dir), fmt.Sprintf("%s-git-%d", to, i))
		if err != nil {
			return nil, err
		}
		for _, c := range copies {
			covers = append(covers, sandbox.Cover{Source: c.Source, Path: filepath.Join(dir, c.Path)})
		}
	}
	return covers, nil
}

// changes returns what the command has changed, if it began.
func (w *hostWatch) changes(ctx context.Context, began bool) []hostfiles.Change {
	w.wait()
	if !began {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), hostWatchTime)
	defer cancel()
	after := hostfiles.Take(ctx, w.dir, w.gitDirs...)
	w.found, w.incomplete = w.before.Changes(after), w.before.Incomplete || after.Incomplete
	return w.found
}
