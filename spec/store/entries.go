package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"

	"github.com/ALRubinger/aileron/spec"
)

// readEntries returns the entries of the store's directories, verified. Those with a binary are read one after the
// other: two may not fit in the memory.
func (s *Store) readEntries(dirs []fs.DirEntry) []Entry {
	known := map[string]*spec.Connector{}
	if last := s.parsed.Load(); last != nil {
		known = *last
	}
	all := make([]Entry, len(dirs))
	indices := make(chan int)
	var readers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(dirs)) {
		readers.Go(func() {
			for i := range indices {
				all[i] = s.readEntry("sha256:"+dirs[i].Name(), known)
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
		all[i] = s.readEntry("sha256:"+dirs[i].Name(), known)
	}
	removed := func(e Entry) bool { return errors.Is(e.Err, fs.ErrNotExist) } // between two looks
	all = slices.DeleteFunc(all, removed)
	now := map[string]*spec.Connector{}
	for _, e := range all {
		if e.connector != nil {
			now[e.Hash] = e.connector
		}
	}
	s.parsed.Store(&now)
	return all
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
