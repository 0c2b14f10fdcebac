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

// InstallOptions say what is expected of what is installed.
type InstallOptions struct {
	Hash string // "sha256:…"; "": whatever it is

	// Around makes the installation by calling install, once everything is
	// checked; nil: nothing is around it. It is not called when nothing has
	// to be installed. The store is locked meanwhile.
	Around func(c *spec.Connector, install func() error) error
}

// Installed is the outcome of an installation.
type Installed struct {
	Connector *spec.Connector
	Already   bool // it was there before, byte for byte
	Signed    bool // it came with a signature; nothing has verified it
}

// Read reads and checks a connector's source, a directory or an
// aileron.tar.gz, without installing it.
func Read(src string) (*spec.Connector, error) {
	c, err := readSource(src)
	if err != nil {
		return nil, err
	}
	return c.load()
}

// Install puts a verified copy of a connector into the store: from a
// directory, from an aileron.tar.gz, or, when that very version is already
// there, from FQN@VERSION. It is atomic, and safe beside other installations.
// A version that is installed with other bytes is a *VersionError: versions
// do not change.
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
	s.remember(connector, c)
	return out, nil
}

// VersionError is a version whose bytes are not those that are installed
// under its name.
type VersionError struct {
	Entry Entry // what is installed
	New   string
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("%s is installed with other bytes (%s), and a version does not change", e.Entry, e.Entry.Hash[:min(len(e.Entry.Hash), 19)])
}

// ErrorClass is the class of CONTRACT section 4.
func (*VersionError) ErrorClass() string { return "hash_mismatch" }

// ErrNoNetwork is a source that would have to be fetched.
var ErrNoNetwork = errors.New("this release fetches nothing from a network; give a directory or an aileron.tar.gz")

// installed finds FQN@VERSION among what is there.
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

// put writes the files beside the store, flushes them, and moves them in with
// one rename. A broken entry of the same hash makes way. The lock is held.
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
