package spec

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// Manifest is what a connector asks of the user: manifest.toml.
type Manifest struct {
	Name       FQN
	Version    string
	Hosts      []HostPattern
	Credential *CredentialNeed
	Intents    []string
}

type rawManifest struct {
	Connector struct {
		Name    string `toml:"name"`
		Version string `toml:"version"`
	} `toml:"connector"`
	Capabilities struct {
		Network struct {
			Hosts []string `toml:"hosts"`
		} `toml:"network"`
		Credential *struct {
			Kind  string `toml:"kind"`
			Scope string `toml:"scope"`
		} `toml:"credential"`
	} `toml:"capabilities"`
	Provides struct {
		Intents []string `toml:"intents"`
	} `toml:"provides"`
}

// kinds of credentials.
var kinds = []string{"oauth2", "api_key", "bearer", "basic"}

// ParseManifest reads manifest.toml strictly: an unknown or repeated key is
// an error with its line.
func ParseManifest(data []byte) (Manifest, error) {
	if len(data) > maxSpec {
		return Manifest{}, fmt.Errorf("it is larger than %d bytes", maxSpec)
	}
	var raw rawManifest
	meta, err := toml.NewDecoder(bytes.NewReader(data)).Decode(&raw)
	if err != nil {
		var parse toml.ParseError
		if errors.As(err, &parse) {
			return Manifest{}, fmt.Errorf("line %d: %s", parse.Position.Line, parse.Message)
		}
		return Manifest{}, err
	}
	var f faults
	for _, key := range meta.Undecoded() {
		f.add(fmt.Sprintf("line %d: %s", lineOf(data, key), key), "the key is not known")
	}
	// toml matches keys whatever their case; we do not.
	for _, key := range meta.Keys() {
		if s := key.String(); s != strings.ToLower(s) {
			f.add(fmt.Sprintf("line %d: %s", lineOf(data, key), s), "the key is not known; keys are lower case")
		}
	}
	m := Manifest{Version: raw.Connector.Version, Intents: raw.Provides.Intents}
	if m.Name, err = ParseFQN(raw.Connector.Name); err != nil {
		f.add("connector.name", "%v", err)
	}
	if !isVersion(m.Version) {
		f.add("connector.version", "%q is not a MAJOR.MINOR.PATCH version", m.Version)
	}
	for i, h := range raw.Capabilities.Network.Hosts {
		p, err := ParseHost(h)
		if err != nil {
			f.add(fmt.Sprintf("capabilities.network.hosts[%d]", i), "%v", err)
			continue
		}
		m.Hosts = append(m.Hosts, p)
	}
	if c := raw.Capabilities.Credential; c != nil {
		if !slices.Contains(kinds, c.Kind) {
			f.add("capabilities.credential.kind", "%q is not one of %s", c.Kind, strings.Join(kinds, ", "))
		}
		if hasControl(c.Scope) {
			f.add("capabilities.credential.scope", "it has a control character")
		}
		m.Credential = &CredentialNeed{Kind: c.Kind, Scope: c.Scope}
	}
	for i, intent := range m.Intents {
		if !isName(intent, "._:-") {
			f.add(fmt.Sprintf("provides.intents[%d]", i), "%q is not a plain name", intent)
		}
	}
	return m, f.err()
}

// lineOf finds the line on which a key's last part is set, 0 when it cannot.
func lineOf(data []byte, key toml.Key) int {
	last := key[len(key)-1]
	for i, line := range bytes.Split(data, []byte("\n")) {
		text := strings.TrimLeft(string(line), " \t[\"'")
		if rest, ok := strings.CutPrefix(text, last); ok && strings.IndexAny(strings.TrimLeft(rest, "\"' \t"), "=].") == 0 {
			return i + 1
		}
		if strings.HasSuffix(strings.TrimRight(text, "] \t\r"), last) && strings.Contains(text, "]") {
			return i + 1
		}
	}
	return 0
}
