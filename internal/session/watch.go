package session

import (
	"context"
	"path/filepath"
	"slices"
	"time"

	"github.com/ALRubinger/aileron/internal/dirwatch"
)

// A change of the store, the actions or the vault, such as a revocation, takes effect within a second.
const (
	// reloadEvery is how often they are looked at where the kernel does not report each change, or until they can be
	// read again.
	reloadEvery = 300 * time.Millisecond
	// changeTime is how long a change may take that was reported: files of it may follow.
	changeTime = 50 * time.Millisecond
	// movedEvery is how often the directories are compared with those that are followed, where the kernel does not report
	// another in the place of one.
	movedEvery = 700 * time.Millisecond
	// looksApart is how many of these times apart the files are looked at, for what no kernel reports: a file that is
	// changed by another of its names.
	looksApart = 10
)

// follower is a [dirwatch.Watch].
type follower interface {
	Follow() error // from now on changes are reported
	Complete() bool
	Moved() bool
}

// watch refreshes the grants when the store, the actions or the vault change, or what [Options.Grants] reads, until ctx
// ends.
func (l *loader) watch(ctx context.Context) {
	for ctx.Err() == nil {
		dirs := l.dirs()
		w, err := dirwatch.New(dirs...)
		if err != nil {
			poll(ctx, l.refresh)
			return
		}
		moved, cancel := context.WithCancel(ctx)
		follow(moved, w, w.C, func(ctx context.Context) bool {
			settled := l.refresh(ctx)
			if !slices.EqualFunc(dirs, l.dirs(), sameDir) {
				cancel() // others are to be followed now
			}
			return settled
		})
		cancel()
		w.Close()
	}
}

// dirs returns the directories in which a change is to be noticed.
func (l *loader) dirs() []dirwatch.Dir {
	if g := l.s.opts.Grants; g != nil {
		return g.Dirs()
	}
	in := func(path ...string) string { return filepath.Join(append([]string{l.s.opts.Home}, path...)...) }
	return []dirwatch.Dir{
		{Path: in(), Names: []string{"store", "vault", "actions"}},
		{Path: in("store"), Names: []string{"connectors"}},
		{Path: in("store", "connectors")},
		{Path: in("store", "connectors", "sha256"), Deep: true},
		{Path: in("vault"), Deep: true},
		{Path: in("actions")},
	}
}

func sameDir(a, b dirwatch.Dir) bool { return a.Path == b.Path && a.Deep == b.Deep }

// poll calls look every moment until ctx ends.
func poll(ctx context.Context, look func(context.Context) bool) {
	tick := time.NewTicker(reloadEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			look(ctx)
		}
	}
}

// follow calls look after each change that the kernel reports, until ctx ends, and each moment until look reports that
// what it has read is settled.
func follow(ctx context.Context, f follower, changes <-chan struct{}, look func(context.Context) bool) {
	tick := time.NewTicker(movedEvery)
	defer tick.Stop()
	for {
		if f.Follow() != nil {
			poll(ctx, look)
			return
		}
		if !look(ctx) {
			if !sleep(ctx, reloadEvery) {
				return
			}
			continue
		}
		complete := f.Complete()
		if complete {
			tick.Reset(looksApart * movedEvery)
		} else {
			tick.Reset(movedEvery)
		}
		for ticks, changed := 0, false; !changed; {
			select {
			case <-ctx.Done():
				return
			case <-changes:
				changed = sleep(ctx, changeTime)
			case <-tick.C:
				ticks++
				changed = complete || ticks == looksApart || f.Moved()
			}
		}
	}
}

// sleep reports whether d has passed before ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
