// Package grants reads what a session may use from a directory that an operator, or a program of theirs, fills: which
// connectors, each pinned by its content hash, and where the credential of each comes from.
//
//	source := grants.Open("/etc/aileron/grants")
//	s, err := session.Open(ctx, session.Options{Home: home, Mode: "serve", Grants: source})
//
// [Source] implements [session.Grants]. The directory has a file, [File], and the directories of connectors; it may be
// empty or missing, and be filled later. What is not pinned is not granted, and what does not have its pinned hash is
// refused. A credential is in a file that other programs replace while the session runs: a Vault Agent, the secrets of
// Kubernetes, a CSI driver. secretfile.go has how it is read. Or it is what a program prints, which package command
// runs.
//
// No error has a byte of a secret.
package grants

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/ALRubinger/aileron/internal/dirwatch"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/catalog"
	"github.com/ALRubinger/aileron/spec/store"
	"github.com/ALRubinger/aileron/vault"
)

// Source is what a directory grants. Its methods are safe for concurrent use.
type Source struct {
	dir  string // absolute
	now  func() time.Time
	warn func(name string, err error)

	mu       sync.Mutex
	held     map[string]held // by the names of bindings: what All has read
	bindings []vault.Binding
	watched  []dirwatch.Dir
}

// held is a credential.
type held struct {
	credential vault.Credential
	digest     string
	file       string // the path that it was read from; "": it was not
}

// Options are the options of [Open].
type Options struct {
	Now func() time.Time // nil: time.Now
	// Warn is called when a credential cannot be read, and with nil when it can be again. Nil discards that.
	Warn func(name string, err error)
}

// Open returns what a directory grants, which need not exist. It reads nothing yet.
func Open(dir string, o Options) (*Source, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("find the directory of grants: %w", err)
	}
	s := &Source{dir: dir, now: o.Now, warn: o.Warn}
	if s.now == nil {
		s.now = time.Now
	}
	if s.warn == nil {
		s.warn = func(string, error) {}
	}
	s.watched = s.directories(document{})
	return s, nil
}

// errUnsettled is the error of a fingerprint while a file may be half written.
var errUnsettled = errors.New("a file of a secret changed just now")

// readDocument reads [File]. None is an empty one.
func (s *Source) readDocument() (d document, err error) {
	data, err := readFile(filepath.Join(s.dir, File), maxDocument)
	if errors.Is(err, fs.ErrNotExist) {
		return d, nil
	}
	if err == nil {
		d, err = parseDocument(data)
	}
	if err != nil {
		return document{}, fmt.Errorf("%s: %w", filepath.Join(s.dir, File), err)
	}
	return d, nil
}

// All reads everything that is granted. The error of a document that cannot be read is a [*store.ListError], and that
// of a connector a [*store.EntryError].
func (s *Source) All() (connectors []*spec.Connector, faults []error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d, err := s.readDocument()
	if err != nil {
		return nil, []error{&store.ListError{Err: err}}
	}
	l := loading{source: s, names: vault.NewNames(), held: map[string]held{}}
	for _, c := range d.Connectors {
		l.add(c)
	}
	s.held, s.bindings, s.watched = l.held, l.bindings, s.directories(d)
	return l.connectors, l.faults
}

// files returns the files of a connector. Links of a mounted ConfigMap are followed, but not out of the directory.
func (s *Source) files(c connector) fs.FS {
	if c.Catalog != "" {
		e, _ := catalog.Find(c.Catalog)
		return e.Files
	}
	return below{s.dir, c.Dir}
}

// loading is a reading of everything that is granted.
type loading struct {
	source     *Source
	names      *vault.Names
	connectors []*spec.Connector
	faults     []error
	bindings   []vault.Binding
	held       map[string]held
}

// add adds a connector, if its files have its hash, and its binding, if its credential can be read now.
func (l *loading) add(granted connector) {
	name, hash, from := granted.name(), granted.Hash, granted.Secret
	candidate, err := store.Source{Src: name, Hash: hash, Files: l.source.files(granted)}.Read()
	if err != nil {
		l.faults = append(l.faults, &store.EntryError{Entry: store.Entry{Hash: hash}, Err: fmt.Errorf("%s: %w", name, err)})
		return
	}
	c := candidate.Connector
	if slices.ContainsFunc(l.connectors, func(o *spec.Connector) bool { return o.FQN == c.FQN }) {
		l.faults = append(l.faults, &store.EntryError{Entry: store.Entry{FQN: c.FQN, Version: c.Version, Hash: hash},
			Err: errors.New("it is granted twice, and only the first one counts")})
		return
	}
	l.connectors = append(l.connectors, c)
	if from.isNone() || c.Credential() == nil {
		return
	}
	b := vault.Binding{Kind: string(c.Credential().Kind), Connector: string(c.FQN), Username: from.Username,
		Identity: cmp.Or(granted.Identity, "default")}
	if b.Name, err = l.names.Of(b.Kind, b.Connector, b.Identity); err == nil {
		err = b.Check()
	}
	if err != nil {
		l.source.warn(string(c.FQN), err)
		return
	}
	h, err := l.source.credential(b, from)
	if err != nil {
		l.source.warn(b.Name, err)
		return
	}
	l.source.warn(b.Name, nil)
	l.bindings, l.held[b.Name] = append(l.bindings, b), h
}

// Bindings returns the bindings whose credentials could be read.
func (s *Source) Bindings() ([]vault.Binding, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.bindings), nil
}

// Credential returns the credential of a binding, or [vault.ErrNotBound].
func (s *Source) Credential(name string) (vault.Credential, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h, ok := s.held[name]
	if !ok {
		return vault.Credential{}, vault.ErrNotBound
	}
	return h.credential, nil
}

// Digest returns what differs after each change of a binding, or "" if there is none.
func (s *Source) Digest(name string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held[name].digest, nil
}

// Fingerprint returns what changes with the files that All reads, and their metadata.
func (s *Source) Fingerprint() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := sha256.New()
	note := func(path string) { fmt.Fprintln(h, path, stampOf(path)) }
	note(filepath.Join(s.dir, File))
	d, err := s.readDocument()
	if err != nil {
		return hex.EncodeToString(h.Sum(nil)), nil // All returns the error
	}
	for _, c := range d.Connectors {
		if c.Dir != "" {
			for _, name := range store.FileNames() {
				note(filepath.Join(s.dir, c.Dir, name))
			}
		}
		if c.Secret.File == "" {
			continue
		}
		path := s.path(c.Secret.File)
		note(path)
		if s.isUnsettled(path) {
			return "", errUnsettled
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Dirs returns the directories whose changes matter.
func (s *Source) Dirs() []dirwatch.Dir {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.watched
}

// directories returns those in which a document's files are, the directory of the document first.
func (s *Source) directories(d document) []dirwatch.Dir {
	dirs := []dirwatch.Dir{{Path: filepath.Dir(s.dir), Names: []string{filepath.Base(s.dir)}}, {Path: s.dir, Deep: true}}
	for _, c := range d.Connectors {
		if c.Secret.File == "" {
			continue
		}
		dir := dirwatch.Dir{Path: filepath.Dir(s.path(c.Secret.File))}
		if !slices.ContainsFunc(dirs, func(o dirwatch.Dir) bool { return o.Path == dir.Path }) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// path returns the absolute path of a file that the document names.
func (s *Source) path(file string) string {
	if filepath.IsAbs(file) {
		return filepath.Clean(file)
	}
	return filepath.Join(s.dir, file)
}

// below is the file system of a directory below root, with links that do not leave root.
type below struct{ root, dir string }

// Open implements [fs.FS].
func (b below) Open(name string) (fs.File, error) {
	root, err := os.OpenRoot(b.root)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return openRegular(root, filepath.Join(b.dir, name))
}
