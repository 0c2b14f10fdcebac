package store

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"github.com/ALRubinger/aileron/spec"
)

// memory is index/<hash>.json: a connector's name and its files' digests, to
// tell which connector is broken and which of its files was changed. It is a
// cache that nothing is decided by: made anew where it is missing.
type memory struct {
	FQN     spec.FQN          `json:"fqn"`
	Version string            `json:"version"`
	Hash    string            `json:"hash"`
	Files   map[string]string `json:"files"`
}

func (s *Store) indexFile(hash string) string {
	return filepath.Join(s.dir, "index", strings.TrimPrefix(hash, "sha256:")+".json")
}

// remember keeps the cache of a verified connector. It may fail: doing
// without is fine.
func (s *Store) remember(connector *spec.Connector, c contents) {
	m := memory{FQN: connector.FQN, Version: connector.Version, Hash: connector.Hash, Files: map[string]string{}}
	for _, name := range hashedFiles {
		if data, ok := c[name]; ok {
			m.Files[name] = digest(data)
		}
	}
	raw, err := json.Marshal(m)
	if err != nil {
		return
	}
	file := s.indexFile(connector.Hash)
	if old, err := os.ReadFile(file); err == nil && bytes.Equal(old, raw) {
		return
	}
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

func (s *Store) remembered(hash string) memory {
	var m memory
	raw, err := os.ReadFile(s.indexFile(hash))
	if err != nil || json.Unmarshal(raw, &m) != nil || m.Hash != hash {
		return memory{}
	}
	if _, err := spec.ParseFQN(string(m.FQN)); err != nil {
		return memory{}
	}
	return m
}

// changed names the files that are not what was installed.
func (m memory) changed(c contents) []string {
	var list []string
	for _, name := range hashedFiles {
		data, there := c[name]
		want, known := m.Files[name]
		if there != known || there && digest(data) != want {
			list = append(list, name)
		}
	}
	return list
}
