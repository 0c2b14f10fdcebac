// Package scaffold writes the files of a new connector: manifest.toml,
// aileron.connector.v1.json, and a README.md and a .gitignore for its author.
//
// [Starter] returns a [Connector] to begin with; packages openapi and graphql
// make one of a description of an API. [Connector.Files] returns the files, which
// [spec.Load] accepts, and [Write] writes them without replacing any:
//
//	c := scaffold.Starter("github://acme/tracker", "api.tracker.example", spec.KindBearer)
//	files, err := c.Files()
//	if err != nil {
//		return err
//	}
//	err = scaffold.Write("tracker", files)
//
// files.go has the texts of the files, and write.go puts them into a directory.
package scaffold

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/spec/logins"

	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/schema"
)

// Connector is what the files of a new connector declare.
type Connector struct {
	FQN        spec.FQN
	Version    string // "": 0.1.0
	Tool       string // the name of its command
	About      string // what the service is, in one line
	Source     string // what it was made of, for the comments of the manifest; "" for a starter
	Credential *Need  // nil: it needs none
	Operations []Operation
}

// Need is the credential that the manifest asks for.
type Need struct {
	Kind  spec.Kind
	Scope string
	Login *spec.OAuth2 // of kind oauth2
}

// Operation is an operation in the form of the file: CONTRACT section 2.
type Operation struct {
	Name        string      `json:"name"`
	Group       string      `json:"group,omitempty"`
	Summary     string      `json:"summary,omitempty"`
	Description string      `json:"description,omitempty"`
	Method      string      `json:"method,omitempty"`
	Path        string      `json:"path,omitempty"`
	Hosts       []string    `json:"hosts"`
	Slash       bool        `json:"optional_slash,omitempty"` // at the end of Path
	Idempotency string      `json:"idempotency,omitempty"`
	Approval    string      `json:"approval,omitempty"`
	Query       string      `json:"query,omitempty"`
	Body        string      `json:"body,omitempty"`
	ContentType string      `json:"content_type,omitempty"`
	Credential  *Credential `json:"credential,omitempty"`
	GraphQL     *GraphQL    `json:"graphql,omitempty"`
	Inputs      []Input     `json:"inputs,omitempty"`
	Audit       []Audit     `json:"audit,omitempty"`
}

// GraphQL is which requests of GraphQL an operation allows.
type GraphQL struct {
	Type   string   `json:"type"`
	Fields []string `json:"fields"`
}

// Credential is the credential of an operation, and its place.
type Credential struct {
	Kind   spec.Kind `json:"kind"`
	Inject *Inject   `json:"inject,omitempty"` // nil: Authorization, with the scheme of the kind
}

// Inject is the place of a credential.
type Inject struct {
	In     string `json:"in,omitempty"`
	Name   string `json:"name,omitempty"`
	Format string `json:"format,omitempty"`

	Username string `json:"username,omitempty"` // of Basic credentials whose password is a secret of another kind
}

// Input is an argument of an operation.
type Input struct {
	Name        string   `json:"name"`
	In          string   `json:"in,omitempty"`
	Type        string   `json:"type,omitempty"`
	Required    bool     `json:"required,omitempty"`
	Description string   `json:"description,omitempty"`
	Values      []string `json:"values,omitempty"`

	Style   string         `json:"style,omitempty"` // as in OpenAPI
	Explode *bool          `json:"explode,omitempty"`
	Schema  *schema.Schema `json:"schema,omitempty"` // what nests in it

	EscapedSlash bool `json:"escaped_slash,omitempty"` // of a variable of the path
}

// Audit is a value that audit events have in addition to their columns.
type Audit struct {
	Name   string `json:"name"`
	Source string `json:"source"`
	Redact bool   `json:"redact,omitempty"`
}

// Starter returns a connector with an operation that reads and one that writes,
// for its author to replace. A kind of "" means that it needs no credential.
func Starter(fqn spec.FQN, host string, kind spec.Kind) *Connector {
	c := &Connector{FQN: fqn, Tool: ToolName(fqn), About: "The API at " + host}
	var credential *Credential
	if kind != "" {
		c.Credential = &Need{Kind: kind, Scope: "Read and create items"}
		if kind == spec.KindOAuth2 {
			c.Credential.Login = StandInLogin(host)
		}
		credential = &Credential{Kind: kind}
	}
	c.Operations = []Operation{{
		Name: "items.get", Summary: "Read one item", Method: "GET", Path: "/v1/items/{id}", Hosts: []string{host},
		Idempotency: "idempotent", Credential: credential,
		Inputs: []Input{
			{Name: "id", Type: "string", Required: true, Description: "The item's id"},
			{Name: "fields", Type: "string", Description: "The fields to return, separated by commas"},
		},
		Audit: []Audit{{Name: "item", Source: "path.id"}},
	}, {
		Name: "items.create", Summary: "Create an item", Method: "POST", Path: "/v1/items", Hosts: []string{host},
		Idempotency: "none", Approval: "required", Credential: credential,
		Inputs: []Input{
			{Name: "title", Type: "string", Required: true, Description: "The item's title"},
			{Name: "labels", Type: "array", Description: "Its labels"},
		},
		Audit: []Audit{{Name: "item", Source: "response.body.id"}},
	}}
	return c
}

// StandInLogin returns a login at a host, for the author of a connector to replace.
func StandInLogin(host string) *spec.OAuth2 {
	return &spec.OAuth2{Grant: logins.GrantCode, AuthorizeURL: "https://" + host + "/oauth2/authorize",
		TokenURL: "https://" + host + "/oauth2/token", Scopes: []string{"items"}}
}

// ToolName returns the name of the command of a connector: the last part of its
// FQN, without what connectors' repositories are often called, in a form that a
// command may have.
func ToolName(fqn spec.FQN) string {
	name := strings.ToLower(fqn.Service())
	for _, prefix := range []string{"aileron-connector-", "connector-", "aileron-"} {
		if rest, ok := strings.CutPrefix(name, prefix); ok && rest != "" {
			name = rest
		}
	}
	name = name[:min(len(name), 60)]
	for _, candidate := range []string{name, name + "-api", "api-" + strings.TrimLeft(name, "._-")} {
		if isToolName(candidate) {
			return candidate
		}
	}
	return "service"
}

// isToolName reports whether package spec accepts a command of the name.
func isToolName(name string) bool {
	return len(faults(name, Operation{Name: "x", Method: "GET", Path: "/", Hosts: []string{"api.example.com"}})) == 0
}

// Check returns what package spec has against the operation.
func (op *Operation) Check() []*spec.Diagnostic { return faults("tool", *op) }

// AsksForTokens reports whether a request of the operation can be one that is for aileron alone: see
// [spec.Operation.CheckLogin].
func (op *Operation) AsksForTokens(login *spec.OAuth2) bool {
	c, err := alone("tool", *op)
	return err == nil && c.Tools[0].Operations[0].CheckLogin(login) != nil
}

// alone returns a connector with one tool and one operation.
func alone(name string, op Operation) (*spec.Connector, error) {
	c := Connector{FQN: "github://a/b", Tool: name, Operations: []Operation{op}}
	text, err := c.compact()
	if err != nil {
		return nil, err
	}
	return spec.Parse(text)
}

// faults returns those of a connector with one tool and one operation.
func faults(name string, op Operation) []*spec.Diagnostic {
	_, err := alone(name, op)
	if err == nil {
		return nil
	}
	if list := spec.Diagnostics(err); len(list) > 0 {
		return list
	}
	return []*spec.Diagnostic{{Message: err.Error()}}
}

// Size returns the size of the specification in bytes.
func (c *Connector) Size() (int, error) {
	text, err := c.spec()
	return len(text), err
}

// Hosts returns the hosts of the operations and those that issue tokens, as "host:port", sorted.
func (c *Connector) Hosts() []string {
	var hosts []string
	for _, op := range c.Operations {
		for _, h := range op.Hosts {
			if !strings.Contains(h, ":") {
				h += ":443"
			}
			hosts = append(hosts, h)
		}
	}
	if c.Credential != nil && c.Credential.Login != nil {
		for _, h := range c.Credential.Login.AskedHosts() {
			hosts = append(hosts, h.String())
		}
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

// Files returns the files by name. It returns an error if the connector is one
// that [spec.Load] does not accept.
func (c *Connector) Files() (map[string][]byte, error) {
	declared, err := c.spec()
	if err != nil {
		return nil, err
	}
	manifest := c.manifest()
	if _, err := spec.Load(manifest, declared); err != nil {
		return nil, fmt.Errorf("make the connector %s: %w", c.FQN, err)
	}
	return map[string][]byte{
		spec.ManifestFile: manifest, spec.SpecFile: declared, readmeFile: c.readme(), ignoreFile: []byte(ignored),
	}, nil
}

// version returns the version that the files have.
func (c *Connector) version() string {
	if c.Version == "" {
		return "0.1.0"
	}
	return c.Version
}
