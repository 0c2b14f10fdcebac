package spec

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ALRubinger/aileron/spec/hosts"

	"github.com/BurntSushi/toml"

	"github.com/ALRubinger/aileron/spec/internal/plain"
)

// Manifest is what a connector asks of the person who installs it, in
// manifest.toml.
type Manifest struct {
	Name       FQN
	Version    string
	Provenance string // "sha256:…" of the binary at publication; "" if not declared
	Hosts      []HostPattern
	Credential *CredentialNeed
	Imports    []string // host functions that the binary asks for
	Intents    []string
}

type rawManifest struct {
	Connector struct {
		Name       string `toml:"name"`
		Version    string `toml:"version"`
		Provenance string `toml:"provenance_hash"`
	} `toml:"connector"`
	Capabilities struct {
		Network struct {
			Hosts []string `toml:"hosts"`
		} `toml:"network"`
		Credential *struct {
			Kind   string     `toml:"kind"`
			Scope  string     `toml:"scope"`
			OAuth2 *rawOAuth2 `toml:"oauth2"`
		} `toml:"credential"`
		Runtime struct {
			Imports []string `toml:"imports"`
		} `toml:"runtime"`
	} `toml:"capabilities"`
	Provides struct {
		Intents []string `toml:"intents"`
	} `toml:"provides"`
}

// manifestKeys are all keys in their exact spelling: the decoder also accepts
// HOSTS for hosts.
var manifestKeys = strings.Fields(`connector connector.name connector.version connector.provenance_hash
	capabilities capabilities.network capabilities.network.hosts
	capabilities.credential capabilities.credential.kind capabilities.credential.scope
	capabilities.credential.oauth2 capabilities.credential.oauth2.grant capabilities.credential.oauth2.authorize_url
	capabilities.credential.oauth2.token_url capabilities.credential.oauth2.device_authorization_url
	capabilities.credential.oauth2.revoke_url capabilities.credential.oauth2.client_id
	capabilities.credential.oauth2.client_secret capabilities.credential.oauth2.scopes
	capabilities.credential.oauth2.auth_params
	capabilities.runtime capabilities.runtime.imports provides provides.intents`)

// The bounds of a manifest. The time of the TOML decoder grows with the square
// of the depth, which comes from dots and braces; a manifest is three deep.
const (
	maxManifest = 64 << 10
	maxDots     = 256 // in a line
	maxBraces   = 16  // in the file
)

// ParseManifest reads manifest.toml strictly: an unknown or repeated key is an
// error with its line.
func ParseManifest(data []byte) (Manifest, error) {
	if err := checkManifestSize(data); err != nil {
		return Manifest{}, err
	}
	var raw rawManifest
	meta, err := toml.NewDecoder(bytes.NewReader(data)).Decode(&raw)
	if err != nil {
		return Manifest{}, tomlDiagnostic(err)
	}
	r := manifestReader{data: data}
	if !r.checkKeys(meta.Keys()) {
		return Manifest{}, r.diags.err()
	}
	m := r.read(&raw)
	return m, r.diags.err()
}

// checkManifestSize returns an error if data is not text that the TOML decoder
// reads in a short time.
func checkManifestSize(data []byte) error {
	switch {
	case len(data) > maxManifest:
		return newDiagnostic("", "it is larger than %d bytes", maxManifest)
	case !utf8.Valid(data):
		return newDiagnostic("", "it is not UTF-8")
	case tooDeep(data):
		return newDiagnostic("", "it has more than %d dots in a line, or more than %d braces", maxDots, maxBraces)
	}
	return nil
}

// tooDeep reports whether data has more dots or braces than a manifest needs.
func tooDeep(data []byte) bool {
	if bytes.Count(data, []byte("{")) > maxBraces {
		return true
	}
	for line := range bytes.Lines(data) {
		if bytes.Count(line, []byte(".")) > maxDots {
			return true
		}
	}
	return false
}

// tomlDiagnostic returns an error of the TOML decoder with its line as the path.
func tomlDiagnostic(err error) *Diagnostic {
	var parse toml.ParseError
	if errors.As(err, &parse) {
		return newDiagnostic(fmt.Sprintf("line %d", parse.Position.Line), "%s", parse.Message)
	}
	text := strings.TrimPrefix(err.Error(), "toml: ") // a wrong type: toml: line 6 (last key "…"): what
	if where, what, ok := strings.Cut(text, ": "); ok && strings.HasPrefix(where, "line ") {
		return newDiagnostic(where, "%s", what)
	}
	return newDiagnostic("", "%s", text)
}

// manifestReader turns a decoded manifest into a valid one.
type manifestReader struct {
	data  []byte // the file, in which lines are looked up
	diags diagnostics
}

// add records a mistake at a key.
func (r *manifestReader) add(key toml.Key, format string, args ...any) {
	r.diags.add(place(r.data, key), format, args...)
}

// checkKeys records every unknown key. It reports false if there are too many.
func (r *manifestReader) checkKeys(keys []toml.Key) bool {
	for _, key := range keys {
		if !isAuthParam(key) && !slices.Contains(manifestKeys, key.String()) {
			r.add(key, "unknown key")
		}
		if len(r.diags.list) == maxDiagnostics {
			return false // finding a place costs a walk through the file
		}
	}
	return true
}

func (r *manifestReader) read(raw *rawManifest) Manifest {
	m := Manifest{Version: raw.Connector.Version, Provenance: raw.Connector.Provenance}
	var err error
	if m.Name, err = ParseFQN(raw.Connector.Name); err != nil {
		r.add(toml.Key{"connector", "name"}, "%v", err)
	}
	if !isVersion(m.Version) {
		r.add(toml.Key{"connector", "version"}, "%q is not a MAJOR.MINOR.PATCH version", m.Version)
	}
	if m.Provenance != "" && !isDigest(m.Provenance) {
		r.add(toml.Key{"connector", "provenance_hash"}, "%q is not sha256: and 64 hexadecimal digits", m.Provenance)
	}
	m.Hosts = r.hosts(raw.Capabilities.Network.Hosts)
	if c := raw.Capabilities.Credential; c != nil {
		if !Kind(c.Kind).isKnown() {
			r.add(toml.Key{"capabilities", "credential", "kind"}, "%q is not one of %s", c.Kind, joined(Kinds()))
		}
		if plain.HasControl(c.Scope) || len(c.Scope) > maxString {
			r.add(toml.Key{"capabilities", "credential", "scope"},
				"it has a line break or a control character, or is too long")
		}
		m.Credential = &CredentialNeed{Kind: Kind(c.Kind), Scope: c.Scope}
		m.Credential.OAuth2 = r.oauth2(c.OAuth2, Kind(c.Kind), m.Hosts)
	}
	m.Imports = r.words(raw.Capabilities.Runtime.Imports, "._:-/@", toml.Key{"capabilities", "runtime", "imports"})
	m.Intents = r.words(raw.Provides.Intents, "._:-", toml.Key{"provides", "intents"})
	return m
}

// isDigest reports whether s is "sha256:" and 64 hexadecimal digits.
func isDigest(s string) bool {
	digits, ok := strings.CutPrefix(s, "sha256:")
	return ok && len(digits) == 64 && strings.Trim(digits, "0123456789abcdef") == ""
}

func (r *manifestReader) hosts(list []string) []HostPattern {
	var all []HostPattern
	at := place(r.data, toml.Key{"capabilities", "network", "hosts"})
	for i, s := range list {
		h, err := hosts.ParseDeclared(s)
		switch {
		case err != nil:
			r.diags.add(fmt.Sprintf("%s[%d]", at, i), "%v", err)
		case slices.Contains(all, h):
			r.diags.add(fmt.Sprintf("%s[%d]", at, i), "%q appears twice", s)
		}
		all = append(all, h)
	}
	return all
}

// words returns the list, whose entries must be plain names.
func (r *manifestReader) words(list []string, extra string, key toml.Key) []string {
	at := place(r.data, key)
	for i, w := range list {
		if !plain.IsName(w, extra) {
			r.diags.add(fmt.Sprintf("%s[%d]", at, i), "%q is not a plain name", w)
		}
	}
	return list
}

// place returns "line N: key", or the key alone if its line is not found.
func place(data []byte, key toml.Key) string {
	var table []string
	for i, line := range strings.Split(string(data), "\n") {
		line = strings.TrimSpace(line)
		if header, ok := strings.CutPrefix(line, "["); ok {
			table = keyParts(strings.TrimLeft(header[:strings.IndexByte(header+"]", ']')], "["))
			if slices.Equal(table, key) {
				return fmt.Sprintf("line %d: %s", i+1, key)
			}
			continue
		}
		left, _, ok := strings.Cut(line, "=")
		if ok && slices.Equal(append(slices.Clone(table), keyParts(left)...), key) {
			return fmt.Sprintf("line %d: %s", i+1, key)
		}
	}
	return key.String()
}

func keyParts(s string) []string {
	parts := strings.Split(s, ".")
	for i, p := range parts {
		parts[i] = strings.Trim(p, " \t\"'")
	}
	return parts
}
