package store

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"github.com/ALRubinger/aileron/spec"
)

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
	m = cacheEntry{FQN: connector.FQN, Version: connector.Version, Hash: connector.Hash, Files: map[string]string{}}
	for _, name := range hashedFiles {
		if data, ok := c[name]; ok {
			m.Files[name] = sha256Digest(data)
		}
	}
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
		if _, there := c[name]; there != isHash(m.Files[name]) {
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
