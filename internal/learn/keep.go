package learn

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Bounds of the notes of sessions that have ended, in a home.
const (
	KeptAge     = 90 * 24 * time.Hour // from which on a new learning session removes them
	maxKept     = 200                 // sessions
	maxKeptSize = 64 << 20
)

// PruneNotes removes the notes of sessions that were last written before a time, then the oldest ones until there are
// no more than the bound, and then the largest ones until they are no more bytes than theirs. A session can fill its
// file: so it cannot displace the notes of others, which stay if they are a [maxKept]th of the bytes at most. It leaves
// those of which running is true, and what else is in the directory. removed is how many it has removed.
func PruneNotes(home string, before time.Time, running func(session string) bool) (removed int, err error) {
	root, err := os.OpenRoot(filepath.Dir(NotesPath(home, "")))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("prune the notes of learning sessions: %w", err)
	}
	defer root.Close()
	kept, size, err := endedNotes(root, running)
	if err != nil {
		return 0, fmt.Errorf("prune the notes of learning sessions: %w", err)
	}
	var failed error
	remove := func(info fs.FileInfo) {
		size -= info.Size()
		if err := root.Remove(info.Name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = errors.Join(failed, err)
			return
		}
		removed++
	}
	for len(kept) > 0 && (kept[0].ModTime().Before(before) || len(kept) > maxKept) {
		remove(kept[0])
		kept = kept[1:]
	}
	slices.SortStableFunc(kept, func(a, b fs.FileInfo) int { return cmp.Compare(b.Size(), a.Size()) })
	for i := 0; i < len(kept) && size > maxKeptSize; i++ {
		remove(kept[i])
	}
	return removed, failed
}

// endedNotes returns the files of sessions that have ended, the oldest first, and their size.
func endedNotes(root *os.Root, running func(session string) bool) (files []fs.FileInfo, size int64, err error) {
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, 0, err
	}
	for _, e := range entries {
		id, isNotes := strings.CutSuffix(e.Name(), notesSuffix)
		if !isNotes || !isULID(id) || !e.Type().IsRegular() || running(id) {
			continue
		}
		if info, err := e.Info(); err == nil { // else it is gone
			files = append(files, info)
			size += info.Size()
		}
	}
	slices.SortFunc(files, func(a, b fs.FileInfo) int {
		return cmp.Or(a.ModTime().Compare(b.ModTime()), cmp.Compare(a.Name(), b.Name()))
	})
	return files, size, nil
}
