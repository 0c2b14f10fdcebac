package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/ALRubinger/aileron/internal/durable"
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
	c, err := readPath(src)
	if err != nil {
		return nil, err
	}
	return c.loadNew()
}

// ReadFS reads and validates a connector from the top of a file system, without
// installing it.
func ReadFS(fsys fs.FS) (*spec.Connector, error) {
	c, err := readFS(fsys)
	if err != nil {
		return nil, err
	}
	return c.loadNew()
}

// Install adds a valid connector to the store. Its source is a directory, an
// aileron.tar.gz, or FQN@VERSION if that version is installed already. Install
// is atomic and safe beside other installations. It returns a [*HashError] if
// the connector does not have the expected hash, and a [*VersionError] if the
// version is installed with other bytes: versions do not change.
func (s *Store) Install(ctx context.Context, src string, opts InstallOptions) (Installed, error) {
	all, err := s.InstallAll(ctx, []Source{{Src: src, Hash: opts.Hash}}, opts.Around)
	if err != nil {
		return Installed{}, err
	}
	return all[0], nil
}

// InstallAll installs connectors as [Store.Install] does, in their order, and
// verifies what is installed already only once. It stops at the first that fails;
// those before it are installed, and are returned with the error.
func (s *Store) InstallAll(ctx context.Context, sources []Source, around func(*spec.Connector, func() error) error,
) (all []Installed, err error) {
	i := &installation{s: s, around: around}
	defer i.unlock()
	for _, src := range sources {
		var in Installed
		if src.Files == nil && src.Archive == "" && strings.Contains(src.Src, "://") {
			in, err = s.installed(src)
		} else {
			in, err = i.add(ctx, src)
		}
		if err != nil {
			return all, err
		}
		all = append(all, in)
	}
	return all, nil
}

// installation is a call of InstallAll.
type installation struct {
	s       *Store
	around  func(c *spec.Connector, install func() error) error
	release func()  // of the store's lock; nil: it is not held
	entries []Entry // what is installed; nil: it has not been listed
}

func (i *installation) lock() (err error) {
	if i.release == nil {
		i.release, err = i.s.lock()
	}
	return err
}

func (i *installation) unlock() {
	if i.release != nil {
		i.release()
	}
}

// add installs one connector.
func (i *installation) add(ctx context.Context, src Source) (Installed, error) {
	connector, c, err := src.load()
	if err != nil {
		return Installed{}, err
	}
	if err := ctx.Err(); err != nil {
		return Installed{}, err
	}
	if err := i.lock(); err != nil {
		return Installed{}, err
	}
	_, signed := c[signatureFile]
	out := Installed{Connector: connector, Signed: signed}
	if _, err := i.s.Load(connector.Hash); err == nil {
		out.Already = true
		if src.Checked && src.Signature != nil {
			err = i.s.replaceSignature(connector.Hash, src.Signature)
		}
		return out, err
	}
	if err := i.checkVersion(connector); err != nil {
		return Installed{}, err
	}
	put, discard, err := i.s.prepare(connector.Hash, c)
	if err != nil {
		return Installed{}, fmt.Errorf("install %s: %w", connector.FQN, err)
	}
	defer discard()
	digests := c.digests()
	c.release() // before the database of the audit log is open
	if i.around != nil {
		inner := put
		put = func() error { return i.around(connector, inner) }
	}
	if err := put(); err != nil {
		return Installed{}, fmt.Errorf("install %s: %w", connector.FQN, err)
	}
	i.s.writeDigests(connector, digests)
	i.entries = append(i.entries, Entry{FQN: connector.FQN, Version: connector.Version, Hash: connector.Hash})
	return out, nil
}

// checkVersion returns a [*VersionError] if the version of c is installed with
// other bytes.
func (i *installation) checkVersion(c *spec.Connector) (err error) {
	if i.entries == nil {
		if i.entries, err = i.s.List(); err != nil {
			return err
		}
	}
	for _, e := range i.entries {
		if e.FQN == c.FQN && e.Version == c.Version && e.Hash != c.Hash {
			return &VersionError{Entry: e, New: c.Hash}
		}
	}
	return nil
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

// ErrorConnector returns the connector in the error object of --json.
func (e *VersionError) ErrorConnector() string { return e.Entry.name() }

// installed returns the installed connector that a source, FQN@VERSION, names.
func (s *Store) installed(source Source) (Installed, error) {
	src := source.Src
	name, version, ok := strings.Cut(src, "@")
	fqn, err := spec.ParseFQN(name)
	if err != nil {
		return Installed{}, err
	}
	if !ok {
		return Installed{}, fmt.Errorf("install %s: name its version, as in %s@1.2.0", src, fqn)
	}
	e, err := s.Find(fqn, version)
	if err != nil {
		return Installed{}, fmt.Errorf("install %s: %w", src, err)
	}
	if source.Hash != "" && source.Hash != e.Hash {
		return Installed{}, &HashError{What: "the installed " + src, Want: source.Hash, Got: e.Hash, Of: e.name()}
	}
	return Installed{Connector: e.connector, Already: true}, nil
}

// Find returns an installed version of a connector, verified, or [ErrNotInstalled].
func (s *Store) Find(fqn spec.FQN, version string) (Entry, error) {
	entries, err := s.List()
	if err != nil {
		return Entry{}, err
	}
	for _, e := range entries {
		if e.FQN == fqn && e.Version == version {
			return e, e.Err
		}
	}
	return Entry{}, ErrNotInstalled
}

// prepare writes the files beside the store, and flushes them. What it returns as put moves them into the store with
// one rename, and replaces a broken entry of the same hash; discard removes what was not moved. The lock is held.
func (s *Store) prepare(hash string, c contents) (put func() error, discard func(), err error) {
	tmp, err := os.MkdirTemp(filepath.Join(s.dir, "tmp"), "install-")
	if err != nil {
		return nil, nil, err
	}
	remove := func() { _ = os.RemoveAll(tmp) }
	defer func() {
		if err != nil {
			remove() // not discard: it is nil then
		}
	}()
	name := strings.TrimPrefix(hash, "sha256:")
	fresh := filepath.Join(tmp, name)
	if err := os.Mkdir(fresh, 0o700); err != nil {
		return nil, nil, err
	}
	for name, data := range c {
		if err := writeFlushed(filepath.Join(fresh, name), data); err != nil {
			return nil, nil, err
		}
	}
	if err := durable.SyncDir(fresh); err != nil {
		return nil, nil, err
	}
	return func() error { return s.put(tmp, name) }, remove, nil
}

// put moves the files of a connector from tmp into the store.
func (s *Store) put(tmp, name string) error {
	fresh, final := filepath.Join(tmp, name), filepath.Join(s.connectors(), name)
	if err := os.Rename(final, filepath.Join(tmp, "broken")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(fresh, final); err != nil {
		return err
	}
	return durable.SyncDir(s.connectors())
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

// ErrNotInstalled is returned for a connector that is not in the store.
var ErrNotInstalled = errors.New("it is not installed")

// Remove removes a version of a connector, or all of them if version is empty. fqn
// may also be a hash, for a connector that is too broken to have a name. around,
// if not nil, calls remove for each entry, and may do something before and after.
func (s *Store) Remove(fqn, version string, around func(e Entry, remove func() error) error) ([]Entry, error) {
	if around == nil {
		around = func(_ Entry, remove func() error) error { return remove() }
	}
	unlock, err := s.lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	entries, err := s.List()
	if err != nil {
		return nil, err
	}
	var gone []Entry
	for _, e := range entries {
		if string(e.FQN) != fqn && e.Hash != fqn || version != "" && e.Version != version {
			continue
		}
		if err := around(e, func() error { return s.drop(e) }); err != nil {
			return gone, fmt.Errorf("remove %s: %w", e, err)
		}
		gone = append(gone, e)
	}
	if len(gone) == 0 {
		if version != "" {
			fqn += "@" + version
		}
		return nil, fmt.Errorf("remove %s: %w", fqn, ErrNotInstalled)
	}
	return gone, nil
}

// drop removes an entry. It renames first, so that a session sees all of the
// connector or nothing.
func (s *Store) drop(e Entry) error {
	trash, err := os.MkdirTemp(filepath.Join(s.dir, "tmp"), "removed-")
	if err != nil {
		return err
	}
	name := strings.TrimPrefix(e.Hash, "sha256:")
	if err := os.Rename(filepath.Join(s.connectors(), name), filepath.Join(trash, name)); err != nil {
		return errors.Join(err, os.RemoveAll(trash))
	}
	_ = os.Remove(s.indexFile(e.Hash))
	return errors.Join(durable.SyncDir(s.connectors()), os.RemoveAll(trash))
}

// lock excludes other installations and removals, in this process and in others,
// until unlock is called. It removes what a killed process has left.
func (s *Store) lock() (unlock func(), err error) {
	tmp := filepath.Join(s.dir, "tmp")
	f, err := os.OpenFile(filepath.Join(tmp, ".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the connector store: %w", err)
	}
	if err := s.flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("lock the connector store: %w", err), f.Close())
	}
	left, _ := os.ReadDir(tmp)
	for _, d := range left {
		if dir := filepath.Join(tmp, d.Name()); d.Name() != ".lock" && !s.isInUse(dir) {
			_ = os.RemoveAll(dir)
		}
	}
	return func() { _ = f.Close() }, nil // closing the file lets go of the lock
}
