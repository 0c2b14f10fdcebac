package store

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
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

// All returns every version of every connector, in the order of names and versions. It omits entries that could not be
// read or fail their verification, and versions that appear twice with different bytes, and returns an [*EntryError]
// for each. If the store could not be listed, the only error is a [*ListError].
func (s *Store) All() ([]*spec.Connector, []error) {
	entries, err := s.List()
	if err != nil {
		return nil, []error{err}
	}
	return verified(entries)
}

// verified returns the connectors of entries, and the errors of the others.
func verified(entries []Entry) (all []*spec.Connector, errs []error) {
	for i, e := range entries {
		if e.Err != nil {
			errs = append(errs, &EntryError{e, e.Err})
			continue
		}
		if other := otherCopy(entries, i); other != "" {
			errs = append(errs, &EntryError{e, &HashError{What: "another installed copy", Want: e.Hash, Got: other}})
			continue
		}
		all = append(all, e.connector)
	}
	return all, errs
}

// Current returns the version in force of every connector, by name, and the errors of [Store.All].
func (s *Store) Current() ([]*spec.Connector, []error) {
	all, errs := s.All()
	return InForce(all, nil), errs
}

// CurrentOf returns what [Store.Current] does of the connectors of these names, without its errors, and reads no other:
// the cache of the index tells them apart. One that the cache has another name for is missing, so what is returned is
// good for asking a person early, and for no decision.
func (s *Store) CurrentOf(names []spec.FQN) []*spec.Connector {
	dirs, err := os.ReadDir(s.connectors())
	if err != nil || len(names) == 0 {
		return nil
	}
	dirs = slices.DeleteFunc(dirs, func(d fs.DirEntry) bool {
		known := s.readCache("sha256:" + d.Name()).FQN
		return known != "" && !slices.Contains(names, known)
	})
	all, _ := verified(sortedEntries(s.readEntries(dirs, false)))
	return InForce(all, nil)
}

// InForce returns one version of every connector of a list that [Store.All] returned: the chosen one where there is
// a choice, which may name a version that is not there, and the highest one otherwise. A pre-release is the highest
// only of pre-releases.
func InForce(all []*spec.Connector, chosen map[spec.FQN]string) []*spec.Connector {
	var current []*spec.Connector
	for _, c := range all {
		version, isChosen := chosen[c.FQN]
		if isChosen && c.Version != version {
			continue
		}
		n := len(current)
		switch {
		case n == 0 || current[n-1].FQN != c.FQN:
			current = append(current, c)
		case !spec.IsPrerelease(c.Version) || spec.IsPrerelease(current[n-1].Version):
			current[n-1] = c // they are in the order of versions
		}
	}
	return current
}

// otherCopy returns the hash of another valid entry of the same name and version,
// or "".
func otherCopy(entries []Entry, i int) string {
	for _, o := range entries {
		if o.Err == nil && o.Hash != entries[i].Hash && o.FQN == entries[i].FQN && o.Version == entries[i].Version {
			return o.Hash
		}
	}
	return ""
}

// cacheEntry is index/<hash>.json: a connector's name and the digests of its
// files, to report which connector is broken and which of its files was changed.
// It is a cache, rebuilt if it is missing; no decision depends on it.
type cacheEntry struct {
	FQN     spec.FQN          `json:"fqn"`
	Version string            `json:"version"`
	Hash    string            `json:"hash"`
	Files   map[string]string `json:"files"`
}

func (s *Store) indexFile(hash string) string {
	return filepath.Join(s.dir, "index", strings.TrimPrefix(hash, "sha256:")+".json")
}

// writeCache writes the cache of a verified connector. A failure is ignored, as
// the cache is not needed.
func (s *Store) writeCache(connector *spec.Connector, c contents) {
	m := s.readCache(connector.Hash)
	if m.FQN == connector.FQN && m.Version == connector.Version && m.hasFilesOf(c) {
		return // the digests of the same bytes
	}
	s.writeDigests(connector, c.digests())
}

// digests returns the digest of each file of a connector.
func (c contents) digests() map[string]string {
	all := map[string]string{}
	for _, name := range hashedFiles {
		if data, ok := c[name]; ok {
			all[name] = sha256Digest(data)
		}
	}
	return all
}

// writeDigests writes the cache of a verified connector whose files have these digests.
func (s *Store) writeDigests(connector *spec.Connector, digests map[string]string) {
	m := cacheEntry{FQN: connector.FQN, Version: connector.Version, Hash: connector.Hash, Files: digests}
	raw, err := json.Marshal(m)
	if err != nil {
		return
	}
	file := s.indexFile(connector.Hash)
	tmp, err := os.CreateTemp(filepath.Dir(file), ".new-*")
	if err != nil {
		return
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(raw)
	if tmp.Close() == nil && err == nil {
		_ = os.Rename(tmp.Name(), file)
	}
}

// hasFilesOf reports whether there is a digest of each file of a connector, and of no other.
func (m cacheEntry) hasFilesOf(c contents) bool {
	for _, name := range hashedFiles {
		if _, there := c[name]; there != IsHash(m.Files[name]) {
			return false
		}
	}
	return true
}

// readCache returns the cache of a connector, or the zero value if there is none.
func (s *Store) readCache(hash string) cacheEntry {
	var m cacheEntry
	raw, err := os.ReadFile(s.indexFile(hash))
	if err != nil || json.Unmarshal(raw, &m) != nil || m.Hash != hash {
		return cacheEntry{}
	}
	if _, err := spec.ParseFQN(string(m.FQN)); err != nil {
		return cacheEntry{}
	}
	return m
}

// changedFiles returns the names of the files that are not what was installed.
func (m cacheEntry) changedFiles(c contents) []string {
	var list []string
	for _, name := range hashedFiles {
		data, there := c[name]
		want, known := m.Files[name]
		if there != known || there && sha256Digest(data) != want {
			list = append(list, name)
		}
	}
	return list
}
