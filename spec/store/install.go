package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/ALRubinger/aileron/spec"
)

// InstallOptions are the options of [Store.Install].
type InstallOptions struct {
	Hash string // the expected "sha256:…"; "" accepts any

	// Around, if not nil, calls install when everything is checked, and may do
	// something before and after. It is not called if nothing has to be
	// installed. The store is locked meanwhile.
	Around func(c *spec.Connector, install func() error) error
}

// Installed is the result of an installation.
type Installed struct {
	Connector *spec.Connector
	Already   bool // the same bytes were installed before
	Signed    bool // it has a signature, which is not verified
}

// Read reads and validates a connector from a directory or an aileron.tar.gz,
// without installing it.
func Read(src string) (*spec.Connector, error) {
	c, err := readSource(src)
	if err != nil {
		return nil, err
	}
	return c.load()
}

// Install adds a valid connector to the store. Its source is a directory, an
// aileron.tar.gz, or FQN@VERSION if that version is installed already. Install
// is atomic and safe beside other installations. It returns a [*HashError] if
// the connector does not have the expected hash, and a [*VersionError] if the
// version is installed with other bytes: versions do not change.
func (s *Store) Install(ctx context.Context, src string, opts InstallOptions) (Installed, error) {
	if strings.Contains(src, "://") {
		return s.installed(src, opts)
	}
	c, err := readSource(src)
	if err != nil {
		return Installed{}, err
	}
	connector, err := c.load()
	if err != nil {
		return Installed{}, err
	}
	if opts.Hash != "" && opts.Hash != connector.Hash {
		return Installed{}, &HashError{What: src, Want: opts.Hash, Got: connector.Hash}
	}
	if err := ctx.Err(); err != nil {
		return Installed{}, err
	}
	unlock, err := s.lock()
	if err != nil {
		return Installed{}, err
	}
	defer unlock()
	_, signed := c[signatureFile]
	out := Installed{Connector: connector, Signed: signed}
	if _, err := s.Load(connector.Hash); err == nil {
		out.Already = true
		return out, nil
	}
	entries, err := s.List()
	if err != nil {
		return Installed{}, err
	}
	for _, e := range entries {
		if e.FQN == connector.FQN && e.Version == connector.Version && e.Hash != connector.Hash {
			return Installed{}, &VersionError{Entry: e, New: connector.Hash}
		}
	}
	put := func() error { return s.put(connector.Hash, c) }
	if opts.Around != nil {
		inner := put
		put = func() error { return opts.Around(connector, inner) }
	}
	if err := put(); err != nil {
		return Installed{}, fmt.Errorf("install %s: %w", connector.FQN, err)
	}
	s.writeCache(connector, c)
	return out, nil
}

// VersionError is returned when a version is installed already, with other bytes.
type VersionError struct {
	Entry Entry // what is installed
	New   string
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("%s is installed with other bytes (%s), and a version does not change",
		e.Entry, e.Entry.Hash[:min(len(e.Entry.Hash), 19)])
}

// ErrorClass returns the class in the error object of --json.
func (*VersionError) ErrorClass() string { return "hash_mismatch" }

// ErrNoNetwork is returned for a source that would have to be fetched.
var ErrNoNetwork = errors.New("this release fetches nothing from a network; give a directory or an aileron.tar.gz")

// installed returns the installed connector that src, FQN@VERSION, names.
func (s *Store) installed(src string, opts InstallOptions) (Installed, error) {
	name, version, ok := strings.Cut(src, "@")
	fqn, err := spec.ParseFQN(name)
	if err != nil {
		return Installed{}, err
	}
	if !ok {
		return Installed{}, fmt.Errorf("install %s: name its version, as in %s@1.2.0", src, fqn)
	}
	entries, err := s.List()
	if err != nil {
		return Installed{}, err
	}
	for _, e := range entries {
		if e.FQN != fqn || e.Version != version {
			continue
		}
		if e.Err != nil {
			return Installed{}, fmt.Errorf("install %s: %w", src, e.Err)
		}
		if opts.Hash != "" && opts.Hash != e.Hash {
			return Installed{}, &HashError{What: "the installed " + src, Want: opts.Hash, Got: e.Hash}
		}
		return Installed{Connector: e.connector, Already: true}, nil
	}
	return Installed{}, fmt.Errorf("install %s: %w", src, ErrNoNetwork)
}

// put writes the files beside the store, flushes them, and moves them into it with
// one rename. It replaces a broken entry of the same hash. The lock is held.
func (s *Store) put(hash string, c contents) error {
	tmp, err := os.MkdirTemp(filepath.Join(s.dir, "tmp"), "install-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	name := strings.TrimPrefix(hash, "sha256:")
	fresh, final := filepath.Join(tmp, name), filepath.Join(s.connectors(), name)
	if err := os.Mkdir(fresh, 0o700); err != nil {
		return err
	}
	for name, data := range c {
		if err := writeFlushed(filepath.Join(fresh, name), data); err != nil {
			return err
		}
	}
	if err := flushDir(fresh); err != nil {
		return err
	}
	if err := os.Rename(final, filepath.Join(tmp, "broken")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(fresh, final); err != nil {
		return err
	}
	return flushDir(s.connectors())
}

func writeFlushed(name string, data []byte) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func flushDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
