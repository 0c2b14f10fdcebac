// Package store keeps installed connectors by the hash of their bytes.
//
// A connector is a directory of a few known files. The hash covers each of
// them that grants something, and it is computed anew, over the very bytes
// that are then parsed, whenever a connector is read: what was changed after
// its installation is not used.
//
//	<dir>/connectors/sha256/<hash>/{manifest.toml, aileron.connector.v1.json, …}
//	<dir>/index/<hash>.json   a cache for telling names; nothing is decided by it
//	<dir>/tmp/                what is being installed or removed, and the lock
package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/ALRubinger/aileron/internal/format"
	"github.com/ALRubinger/aileron/spec"
)

// Store is <home>/store. Its methods are safe for use by several goroutines
// and processes.
type Store struct {
	dir   string
	flock func(fd, how int) error // flock(2); a test has a fake
}

// storeFormat is the format of the store's directory.
const storeFormat = format.First

// Open makes the store's directories where they are missing. A store that a
// newer aileron has written to is a *format.Error.
func Open(dir string) (*Store, error) {
	if err := format.Check(dir, storeFormat); err != nil {
		return nil, err
	}
	for _, sub := range []string{"connectors/sha256", "index", "tmp"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return nil, fmt.Errorf("make the connector store: %w", err)
		}
	}
	return &Store{dir: dir, flock: syscall.Flock}, nil
}

func (s *Store) connectors() string { return filepath.Join(s.dir, "connectors", "sha256") }

// HashError is bytes that do not have the hash that they should have.
type HashError struct {
	What      string
	Want, Got string
}

func (e *HashError) Error() string {
	return fmt.Sprintf("%s has the hash %s, not %s", e.What, e.Got, e.Want)
}

// ErrorClass is the class of CONTRACT section 4.
func (*HashError) ErrorClass() string { return "hash_mismatch" }

// TamperedError is an installed connector that is not what was installed.
type TamperedError struct {
	Hash string // under which it was installed
	Why  string // names the file where it is known
}

func (e *TamperedError) Error() string {
	return fmt.Sprintf("the installed connector %s was changed: %s", e.Hash[:min(len(e.Hash), 19)], e.Why)
}

// ErrorClass is the class of CONTRACT section 4.
func (*TamperedError) ErrorClass() string { return "hash_mismatch" }

// Load reads the connector with the given hash and verifies it: the bytes
// that are hashed are the bytes that are parsed. What was changed is a
// *TamperedError, what could not be read an *UnreadableError, and what is not
// there fs.ErrNotExist.
func (s *Store) Load(hash string) (*spec.Connector, error) {
	connector, _, err := s.verify(hash)
	return connector, err
}

func (s *Store) verify(hash string) (*spec.Connector, contents, error) {
	if !isHash(hash) {
		return nil, nil, fmt.Errorf("load the connector: %q is not sha256: and 64 hexadecimal digits", hash)
	}
	dir := filepath.Join(s.connectors(), strings.TrimPrefix(hash, "sha256:"))
	// The directory itself is not a link either.
	info, err := os.Lstat(dir)
	switch {
	case unreadable(err):
		return nil, nil, &UnreadableError{Hash: hash, Err: withoutPath(err)}
	case err != nil:
		return nil, nil, fmt.Errorf("load the connector %s: %w", hash, withoutPath(err))
	case !info.IsDir():
		return nil, nil, &TamperedError{hash, "it is not a directory"}
	}
	c, err := readDir(dir)
	var file *fileError
	switch {
	case errors.As(err, &file) && unreadable(file.err):
		return nil, nil, &UnreadableError{Hash: hash, File: file.name, Err: file.err}
	case file != nil:
		return nil, nil, &TamperedError{hash, file.name + ": " + file.err.Error()}
	case unreadable(err):
		return nil, nil, &UnreadableError{Hash: hash, Err: withoutPath(err)}
	case err != nil:
		return nil, nil, err
	}
	if got := c.hash(); got != hash {
		return nil, nil, &TamperedError{hash, s.why(hash, c)}
	}
	connector, err := c.load()
	return connector, c, err
}

// why tells which files are not what was installed.
func (s *Store) why(hash string, c contents) string {
	m := s.remembered(hash)
	if m.Hash == "" {
		return "its bytes have the hash " + c.hash()
	}
	var told []string
	for _, name := range m.changed(c) {
		switch _, there := c[name]; {
		case !there:
			told = append(told, name+" is missing")
		case m.Files[name] == "":
			told = append(told, name+" was added")
		default:
			told = append(told, name+" has other bytes")
		}
	}
	return strings.Join(told, ", ")
}

// Has reports whether a connector of that hash is installed, a broken one
// included.
func (s *Store) Has(hash string) (bool, error) {
	if !isHash(hash) {
		return false, fmt.Errorf("find the connector: %q is not sha256: and 64 hexadecimal digits", hash)
	}
	_, err := os.Lstat(filepath.Join(s.connectors(), strings.TrimPrefix(hash, "sha256:")))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("find the connector %s: %w", hash, withoutPath(err))
	}
	return err == nil, nil
}

func isHash(s string) bool {
	digits, ok := strings.CutPrefix(s, "sha256:")
	return ok && len(digits) == 64 && strings.Trim(digits, "0123456789abcdef") == ""
}

// Entry is one installed connector. Err says why it cannot be used.
type Entry struct {
	FQN     spec.FQN // "" when it is broken and its name is not known any more
	Version string
	Hash    string
	Err     error

	connector *spec.Connector
}

// String is FQN@VERSION, or the hash.
func (e Entry) String() string {
	if e.FQN == "" {
		return e.Hash
	}
	return string(e.FQN) + "@" + e.Version
}

// List reads and verifies all that is installed, by name and version.
func (s *Store) List() ([]Entry, error) {
	err := format.Check(s.dir, storeFormat)
	if err != nil {
		return nil, &StoreError{err}
	}
	dirs, err := os.ReadDir(s.connectors())
	if err != nil {
		return nil, &StoreError{err}
	}
	var all []Entry
	for _, d := range dirs {
		e := Entry{Hash: "sha256:" + d.Name()}
		connector, c, err := s.verify(e.Hash)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue // removed between two looks
		case err != nil:
			m := s.remembered(e.Hash)
			e.Err, e.FQN, e.Version = err, m.FQN, m.Version
		default:
			e.FQN, e.Version, e.connector = connector.FQN, connector.Version, connector
			s.remember(connector, c)
		}
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b Entry) int {
		if c := strings.Compare(string(a.FQN), string(b.FQN)); c != 0 {
			return c
		}
		if c := spec.CompareVersions(a.Version, b.Version); c != 0 {
			return c
		}
		return strings.Compare(a.Hash, b.Hash)
	})
	return all, nil
}

// Current returns the newest version of every connector, by name. What fails
// its verification, or could not be read, is not among them, and each such
// entry has an *EntryError; so has a version that appears twice with different
// bytes. A store that could not be listed is one *StoreError.
func (s *Store) Current() ([]*spec.Connector, []error) {
	entries, err := s.List()
	if err != nil {
		return nil, []error{err}
	}
	var faults []error
	var current []*spec.Connector
	for i, e := range entries {
		if e.Err != nil {
			faults = append(faults, &EntryError{e, e.Err})
			continue
		}
		if other := twin(entries, i); other != "" {
			faults = append(faults, &EntryError{e, &HashError{What: "another installed copy", Want: e.Hash, Got: other}})
			continue
		}
		if n := len(current); n > 0 && current[n-1].FQN == e.FQN {
			current[n-1] = e.connector // entries are in the order of versions
			continue
		}
		current = append(current, e.connector)
	}
	return current, faults
}

// twin is the hash of another sound entry of the same name and version.
func twin(entries []Entry, i int) string {
	for _, o := range entries {
		if o.Err == nil && o.Hash != entries[i].Hash && o.FQN == entries[i].FQN && o.Version == entries[i].Version {
			return o.Hash
		}
	}
	return ""
}
