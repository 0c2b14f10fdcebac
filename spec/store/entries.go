package store

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"

	"github.com/ALRubinger/aileron/spec"
)

// readEntries returns the entries of some directories of the store, verified. Those with a binary are read one after
// the other: two may not fit in the memory. What was parsed of other directories is forgotten if these are all.
func (s *Store) readEntries(dirs []fs.DirEntry, all bool) []Entry {
	known := map[string]*spec.Connector{}
	if last := s.parsed.Load(); last != nil {
		known = *last
	}
	entries := make([]Entry, len(dirs))
	indices := make(chan int)
	var readers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(dirs)) {
		readers.Go(func() {
			for i := range indices {
				entries[i] = s.readEntry("sha256:"+dirs[i].Name(), known)
			}
		})
	}
	var binaries []int
	for i, d := range dirs {
		if s.hasBinary(d.Name()) {
			binaries = append(binaries, i)
			continue
		}
		indices <- i
	}
	close(indices)
	readers.Wait()
	for _, i := range binaries {
		entries[i] = s.readEntry("sha256:"+dirs[i].Name(), known)
	}
	removed := func(e Entry) bool { return errors.Is(e.Err, fs.ErrNotExist) } // between two looks
	entries = slices.DeleteFunc(entries, removed)
	now := map[string]*spec.Connector{}
	if !all {
		now = maps.Clone(known)
	}
	for _, e := range entries {
		if e.connector != nil {
			now[e.Hash] = e.connector
		}
	}
	s.parsed.Store(&now)
	return entries
}

// hasBinary reports whether a directory of the store seems to have a binary.
func (s *Store) hasBinary(dir string) bool {
	return slices.ContainsFunc(hashedFiles[:2], func(name string) bool {
		_, err := os.Lstat(filepath.Join(s.connectors(), dir, name))
		return err == nil
	})
}

// readEntry returns one entry. Its bytes are read and hashed, and parsed if their connector is not known.
func (s *Store) readEntry(hash string, known map[string]*spec.Connector) Entry {
	e := Entry{Hash: hash}
	c, err := s.readVerified(hash)
	if err == nil {
		if e.connector = known[hash]; e.connector == nil {
			e.connector, err = c.load()
		}
	}
	if err != nil {
		m := s.readCache(hash)
		e.Err, e.FQN, e.Version, e.connector = err, m.FQN, m.Version, nil
		return e
	}
	e.FQN, e.Version = e.connector.FQN, e.connector.Version
	s.writeCache(e.connector, c)
	c.release()
	return e
}
