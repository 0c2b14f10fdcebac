// Package store keeps installed connectors, each under the hash of its bytes.
//
// [Open] opens the store of a home, [Store.Install] adds a connector, and
// [Store.Current] returns the newest version of each, verified. A connector is a
// directory of a few known files. The hash covers each of them that grants
// something. It is computed whenever a connector is read, from the bytes that
// are then parsed, so that a connector that was changed after its installation
// is refused with a [*TamperedError].
//
//	<dir>/connectors/sha256/<hash>/{manifest.toml, aileron.connector.v1.json, …}
//	<dir>/index/<hash>.json   a cache of names; no decision depends on it
//	<dir>/tmp/                what is being installed or removed, and the lock
//
// Open this file first: what is verified whenever a connector is read. contents.go
// is its files and their hash, entries.go the lists of what is installed,
// install.go what changes them; source.go and archive.go read what is brought.
package store

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/ALRubinger/aileron/internal/format"
	"github.com/ALRubinger/aileron/spec"
)

// Store is the directory <home>/store. Its methods are safe for concurrent use by
// goroutines and processes. A process opens a store once, so that it parses each
// connector once.
type Store struct {
	dir   string
	flock func(fd, how int) error // flock(2); a test has a fake

	// parsed are the connectors of the last list, by their hashes. They are what the bytes of their hash are parsed as,
	// and nothing changes them: a list that has verified the same bytes need not parse them again.
	parsed atomic.Pointer[map[string]*spec.Connector]
}

// storeFormat is the format of the store's directory.
const storeFormat = format.First

// Open returns the store in dir, and creates its directories if they are missing.
// It returns a [*format.Error] if a newer aileron has written to the store.
func Open(dir string) (*Store, error) {
	if err := format.Check(dir, storeFormat); err != nil {
		return nil, err
	}
	for _, sub := range []string{"connectors/sha256", "index", "tmp"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return nil, fmt.Errorf("create the connector store: %w", err)
		}
	}
	return &Store{dir: dir, flock: syscall.Flock}, nil
}

func (s *Store) connectors() string { return filepath.Join(s.dir, "connectors", "sha256") }

// HashError is returned for bytes that do not have the expected hash.
type HashError struct {
	What      string
	Want, Got string
	Of        string // the connector, FQN@VERSION; "" if it is not known
}

func (e *HashError) Error() string {
	return fmt.Sprintf("%s has the hash %s, not %s", e.What, e.Got, e.Want)
}

// ErrorClass returns the class in the error object of --json.
func (*HashError) ErrorClass() string { return "hash_mismatch" }

// ErrorConnector returns the connector in the error object of --json.
func (e *HashError) ErrorConnector() string { return e.Of }

// TamperedError is returned for a connector that was changed after its installation.
type TamperedError struct {
	Hash string // under which it was installed
	Why  string // names the file if it is known
}

func (e *TamperedError) Error() string {
	return fmt.Sprintf("the installed connector %s was changed: %s", e.Hash[:min(len(e.Hash), 19)], e.Why)
}

// ErrorClass returns the class in the error object of --json.
func (*TamperedError) ErrorClass() string { return "hash_mismatch" }

// Load returns the connector with the given hash, verified: the bytes that are
// hashed are the bytes that are parsed. It returns a [*TamperedError] if they
// were changed, an [*UnreadableError] if they could not be read, and
// [fs.ErrNotExist] if there is no such connector.
func (s *Store) Load(hash string) (*spec.Connector, error) {
	connector, c, err := s.verify(hash)
	c.release()
	return connector, err
}

func (s *Store) verify(hash string) (*spec.Connector, contents, error) {
	c, err := s.readVerified(hash)
	if err != nil {
		return nil, nil, err
	}
	connector, err := c.load()
	return connector, c, err
}

// readVerified returns the files of an installed connector, which have its hash.
func (s *Store) readVerified(hash string) (contents, error) {
	if !IsHash(hash) {
		return nil, fmt.Errorf("load the connector: %q is not sha256: and 64 hexadecimal digits", hash)
	}
	dir := filepath.Join(s.connectors(), strings.TrimPrefix(hash, "sha256:"))
	// The directory itself is not a link either.
	info, err := os.Lstat(dir)
	switch {
	case unreadable(err):
		return nil, &UnreadableError{Hash: hash, Err: withoutPath(err)}
	case err != nil:
		return nil, fmt.Errorf("load the connector %s: %w", hash, withoutPath(err))
	case !info.IsDir():
		return nil, &TamperedError{hash, "it is not a directory"}
	}
	c, err := readDir(dir)
	var file *fileError
	switch {
	case errors.As(err, &file) && unreadable(file.err):
		return nil, &UnreadableError{Hash: hash, File: file.name, Err: file.err}
	case file != nil:
		return nil, &TamperedError{hash, file.name + ": " + file.err.Error()}
	case unreadable(err):
		return nil, &UnreadableError{Hash: hash, Err: withoutPath(err)}
	case err != nil:
		return nil, err
	}
	if got := c.hash(); got != hash {
		return nil, &TamperedError{hash, s.describeChanges(hash, c)}
	}
	return c, nil
}

// describeChanges returns which files are not what was installed, for people.
func (s *Store) describeChanges(hash string, c contents) string {
	m := s.readCache(hash)
	if m.Hash == "" {
		return "its bytes have the hash " + c.hash()
	}
	var changes []string
	for _, name := range m.changedFiles(c) {
		switch _, there := c[name]; {
		case !there:
			changes = append(changes, name+" is missing")
		case m.Files[name] == "":
			changes = append(changes, name+" was added")
		default:
			changes = append(changes, name+" has other bytes")
		}
	}
	return strings.Join(changes, ", ")
}

// Has reports whether a connector of that hash is installed, even a broken one.
func (s *Store) Has(hash string) (bool, error) {
	if !IsHash(hash) {
		return false, fmt.Errorf("find the connector: %q is not sha256: and 64 hexadecimal digits", hash)
	}
	_, err := os.Lstat(filepath.Join(s.connectors(), strings.TrimPrefix(hash, "sha256:")))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("find the connector %s: %w", hash, withoutPath(err))
	}
	return err == nil, nil
}

// IsHash reports whether a text is the hash of a connector: sha256: and 64 hexadecimal digits.
func IsHash(s string) bool {
	digits, ok := strings.CutPrefix(s, "sha256:")
	return ok && len(digits) == 64 && strings.Trim(digits, "0123456789abcdef") == ""
}

// Entry is an installed connector. If Err is not nil, it cannot be used.
type Entry struct {
	FQN     spec.FQN // "" if it is broken and its name is not known any more
	Version string
	Hash    string
	Err     error

	connector *spec.Connector
}

// String returns FQN@VERSION, or the hash.
func (e Entry) String() string {
	return cmp.Or(e.name(), e.Hash)
}

// name returns FQN@VERSION, or "".
func (e Entry) name() string {
	if e.FQN == "" {
		return ""
	}
	return string(e.FQN) + "@" + e.Version
}

// List returns every installed connector, verified, by name and version.
func (s *Store) List() ([]Entry, error) {
	err := format.Check(s.dir, storeFormat)
	if err != nil {
		return nil, &ListError{err}
	}
	dirs, err := os.ReadDir(s.connectors())
	if err != nil {
		return nil, &ListError{err}
	}
	return sortedEntries(s.readEntries(dirs, true)), nil
}

// sortedEntries sorts entries by name and version, and returns them.
func sortedEntries(all []Entry) []Entry {
	slices.SortFunc(all, func(a, b Entry) int {
		if c := strings.Compare(string(a.FQN), string(b.FQN)); c != 0 {
			return c
		}
		if c := spec.CompareVersions(a.Version, b.Version); c != 0 {
			return c
		}
		return strings.Compare(a.Hash, b.Hash)
	})
	return all
}
