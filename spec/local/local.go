// Package local makes the connectors with which a person allows on one machine
// what no connector allows: a host as it is, or single requests. [Host] makes the
// connector of a session's --allow; a [Connector] is one that is installed, grows
// with each request that is allowed, and belongs to one host.
//
// Their names begin with local://. The store takes such a connector from files of
// this machine only, never from an archive: it is not for others.
package local

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/scaffold"
)

// SessionFQN is the name of the connector of --allow.
const SessionFQN spec.FQN = "local://session/allow"

// FQN returns the name of the connector of a host, which is "host" or
// "host:port". No two hosts have one name.
func FQN(host string) spec.FQN {
	return spec.FQN("local://allowed/" + strings.NewReplacer("*.", "any_", ":", "_", "_", "__").Replace(host))
}

// Operation is a request that is allowed. Without method and path it is every
// request to the host.
type Operation struct {
	Method, Path string
	AnyQuery     bool // its query may have any name
}

// Connector is what a person has allowed of one host.
type Connector struct {
	Host       string // "host", "host:port", or one of them with "*." before it
	Version    string
	Operations []Operation
	Credential *spec.Injection // that each operation carries; nil: none
	Scope      string          // what the credential is for
	Login      *spec.OAuth2    // how one of kind oauth2 is obtained
}

// Host returns the connector that allows hosts as they are, without credentials.
func Host(hosts []string) (*spec.Connector, error) {
	manifest, declared := files(SessionFQN, "1.0.0", hosts, nil, []tool{{
		Name: "allowed", Description: "Hosts that --allow names for this session",
		Operations: []scaffold.Operation{{Name: "any", Summary: "Any request", Hosts: hosts}},
	}})
	return spec.Load(manifest, declared)
}

// Load returns the connector. It may be refused: not every path of a request is
// one that a connector can name.
func (c Connector) Load() (*spec.Connector, error) { return spec.Load(c.files()) }

// Write writes the two files of the connector into a directory, which is created
// if it does not exist.
func (c Connector) Write(dir string) error {
	manifest, declared := c.files()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("write the connector: %w", err)
	}
	for name, data := range map[string][]byte{spec.ManifestFile: manifest, spec.SpecFile: declared} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			return fmt.Errorf("write the connector: %w", err)
		}
	}
	return nil
}

func (c Connector) files() (manifest, declared []byte) {
	hosts := []string{c.Host}
	t := tool{Name: toolName(c.Host), Description: "What was allowed of " + c.Host + " on this machine"}
	for i, op := range c.Operations {
		o := scaffold.Operation{
			Name: "allowed" + strconv.Itoa(i+1), Method: op.Method, Path: op.Path, Hosts: hosts,
			Summary: strings.TrimSpace("Allowed by hand: " + op.Method + " " + op.Path),
		}
		if op.Method == "" {
			o.Summary = "Any request"
		}
		if op.Path != "" {
			o.Query = map[bool]string{true: "any", false: "declared"}[op.AnyQuery]
		}
		if in := c.Credential; in != nil {
			o.Credential = &scaffold.Credential{Kind: in.Kind, Inject: &scaffold.Inject{In: in.In, Name: in.Name,
				Format: in.Format, Username: in.Username}}
		}
		t.Operations = append(t.Operations, o)
	}
	if c.Credential == nil {
		return files(FQN(c.Host), c.Version, hosts, nil, []tool{t})
	}
	return files(FQN(c.Host), c.Version, hosts,
		&spec.CredentialNeed{Kind: c.Credential.Kind, Scope: c.Scope, OAuth2: c.Login}, []tool{t})
}

// Read returns what a connector of this package has allowed so far.
func Read(c *spec.Connector, host string) Connector {
	out := Connector{Host: host, Version: c.Version}
	if need := c.Credential(); need != nil {
		out.Scope, out.Login = need.Scope, need.OAuth2
	}
	for _, t := range c.Tools {
		for _, op := range t.Operations {
			out.Credential = op.Injection
			out.Operations = append(out.Operations, Operation{
				Method: op.Method, Path: op.Path.String(), AnyQuery: !op.QueryDeclaredOnly,
			})
		}
	}
	return out
}

// toolName returns the name of the command of a host's connector.
func toolName(host string) string {
	return "allowed-" + strings.NewReplacer(".", "-", ":", "-", "*", "any", "_", "-").Replace(host)
}

// tool is a tool in the form of the file.
type tool struct {
	Name        string               `json:"name"`
	Description string               `json:"description"`
	Operations  []scaffold.Operation `json:"operations"`
}

// files returns the manifest and the spec of a connector.
func files(
	fqn spec.FQN, version string, hosts []string, need *spec.CredentialNeed, tools []tool,
) (manifest, declared []byte) {
	hosts = slices.Clone(hosts)
	var m bytes.Buffer
	fmt.Fprintf(&m, "[connector]\nname = %q\nversion = %q\n\n[capabilities.network]\nhosts = [", fqn, version)
	for i, h := range hosts {
		hosts[i] = withPort(h)
	}
	if need != nil && need.OAuth2 != nil {
		for _, h := range need.OAuth2.AskedHosts() {
			if !slices.Contains(hosts, h.String()) {
				hosts = append(hosts, h.String())
			}
		}
	}
	for i, h := range hosts {
		if i > 0 {
			m.WriteString(", ")
		}
		fmt.Fprintf(&m, "%q", h)
	}
	m.WriteString("]\n")
	if need != nil {
		fmt.Fprintf(&m, "\n[capabilities.credential]\nkind = %q\nscope = %q\n", need.Kind, need.Scope)
		if need.OAuth2 != nil {
			m.WriteString("\n" + need.OAuth2.TOML())
		}
	}
	m.WriteString("\n[provides]\nintents = [\"allow_by_hand\"]\n")
	var d bytes.Buffer
	enc := json.NewEncoder(&d)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	_ = enc.Encode(map[string]any{
		"schema_version": "aileron.connector.v1", "connector": map[string]any{"fqn": fqn, "version": version}, "tools": tools,
	})
	return m.Bytes(), d.Bytes()
}

// withPort returns host:port, as a manifest has it.
func withPort(host string) string {
	if strings.Contains(host, ":") {
		return host
	}
	return host + ":443"
}
