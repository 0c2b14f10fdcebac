// Package dirwatch reports that directories may have changed, by the word of the kernel (inotify(7)) instead of a look
// now and then. Call [New], then [Watch.Follow] before each look at the directories, and look again when [Watch.C]
// has a value:
//
//	for {
//		if err := w.Follow(); err != nil {
//			break // look now and then
//		}
//		look()
//		<-w.C
//	}
//
// It reports nothing of what the kernel does not see: a file that was changed by another of its names; and, unless
// [Watch.Complete], a directory above that was moved, and a mount over one that is followed ([Watch.Moved] sees both).
// Where the kernel does not see every change, as on a network's file system, Follow returns an error.
package dirwatch

import (
	"os"
	"slices"
	"sync"
)

// Dir is a directory that is followed. It may come into existence later, if a directory that has it is followed too.
type Dir struct {
	Path  string
	Deep  bool     // with the directories in it
	Names []string // what is followed in it, besides itself, but not the contents of files; nil: everything
}

// Watch follows directories.
type Watch struct {
	C <-chan struct{} // has a value when something may have changed

	changes chan struct{}
	dirs    []Dir
	file    *os.File // of the kernel's reports
	mounts  *os.File // of the list of mounts; nil: there is none

	mu    sync.Mutex
	above bool               // the directories above are followed too
	names map[int32][]string // of the directories of which not everything is followed, by the kernel's number
	roots []os.FileInfo      // of dirs, when they were followed; nil: there was none
}

// Complete reports whether C reports what [Watch.Moved] sees too.
func (w *Watch) Complete() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.above && w.mounts != nil
}

// Moved reports whether a directory is not the one that Follow has found, or whether there is none.
func (w *Watch) Moved() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, was := range w.roots {
		now, err := os.Stat(w.dirs[i].Path)
		if (err == nil) != (was != nil) || err == nil && !os.SameFile(was, now) {
			return true
		}
	}
	return false
}

// reported notes what the kernel has reported of a directory, or of name in it.
func (w *Watch) reported(number int32, name string) {
	w.mu.Lock()
	names, some := w.names[number]
	w.mu.Unlock()
	if some && name != "" && !slices.Contains(names, name) {
		return
	}
	w.report()
}

func (w *Watch) report() {
	select {
	case w.changes <- struct{}{}:
	default:
	}
}
