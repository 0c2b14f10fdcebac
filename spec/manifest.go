package spec

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/BurntSushi/toml"
)

// Manifest is what a connector asks of the user: manifest.toml.
type Manifest struct {
	Name       FQN
	Version    string
	Provenance string // "sha256:…" of the binary at publication, "" when not told
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

// manifestKeys are all keys, in exactly that spelling: the decoder would also
// take HOSTS for hosts.
var manifestKeys = strings.Fields(`connector connector.name connector.version connector.provenance_hash
	capabilities capabilities.network capabilities.network.hosts
	capabilities.credential capabilities.credential.kind capabilities.credential.scope
	capabilities.runtime capabilities.runtime.imports provides provides.intents`)

// Bounds of a manifest: the TOML decoder's time grows with the square of the
// depth, which dots and braces make, and a manifest is three deep.
const (
	maxManifest = 64 << 10
	maxDots     = 256 // in a line
	maxBraces   = 16  // in the file
)

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

// ParseManifest reads manifest.toml strictly: an unknown or repeated key is
// an error with its line.
func ParseManifest(data []byte) (Manifest, error) {
	if len(data) > maxManifest {
		return Manifest{}, at("", "it is larger than %d bytes", maxManifest)
	}
	if !utf8.Valid(data) {
		return Manifest{}, at("", "it is not UTF-8")
	}
	if tooDeep(data) {
		return Manifest{}, at("", "it has more than %d dots in a line, or more than %d braces", maxDots, maxBraces)
	}
	var raw rawManifest
	meta, err := toml.NewDecoder(bytes.NewReader(data)).Decode(&raw)
	var parse toml.ParseError
	switch {
	case errors.As(err, &parse):
		return Manifest{}, at(fmt.Sprintf("line %d", parse.Position.Line), "%s", parse.Message)
	case err != nil: // a wrong type: toml: line 6 (last key "…"): what
		text := strings.TrimPrefix(err.Error(), "toml: ")
		if where, what, ok := strings.Cut(text, ": "); ok && strings.HasPrefix(where, "line ") {
			return Manifest{}, at(where, "%s", what)
		}
		return Manifest{}, at("", "%s", text)
	}
	var f faults
	for _, key := range meta.Keys() {
		if !slices.Contains(manifestKeys, key.String()) {
			f.add(place(data, key), "the key is not known")
		}
		if len(f.list) == maxFaults {
			return Manifest{}, f.err() // finding a place costs a walk through the file
		}
	}
	m := Manifest{Version: raw.Connector.Version, Provenance: raw.Connector.Provenance}
	if m.Name, err = ParseFQN(raw.Connector.Name); err != nil {
		f.add(place(data, toml.Key{"connector", "name"}), "%v", err)
	}
	if !isVersion(m.Version) {
		f.add(place(data, toml.Key{"connector", "version"}), "%q is not a MAJOR.MINOR.PATCH version", m.Version)
	}
	if digest, ok := strings.CutPrefix(m.Provenance, "sha256:"); m.Provenance != "" && (!ok || len(digest) != 64 || strings.Trim(digest, "0123456789abcdef") != "") {
		f.add(place(data, toml.Key{"connector", "provenance_hash"}), "%q is not sha256: and 64 hexadecimal digits", m.Provenance)
	}
	hosts := place(data, toml.Key{"capabilities", "network", "hosts"})
	for i, h := range raw.Capabilities.Network.Hosts {
		p, err := ParseHost(h)
		switch {
		case err != nil:
			f.add(fmt.Sprintf("%s[%d]", hosts, i), "%v", err)
		case slices.Contains(m.Hosts, p):
			f.add(fmt.Sprintf("%s[%d]", hosts, i), "%q is there twice", h)
		}
		m.Hosts = append(m.Hosts, p)
	}
	if c := raw.Capabilities.Credential; c != nil {
		if !Kind(c.Kind).isKnown() {
			f.add(place(data, toml.Key{"capabilities", "credential", "kind"}), "%q is not one of %s", c.Kind, joined(Kinds()))
		}
		if hasControl(c.Scope) || len(c.Scope) > maxString {
			f.add(place(data, toml.Key{"capabilities", "credential", "scope"}), "it has a line break or a control character, or is too long")
		}
		m.Credential = &CredentialNeed{Kind: Kind(c.Kind), Scope: c.Scope}
	}
	m.Imports = f.words(raw.Capabilities.Runtime.Imports, "._:-/@", place(data, toml.Key{"capabilities", "runtime", "imports"}))
	m.Intents = f.words(raw.Provides.Intents, "._:-", place(data, toml.Key{"provides", "intents"}))
	return m, f.err()
}

func (f *faults) words(list []string, extra, path string) []string {
	for i, w := range list {
		if !isName(w, extra) {
			f.add(fmt.Sprintf("%s[%d]", path, i), "%q is not a plain name", w)
		}
	}
	return list
}

// place is "line N: key", or the key alone where its line is not found.
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
