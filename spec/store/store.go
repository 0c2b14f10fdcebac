// Package store keeps installed connectors by the hash of their bytes.
//
// A connector is a directory of a few known files. The hash covers each of
// them that grants something, and it is computed anew, over the very bytes
// that are then parsed, whenever a connector is read: what was changed after
// its installation is not used.
package store

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/spec"
)

// Names of a connector's files, in the order in which the hash takes them.
// The manifest and the spec must be there.
const (
	manifestFile = "manifest.toml"
	specFile     = "aileron.connector.v1.json"
)

var hashedFiles = []string{"connector.wasm", "connector.bin", manifestFile, specFile}

// signatureFile vouches for the hash, and is not part of it.
const signatureFile = "signature.sig"

const (
	maxText   = 1 << 20
	maxBinary = 64 << 20
)

// Store is <home>/store. Its methods are safe for use by several processes.
type Store struct{ dir string }

// Open makes the store's directories where they are missing.
func Open(dir string) (*Store, error) {
	for _, sub := range []string{"connectors/sha256", "index", "tmp"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return nil, fmt.Errorf("make the connector store: %w", err)
		}
	}
	return &Store{dir: dir}, nil
}

func (s *Store) connectors() string { return filepath.Join(s.dir, "connectors", "sha256") }

// contents are a connector's files by name.
type contents map[string][]byte

// hash is "sha256:" and the digest over the files in the order of
// hashedFiles, each that is there as: the length of its name and the name,
// the length of its bytes and the bytes; lengths are 64 bits, big endian.
func (c contents) hash() string {
	h := sha256.New()
	var size [8]byte
	put := func(b []byte) {
		binary.BigEndian.PutUint64(size[:], uint64(len(b)))
		h.Write(size[:])
		h.Write(b)
	}
	for _, name := range hashedFiles {
		if data, ok := c[name]; ok {
			put([]byte(name))
			put(data)
		}
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// load parses the connector from the bytes in hand.
func (c contents) load() (*spec.Connector, error) {
	for _, name := range []string{manifestFile, specFile} {
		if _, ok := c[name]; !ok {
			return nil, fmt.Errorf("read the connector: %s is missing", name)
		}
	}
	connector, err := spec.Load(c[manifestFile], c[specFile])
	if err != nil {
		return nil, fmt.Errorf("read the connector: %w", err)
	}
	connector.Hash = c.hash()
	return connector, nil
}

// readDir reads a connector's files through an os.Root: nothing outside dir
// is reached, and links are refused.
func readDir(dir string) (contents, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open the connector: %w", err)
	}
	defer root.Close()
	c := contents{}
	for _, name := range append(slices.Clone(hashedFiles), signatureFile) {
		info, err := root.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		if !info.Mode().IsRegular() {
			return nil, fmt.Errorf("read %s: it is not a regular file", name)
		}
		f, err := root.Open(name)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		data, err := readLimited(f, name)
		if err := errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
		c[name] = data
	}
	return c, nil
}

func readLimited(r io.Reader, name string) ([]byte, error) {
	most := int64(maxText)
	if strings.HasPrefix(name, "connector.") {
		most = maxBinary
	}
	data, err := io.ReadAll(io.LimitReader(r, most+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if int64(len(data)) > most {
		return nil, fmt.Errorf("read %s: it is larger than %d bytes", name, most)
	}
	return data, nil
}

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

// Load reads the connector with the given hash and verifies it.
func (s *Store) Load(hash string) (*spec.Connector, error) {
	digest, ok := strings.CutPrefix(hash, "sha256:")
	if !ok || len(digest) != 64 || strings.Trim(digest, "0123456789abcdef") != "" {
		return nil, fmt.Errorf("load the connector: %q is not sha256: and 64 hexadecimal digits", hash)
	}
	c, err := readDir(filepath.Join(s.connectors(), digest))
	if err != nil {
		return nil, err
	}
	if got := c.hash(); got != hash {
		return nil, &HashError{What: "the installed connector " + digest[:12], Want: hash, Got: got}
	}
	return c.load()
}

// Entry is one installed connector. Err says why it cannot be used.
type Entry struct {
	FQN     spec.FQN
	Version string
	Hash    string
	Err     error
}

// List reads and verifies all that is installed, by name and version.
func (s *Store) List() ([]Entry, error) {
	dirs, err := os.ReadDir(s.connectors())
	if err != nil {
		return nil, fmt.Errorf("list the connectors: %w", err)
	}
	var all []Entry
	for _, d := range dirs {
		e := Entry{Hash: "sha256:" + d.Name()}
		c, err := s.Load(e.Hash)
		if err != nil {
			e.Err = err
			e.FQN, e.Version = s.remembered(e.Hash)
		} else {
			e.FQN, e.Version = c.FQN, c.Version
		}
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b Entry) int {
		if a.FQN != b.FQN {
			return strings.Compare(string(a.FQN), string(b.FQN))
		}
		return spec.CompareVersions(a.Version, b.Version)
	})
	return all, nil
}

// Current gives the newest version of every connector. What fails its
// verification is not among them, and is named in the errors.
func (s *Store) Current() ([]*spec.Connector, []error) {
	entries, err := s.List()
	if err != nil {
		return nil, []error{err}
	}
	var faults []error
	newest := map[spec.FQN]*spec.Connector{}
	for _, e := range entries {
		c, err := s.Load(e.Hash)
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", e.name(), err))
			continue
		}
		newest[c.FQN] = c // entries are in the order of versions
	}
	var current []*spec.Connector
	for _, c := range newest {
		current = append(current, c)
	}
	slices.SortFunc(current, func(a, b *spec.Connector) int { return strings.Compare(string(a.FQN), string(b.FQN)) })
	return current, faults
}

func (e Entry) name() string {
	if e.FQN == "" {
		return e.Hash
	}
	return string(e.FQN) + "@" + e.Version
}

// ErrNotInstalled is a connector that is not in the store.
var ErrNotInstalled = errors.New("it is not installed")

// Remove takes a connector out of the store: one version, or all when version
// is empty.
func (s *Store) Remove(fqn, version string) ([]Entry, error) {
	entries, err := s.List()
	if err != nil {
		return nil, err
	}
	var gone []Entry
	for _, e := range entries {
		if string(e.FQN) != fqn || version != "" && e.Version != version {
			continue
		}
		digest := strings.TrimPrefix(e.Hash, "sha256:")
		// Renamed first: a session sees all of it or nothing.
		trash, err := os.MkdirTemp(filepath.Join(s.dir, "tmp"), "removed-")
		if err != nil {
			return gone, fmt.Errorf("remove %s: %w", e.name(), err)
		}
		if err := os.Rename(filepath.Join(s.connectors(), digest), filepath.Join(trash, digest)); err != nil {
			return gone, fmt.Errorf("remove %s: %w", e.name(), err)
		}
		_ = os.Remove(s.indexFile(e.Hash))
		if err := os.RemoveAll(trash); err != nil {
			return gone, fmt.Errorf("remove %s: %w", e.name(), err)
		}
		gone = append(gone, e)
	}
	if len(gone) == 0 {
		return nil, fmt.Errorf("remove %s: %w", fqn, ErrNotInstalled)
	}
	return gone, nil
}

// Fingerprint changes whenever a file of the store may have changed.
func (s *Store) Fingerprint() (string, error) {
	h := sha256.New()
	err := filepath.WalkDir(s.connectors(), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		}
		info, err := d.Info()
		if err != nil {
			return nil //nolint:nilerr // gone between two looks: the next one sees it
		}
		fmt.Fprintln(h, path, info.Size(), info.ModTime().UnixNano(), info.Mode(), changeTime(info))
		return nil
	})
	return hex.EncodeToString(h.Sum(nil)), err
}

// remembered gives the name under which a connector was installed, for
// telling which one is broken.
func (s *Store) remembered(hash string) (spec.FQN, string) {
	raw, err := os.ReadFile(s.indexFile(hash))
	if err != nil {
		return "", ""
	}
	var e struct{ FQN, Version string }
	if json.Unmarshal(raw, &e) != nil {
		return "", ""
	}
	return spec.FQN(e.FQN), e.Version
}

func (s *Store) indexFile(hash string) string {
	return filepath.Join(s.dir, "index", strings.TrimPrefix(hash, "sha256:")+".json")
}
