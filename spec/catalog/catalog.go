// Package catalog has the connectors that are part of the program, each under
// a short name: model providers, code hosts, package registries, mail and chat. [List]
// returns all of them and [Find] one, by its name or its FQN. To install an
// entry, pass its Files to the store:
//
//	e, ok := catalog.Find("github")
//	installed, err := s.InstallAll(ctx, []store.Source{{Src: e.Name, Files: e.Files}}, nil)
//
// An entry grants nothing by itself. It is a connector like any other, in the
// same two files: it is shown, confirmed, hashed and verified in the same way.
//
// A new entry is a directory here, named like its FQN's last part without
// "aileron-connector-", and its line in docs/connectors.md.
package catalog

import (
	"cmp"
	"embed"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/spec"
)

//go:embed */manifest.toml */aileron.connector.v1.json
var files embed.FS

// ServicePrefix is what the last part of the FQN of every entry has before its name.
const ServicePrefix = "aileron-connector-"

// prefix is what the FQN of every entry has before its name.
const prefix = "github://alrubinger/" + ServicePrefix

// Entry is a connector of the catalogue.
type Entry struct {
	Name      string // short, such as "github"
	Summary   string // what it is for, in one line
	Connector *spec.Connector
	Files     fs.FS // the connector's two files
}

// NeedsSecret reports whether a credential has to be bound to the connector.
func (e Entry) NeedsSecret() bool { return e.Connector.Credential() != nil }

// Names reports whether an operation of the entry is for the host, which one that only issues tokens is not.
func (e Entry) Names(h spec.HostPattern) bool {
	return slices.ContainsFunc(e.Connector.Tools[0].Operations,
		func(op *spec.Operation) bool { return slices.Contains(op.Hosts, h) })
}

// FQN returns the FQN of the entry of that short name, which need not exist.
func FQN(name string) spec.FQN { return spec.FQN(prefix + name) }

// Name returns the short name of the entry with the FQN, and reports whether
// there is one.
func Name(fqn spec.FQN) (string, bool) {
	name, ok := strings.CutPrefix(string(fqn), prefix)
	return name, ok && Has(name)
}

// Has reports whether there is an entry of that short name.
func Has(name string) bool { return slices.Contains(Names(), name) }

// Names returns the short names of all entries, sorted.
func Names() []string {
	dirs, err := files.ReadDir(".")
	if err != nil {
		panic(err) // it is embedded
	}
	names := make([]string, len(dirs))
	for i, d := range dirs {
		names[i] = d.Name()
	}
	return names
}

// List returns all entries, by name.
func List() []Entry {
	var all []Entry
	for _, name := range Names() {
		all = append(all, read(name))
	}
	return all
}

// Find returns the entry with a short name or an FQN, and reports whether there
// is one.
func Find(nameOrFQN string) (Entry, bool) {
	name := strings.TrimPrefix(nameOrFQN, prefix)
	if !Has(name) {
		return Entry{}, false
	}
	return read(name), true
}

// read returns the entry in a directory.
func read(name string) Entry {
	manifest, manifestErr := files.ReadFile(path.Join(name, spec.ManifestFile))
	declared, specErr := files.ReadFile(path.Join(name, spec.SpecFile))
	dir, dirErr := fs.Sub(files, name)
	if err := cmp.Or(manifestErr, specErr, dirErr); err != nil {
		panic(err) // it is embedded
	}
	c, err := spec.Load(manifest, declared)
	if err != nil {
		panic(err) // a test loads every entry
	}
	return Entry{Name: name, Summary: c.Tools[0].Description, Connector: c, Files: dir}
}
