// Package connectors is what commands do with connectors, without a command line: [Names] resolves what a person calls
// them, [Fetcher] fetches them and finds newer versions, [DescribeConnector] and [SummariseConnector] describe what
// one grants, [GrantsSame] compares two, and [CheckInstalled] reports who published one.
package connectors

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/home"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/catalog"
	"github.com/ALRubinger/aileron/spec/store"
)

// seeCatalog is the hint for a name that no connector has.
const seeCatalog = "see what there is with: aileron connector list --catalog"

// Names resolves the names that people give to connectors. It reads the store when a short name needs it.
type Names struct {
	d         *home.Dir
	Installed []spec.FQN
	read      bool
}

// NewNames returns what resolves the names of the home d.
func NewNames(d *home.Dir) *Names { return &Names{d: d} }

// Resolve returns the FQN that name stands for. A name with a scheme is an FQN. Any other is the short name of a
// connector of the catalogue, or the last part of the FQN of an installed one. One that can be several is refused: a
// credential must not go to the connector that a person did not mean.
func (n *Names) Resolve(name string) (spec.FQN, error) {
	if strings.Contains(name, "://") || !IsShortName(name) {
		fqn, err := spec.ParseFQN(name)
		if err != nil {
			return "", failure.Usage(err)
		}
		return fqn, nil
	}
	if err := n.ReadInstalled(); err != nil {
		return "", err
	}
	switch found := n.Candidates(name); len(found) {
	case 0:
		return "", n.unknown(name)
	case 1:
		return found[0], nil
	default:
		return "", AmbiguousName(name, found)
	}
}

// AmbiguousName returns the error for a short name that can stand for several connectors.
func AmbiguousName[S ~string](name string, found []S) error {
	return hint.New(failure.Usagef("the connector name %s can be %s", name, hint.Alternatives(found)),
		"write one of them in full")
}

// IsUnknown reports whether err means that no connector has a short name.
func IsUnknown(err error) bool { return errors.Is(err, store.ErrNotInstalled) }

// ResolveInstalled returns the FQN of the installed connector that name stands for.
func (n *Names) ResolveInstalled(name string) (spec.FQN, error) {
	fqn, err := n.Resolve(name)
	if err == nil {
		err = n.ReadInstalled()
	}
	if err == nil && !slices.Contains(n.Installed, fqn) {
		err = NotInstalled(name, fqn)
	}
	return fqn, err
}

// Candidates returns the FQNs that a short name can stand for, sorted.
func (n *Names) Candidates(name string) []spec.FQN {
	var found []spec.FQN
	if catalog.Has(name) {
		found = append(found, catalog.FQN(name))
	}
	for _, fqn := range n.Installed {
		if fqn.Service() == name && !slices.Contains(found, fqn) {
			found = append(found, fqn)
		}
	}
	slices.Sort(found)
	return found
}

// IsKnown reports whether a short name stands for at least one connector.
func (n *Names) IsKnown(name string) bool { return len(n.Candidates(name)) > 0 }

// IsNear reports whether a name is, or resembles, that of a connector: it is no secret in the wrong place.
func (n *Names) IsNear(name string) bool {
	return n.IsKnown(name) || hint.Nearest(name, n.known()) != ""
}

// known returns the short names of the catalogue and of what is installed.
func (n *Names) known() []string {
	known := catalog.Names()
	for _, fqn := range n.Installed {
		known = append(known, fqn.Service())
	}
	return known
}

// unknown returns the error for a short name that nothing has.
func (n *Names) unknown(name string) error {
	err := fmt.Errorf("find the connector %s: %w", name, store.ErrNotInstalled)
	if near := hint.Nearest(name, n.known()); near != "" {
		return hint.New(err, "did you mean %s? %s", near, seeCatalog)
	}
	return hint.New(err, "%s", seeCatalog)
}

// ReadInstalled reads the names of what is installed, broken connectors included.
func (n *Names) ReadInstalled() error {
	if n.read {
		return nil
	}
	_, entries, err := n.d.Installed()
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.FQN != "" && !slices.Contains(n.Installed, e.FQN) {
			n.Installed = append(n.Installed, e.FQN)
		}
	}
	n.read = true
	return nil
}

// isThere reports whether there is a file or directory of that name.
func isThere(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// IsShortName reports whether text has the form of a short name: one part of an FQN.
func IsShortName(text string) bool {
	_, err := spec.ParseFQN("github://a/" + text)
	return err == nil && !strings.Contains(text, "/")
}

// NotInstalled returns the error for a connector that is not in the store, with how to install it.
func NotInstalled(what string, fqn spec.FQN) error {
	err := fmt.Errorf("find the connector %s: %w", what, store.ErrNotInstalled)
	if name, ok := catalog.Name(fqn); ok {
		return hint.New(err, "install it with: aileron connector install %s", name)
	}
	return hint.New(err, "see what is installed with: aileron connector list")
}

// CatalogSource returns the entry of the catalogue that a source of an installation names, if any: a short name, or
// its FQN with or without the version. A file or directory of a short name makes it ambiguous, whatever was meant:
// a hostile project may contain one.
func CatalogSource(src string) (entry catalog.Entry, ok bool, err error) {
	name, version, versioned := strings.Cut(src, "@")
	if entry, ok = catalog.Find(name); !ok {
		return catalog.Entry{}, false, nil
	}
	if versioned && version != entry.Connector.Version {
		if strings.Contains(src, "://") || isThere(src) {
			return catalog.Entry{}, false, nil
		}
		return catalog.Entry{}, false, failure.Usagef("the catalogue has %s in version %s", name, entry.Connector.Version)
	}
	if !strings.Contains(src, "://") && isThere(src) {
		err := failure.Usagef("%s is a connector of the catalogue, and a file or directory here", src)
		return catalog.Entry{}, false, hint.New(err,
			"write ./%s for what is here, or %s for the catalogue's", src, entry.Connector.FQN)
	}
	return entry, true, nil
}

// withNearSource adds a hint to the error of a source that is not there, if it may be a misspelled short name.
func withNearSource(src string, err error) error {
	if !IsShortName(src) || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if near := hint.Nearest(src, catalog.Names()); near != "" {
		return hint.New(err, "did you mean %s? %s", near, seeCatalog)
	}
	return hint.New(err, "%s", seeCatalog)
}
