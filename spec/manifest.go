package spec

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/BurntSushi/toml"
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
			Kind  string `toml:"kind"`
			Scope string `toml:"scope"`
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
