// Package spec reads connectors and decides which requests they allow.
//
// A connector is two files: manifest.toml, what it asks of the person who
// installs it, and aileron.connector.v1.json, the operations that it declares.
// [Load] reads both and returns a validated [Connector]; its error holds a
// [Diagnostic] for each mistake, with its place. [NewIndex] combines the
// connectors of a session, and [Index.Match] returns the operation that a
// request is, or a [NoMatch] with the reason for the denial.
//
// Both files are read strictly. An unknown or repeated key, a host that could
// be read in two ways, or two connectors that claim one request with different
// credentials are errors. What is not declared is not allowed, and after Load
// no name, host or path is checked again.
//
// Open this file first: the types, and Load. parse.go reads the specification, a
// field of an operation a function, with node.go, which names each mistake and its
// place, and json.go; manifest.go reads the manifest. index.go is the tree of paths
// of each host, match.go the decision and the words of a denial, conflict.go what
// two connectors may not share. invocation.go reads requests by name, and
// arguments.go makes requests of them.
//
// A new field of an operation is a key in readOperation and a function beside those
// that it calls; one of an input, in input.go; one of the manifest, a field of
// rawManifest with its key in manifestKeys. Each has its line in package
// connectorschema, whose test compares the two.
package spec

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ALRubinger/aileron/spec/condition"
	"github.com/ALRubinger/aileron/spec/content"
)

// Connector is a connector whose files are valid and agree.
type Connector struct {
	FQN          FQN
	Version      string // strict SemVer, without a leading v
	Hash         string // "sha256:…"; set by the store
	Manifest     Manifest
	Tools        []Tool
	Placeholders []Placeholder
	Headers      []FieldPattern // request fields that every operation with a credential accepts

	manifest, specification []byte
}

// Documents returns the contents of the two files that c was read from, which must not be changed, without the
// client_secret: a sandbox may read them.
func (c *Connector) Documents() (manifest, specification []byte) {
	if need := c.Credential(); need != nil && need.OAuth2 != nil && need.OAuth2.ClientSecret != "" {
		return bytes.ReplaceAll(c.manifest, []byte(need.OAuth2.ClientSecret), []byte("********")), c.specification
	}
	return c.manifest, c.specification
}

// CredentialNeed is the one credential that a connector asks for in its manifest.
type CredentialNeed struct {
	Kind  Kind
	Scope string // what it may do, for the person who binds it

	// OAuth2 is how the token of kind oauth2 is obtained; nil for other kinds, and for a connector that was installed
	// before manifests declared it: see [Manifest.CheckLogin].
	OAuth2 *OAuth2
}

// Credential returns the credential that c asks for, or nil if it needs none.
func (c *Connector) Credential() *CredentialNeed { return c.Manifest.Credential }

// Tool is a command name and its operations.
type Tool struct {
	Name, Description string
	Operations        []*Operation
}

// Operation is a kind of request that a connector declares: a method and a path
// on some hosts.
type Operation struct {
	Connector         *Connector
	Tool              string
	Name              string
	Group             string // of operations, for those who look for one; never "": see GroupOf
	Summary           string
	Description       string
	Method            string // "*": any registered one; "": any
	Path              Template
	Hosts             []HostPattern
	Idempotent        bool
	ResponseTimeout   time.Duration         // from the end of a request to the head of its response; 0: the session's
	Approval          string                // ApprovalNone, ApprovalRequired or ApprovalWhen
	When              []condition.Condition // for ApprovalWhen: a request asks if all of them hold, or may
	Preview           *Preview              // of the service, for who is asked; nil: there is none
	Injection         *Injection            // nil: no credential
	Inputs            []Input
	limited           []*Input // those of Inputs that have Values
	Body              string   // one of [body.Kinds]; "": JSON
	ContentType       string   // "": that of the Body
	Audit             []AuditField
	Meters            []Meter
	MeterNames        []string // those of Meters, each once
	MeterModel        Meter    // where the name is of the model that Meters are of; without a Source nowhere
	QueryDeclaredOnly bool     // the query has no names but those of the inputs in it
	Upgrade           string   // "" or "websocket"
	Ranges            bool
	Packed            bool             // a credentialed response may be an archive or compressed data
	Headers           []FieldPattern   // accepted in addition to the registered fields; the connector's first
	MCP               *content.MCP     // nil: the body is not judged as a message of MCP
	GraphQL           *content.GraphQL // nil: the request is not judged as one of GraphQL
}

// String returns "fqn tool operation", for people.
func (o *Operation) String() string {
	return string(o.Connector.FQN) + " " + o.Tool + " " + o.Name
}

// AnyPath reports whether o allows every path of its hosts, without a credential.
func (o *Operation) AnyPath() bool { return o.Injection == nil && o.Path.String() == "" }

// IsRepository reports whether the operation allows what git asks for first of a repository: it has its path, or any.
func (o *Operation) IsRepository() bool {
	return o.AnyPath() || strings.HasSuffix(o.Path.String(), "/info/refs")
}

// Injection is the place of an operation's credential in its requests.
type Injection struct {
	Kind     Kind
	Scope    string
	In       string // header, query or path
	Name     string
	Format   string // with {secret} once
	Username string // "", or that of Basic credentials whose password is a secret of a kind without one
}

// Compose returns the value that replaces {secret} in the Format. The username
// is that of the binding, for a kind that has one. The result is a secret, too.
func (in *Injection) Compose(username, secret string) string {
	if in.Username != "" {
		return basicCredentials(in.Username, secret)
	}
	return in.Kind.Compose(username, secret)
}

// Usernames returns the usernames that operations of c declare for their
// credential, which are part of the encodings in which a response may hold it.
func (c *Connector) Usernames() []string {
	var names []string
	for _, t := range c.Tools {
		for _, op := range t.Operations {
			if in := op.Injection; in != nil && in.Username != "" && !slices.Contains(names, in.Username) {
				names = append(names, in.Username)
			}
		}
	}
	return names
}

// AuditField is a value that an audit event may hold in addition to its columns.
type AuditField struct {
	Name, Source, Description string
	Redact                    bool
}

// The names of the two files that every connector has.
const (
	ManifestFile = "manifest.toml"
	SpecFile     = "aileron.connector.v1.json"
)

// Load reads a connector from the contents of its two files, which it keeps, and
// checks that they agree. Its error joins all mistakes, each with its file and place;
// [Diagnostics] returns them one by one.
func Load(manifest, spec []byte) (*Connector, error) {
	m, manifestErr := ParseManifest(manifest)
	c, specErr := Parse(spec)
	if manifestErr != nil || specErr != nil {
		return nil, errors.Join(inFile(ManifestFile, manifestErr), inFile(SpecFile, specErr))
	}
	c.Manifest, c.manifest, c.specification = m, manifest, spec
	var d diagnostics
	if m.Name != c.FQN {
		d.add("connector.fqn", "it is %s, and the manifest's name is %s", c.FQN, m.Name)
	}
	if m.Version != c.Version {
		d.add("connector.version", "it is %s, and the manifest's version is %s", c.Version, m.Version)
	}
	c.checkAgainst(m, &d)
	if err := d.err(); err != nil {
		return nil, inFile(SpecFile, err)
	}
	return c, nil
}

// inFile sets the file's name in the diagnostics of err, and returns err.
func inFile(file string, err error) error {
	for _, f := range Diagnostics(err) {
		f.File = file
	}
	return err
}

// checkAgainst checks that every operation keeps to what the manifest asks for.
func (c *Connector) checkAgainst(m Manifest, d *diagnostics) {
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
					d.add(fmt.Sprintf("%s.hosts[%d]", path, hi), "%s is not among the manifest's capabilities.network.hosts", h)
				}
			}
			if op.Injection == nil {
				continue
			}
			used = true
			switch need := m.Credential; {
			case need == nil:
				d.add(path+".credential", "the manifest asks for no credential")
			case need.Kind != op.Injection.Kind:
				d.add(path+".credential", "its kind is %s, and the manifest's is %s", op.Injection.Kind, need.Kind)
			case need.OAuth2 != nil:
				if err := op.CheckLogin(need.OAuth2); err != nil {
					d.add(path+".path", "%v", err)
				}
			}
		}
	}
	if m.Credential != nil && !used {
		d.add("tools", "no operation uses the credential that the manifest asks for")
	}
}
