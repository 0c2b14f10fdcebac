package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/catalog"
	"github.com/ALRubinger/aileron/spec/store"
)

// seeCatalog is the hint for a name that no connector has.
const seeCatalog = "see what there is with: aileron connector list --catalog"

// connectorNames resolves the names that people give to connectors. It reads the store when a short name needs it.
type connectorNames struct {
	a         *app
	installed []spec.FQN
	read      bool
}

func (a *app) connectorNames() *connectorNames { return &connectorNames{a: a} }

// resolve returns the FQN that name stands for. A name with a scheme is an FQN. Any other is the short name of a
// connector of the catalogue, or the last part of the FQN of an installed one. One that can be several is refused: a
// credential must not go to the connector that a person did not mean.
func (n *connectorNames) resolve(name string) (spec.FQN, error) {
	if strings.Contains(name, "://") || !isShortName(name) {
		fqn, err := spec.ParseFQN(name)
		if err != nil {
			return "", usageError{err}
		}
		return fqn, nil
	}
	if err := n.readInstalled(); err != nil {
		return "", err
	}
	switch found := n.candidates(name); len(found) {
	case 0:
		return "", n.unknown(name)
	case 1:
		return found[0], nil
	default:
		return "", hint.New(usagef("the connector name %s can be %s", name, alternatives(found)), "write one of them in full")
	}
}

// resolveInstalled returns the FQN of the installed connector that name stands for.
func (n *connectorNames) resolveInstalled(name string) (spec.FQN, error) {
	fqn, err := n.resolve(name)
	if err == nil {
		err = n.readInstalled()
	}
	if err == nil && !slices.Contains(n.installed, fqn) {
		err = notInstalled(name, fqn)
	}
	return fqn, err
}

// candidates returns the FQNs that a short name can stand for, sorted.
func (n *connectorNames) candidates(name string) []spec.FQN {
	var found []spec.FQN
	if catalog.Has(name) {
		found = append(found, catalog.FQN(name))
	}
	for _, fqn := range n.installed {
		if fqn.Service() == name && !slices.Contains(found, fqn) {
			found = append(found, fqn)
		}
	}
	slices.Sort(found)
	return found
}

// isKnown reports whether a short name stands for at least one connector.
func (n *connectorNames) isKnown(name string) bool { return len(n.candidates(name)) > 0 }

// isNear reports whether a name is, or resembles, that of a connector: it is no secret in the wrong place.
func (n *connectorNames) isNear(name string) bool {
	return n.isKnown(name) || nearest(name, n.known()) != ""
}

// known returns the short names of the catalogue and of what is installed.
func (n *connectorNames) known() []string {
	known := catalog.Names()
	for _, fqn := range n.installed {
		known = append(known, fqn.Service())
	}
	return known
}

// unknown returns the error for a short name that nothing has.
func (n *connectorNames) unknown(name string) error {
	err := fmt.Errorf("find the connector %s: %w", name, store.ErrNotInstalled)
	if near := nearest(name, n.known()); near != "" {
		return hint.New(err, "did you mean %s? %s", near, seeCatalog)
	}
	return hint.New(err, "%s", seeCatalog)
}

// readInstalled reads the names of what is installed, broken connectors included.
func (n *connectorNames) readInstalled() error {
	if n.read {
		return nil
	}
	_, entries, err := n.a.installed()
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.FQN != "" && !slices.Contains(n.installed, e.FQN) {
			n.installed = append(n.installed, e.FQN)
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

// isShortName reports whether text has the form of a short name: one part of an FQN.
func isShortName(text string) bool {
	_, err := spec.ParseFQN("github://a/" + text)
	return err == nil && !strings.Contains(text, "/")
}

// notInstalled returns the error for a connector that is not in the store, with how to install it.
func notInstalled(what string, fqn spec.FQN) error {
	err := fmt.Errorf("find the connector %s: %w", what, store.ErrNotInstalled)
	if name, ok := catalog.Name(fqn); ok {
		return hint.New(err, "install it with: aileron connector install %s", name)
	}
	return hint.New(err, "see what is installed with: aileron connector list")
}

// catalogSource returns the entry of the catalogue that a source of an installation names, if any: a short name, or
// its FQN with or without the version. A file or directory of a short name makes it ambiguous, whatever was meant:
// a hostile project may contain one.
func catalogSource(src string) (entry catalog.Entry, ok bool, err error) {
	name, version, versioned := strings.Cut(src, "@")
	if entry, ok = catalog.Find(name); !ok {
		return catalog.Entry{}, false, nil
	}
	if versioned && version != entry.Connector.Version {
		if strings.Contains(src, "://") || isThere(src) {
			return catalog.Entry{}, false, nil
		}
		return catalog.Entry{}, false, usagef("the catalogue has %s in version %s", name, entry.Connector.Version)
	}
	if !strings.Contains(src, "://") && isThere(src) {
		err := usagef("%s is a connector of the catalogue, and a file or directory here", src)
		return catalog.Entry{}, false, hint.New(err,
			"write ./%s for what is here, or %s for the catalogue's", src, entry.Connector.FQN)
	}
	return entry, true, nil
}

// withNearSource adds a hint to the error of a source that is not there, if it may be a misspelled short name.
func withNearSource(src string, err error) error {
	if !isShortName(src) || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if near := nearest(src, catalog.Names()); near != "" {
		return hint.New(err, "did you mean %s? %s", near, seeCatalog)
	}
	return hint.New(err, "%s", seeCatalog)
}
