// Package spec is what connectors declare and what that allows: the manifest
// and the operations of aileron.connector.v1.json, read strictly, and the
// index that says which operation a request is.
//
// After Load nobody checks a name, a host or a path again. What is not
// declared is not allowed; what can be read in two ways is an error.
package spec

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/mod/semver"
)

// FQN is a connector's fully-qualified name: scheme://owner/path. It
// identifies; it grants nothing.
type FQN string

// ParseFQN reads github://, gitlab:// and hub:// names: lower-case scheme, at
// least an owner and a name, segments of letters, digits, dots, hyphens and
// underscores that begin with a letter or digit.
func ParseFQN(s string) (FQN, error) {
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok || scheme != "github" && scheme != "gitlab" && scheme != "hub" {
		return "", fmt.Errorf("read the connector name %q: it does not begin with github://, gitlab:// or hub://", s)
	}
	parts := strings.Split(rest, "/")
	if len(parts) < 2 || len(s) > 200 {
		return "", fmt.Errorf("read the connector name %q: it is not scheme://owner/name", s)
	}
	for _, p := range parts {
		if !isName(p, "._-") {
			return "", fmt.Errorf("read the connector name %q: the part %q is not a plain name", s, p)
		}
	}
	return FQN(s), nil
}

// Service is the last part of the name: what a binding is called after.
func (f FQN) Service() string { return string(f[strings.LastIndexByte(string(f), '/')+1:]) }

// Owner is the first part after the scheme.
func (f FQN) Owner() string {
	_, rest, _ := strings.Cut(string(f), "://")
	owner, _, _ := strings.Cut(rest, "/")
	return owner
}

// Connector is one verified connector.
type Connector struct {
	FQN          FQN
	Version      string // strict SemVer, without a leading v
	Hash         string // "sha256:…"; set by the store
	Manifest     Manifest
	Tools        []Tool
	Placeholders []Placeholder
	Headers      []FieldPattern // accepted by every operation with a credential
}

// CredentialNeed is the one credential that a connector asks for.
type CredentialNeed struct {
	Kind  Kind
	Scope string // what it may do, for the person who binds it
}

// Credential is nil for a connector that needs none.
func (c *Connector) Credential() *CredentialNeed { return c.Manifest.Credential }

// Tool is a command name and its operations.
type Tool struct {
	Name, Description string
	Operations        []*Operation
}

// Operation is one thing that a connector can do: a method and a path on
// hosts.
type Operation struct {
	Connector         *Connector
	Tool              string
	Name              string
	Summary           string
	Description       string
	Method            string // "*": any registered one; "": any
	Path              Template
	Hosts             []HostPattern
	Idempotent        bool
	Approval          string     // "none" or "required"
	Injection         *Injection // nil: no credential
	Inputs            []Input
	Audit             []AuditField
	QueryDeclaredOnly bool   // only the inputs whose place is the query may stand in it
	Upgrade           string // "" or "websocket"
	Ranges            bool
	Packed            bool           // a credentialed response may be an archive or compressed data
	Headers           []FieldPattern // request fields that are accepted besides the registered ones, the connector\'s first
}

// String names the operation for people: "fqn tool operation".
func (o *Operation) String() string {
	return string(o.Connector.FQN) + " " + o.Tool + " " + o.Name
}

// AnyPath reports an operation that allows its hosts as they are: every path,
// without a credential.
func (o *Operation) AnyPath() bool { return o.Injection == nil && o.Path.String() == "" }

// Injection is where an operation's credential goes.
type Injection struct {
	Kind   Kind
	Scope  string
	In     string // header, query or path
	Name   string
	Format string // with {secret} once
}

// AuditField is one value that an audit row may hold besides its columns.
type AuditField struct {
	Name, Source, Description string
	Redact                    bool
}

// Names of the two files that every connector has.
const (
	ManifestFile = "manifest.toml"
	SpecFile     = "aileron.connector.v1.json"
)

// Load reads a connector from the bytes of its two files, and holds them
// against each other. Every fault is reported, joined, each with its file and
// place; Faults takes them apart.
func Load(manifest, spec []byte) (*Connector, error) {
	m, manifestErr := ParseManifest(manifest)
	c, specErr := Parse(spec)
	if manifestErr != nil || specErr != nil {
		return nil, errors.Join(in(ManifestFile, manifestErr), in(SpecFile, specErr))
	}
	c.Manifest = m
	var f faults
	if m.Name != c.FQN {
		f.add("connector.fqn", "it is %s, and the manifest's name is %s", c.FQN, m.Name)
	}
	if m.Version != c.Version {
		f.add("connector.version", "it is %s, and the manifest's version is %s", c.Version, m.Version)
	}
	c.checkAgainst(m, &f)
	if err := f.err(); err != nil {
		return nil, in(SpecFile, err)
	}
	return c, nil
}

// in adds the file's name to the faults.
func in(file string, err error) error {
	for _, f := range Faults(err) {
		f.File = file
	}
	return err
}

// checkAgainst holds every operation to what the manifest asks the user for.
func (c *Connector) checkAgainst(m Manifest, f *faults) {
	used := false
	asked := map[HostPattern]bool{}
	for _, h := range m.Hosts {
		asked[h] = true
	}
	for ti, t := range c.Tools {
		for oi, op := range t.Operations {
			path := fmt.Sprintf("tools[%d].operations[%d]", ti, oi)
			for hi, h := range op.Hosts {
				if !asked[h] {
					f.add(fmt.Sprintf("%s.hosts[%d]", path, hi), "%s is not among the manifest's capabilities.network.hosts", h)
				}
			}
			if op.Injection == nil {
				continue
			}
			used = true
			switch {
			case m.Credential == nil:
				f.add(path+".credential", "the manifest asks for no credential")
			case m.Credential.Kind != op.Injection.Kind:
				f.add(path+".credential", "its kind is %s, and the manifest's is %s", op.Injection.Kind, m.Credential.Kind)
			}
		}
	}
	if m.Credential != nil && !used {
		f.add("tools", "no operation uses the credential that the manifest asks for")
	}
}

// isVersion reports strict SemVer 2.0.0 without a leading v.
func isVersion(s string) bool {
	core, _, _ := strings.Cut(s, "+")
	core, _, _ = strings.Cut(core, "-")
	return len(s) <= 100 && semver.IsValid("v"+s) && strings.Count(core, ".") == 2 // semver also takes v1 and v1.2
}

// CompareVersions orders two strict SemVer strings. Build metadata, which
// SemVer leaves without order, decides ties by its bytes: the newest of a
// list is always the same one.
func CompareVersions(a, b string) int {
	if c := semver.Compare("v"+a, "v"+b); c != 0 {
		return c
	}
	return strings.Compare(a, b)
}
