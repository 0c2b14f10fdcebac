package spec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

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
		if !slices.Contains(manifestKeys, key.String()) {
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
		if hasControl(c.Scope) || len(c.Scope) > maxString {
			r.add(toml.Key{"capabilities", "credential", "scope"},
				"it has a line break or a control character, or is too long")
		}
		m.Credential = &CredentialNeed{Kind: Kind(c.Kind), Scope: c.Scope}
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
	var hosts []HostPattern
	at := place(r.data, toml.Key{"capabilities", "network", "hosts"})
	for i, s := range list {
		h, err := ParseHost(s)
		switch {
		case err != nil:
			r.diags.add(fmt.Sprintf("%s[%d]", at, i), "%v", err)
		case slices.Contains(hosts, h):
			r.diags.add(fmt.Sprintf("%s[%d]", at, i), "%q appears twice", s)
		}
		hosts = append(hosts, h)
	}
	return hosts
}

// words returns the list, whose entries must be plain names.
func (r *manifestReader) words(list []string, extra string, key toml.Key) []string {
	at := place(r.data, key)
	for i, w := range list {
		if !isName(w, extra) {
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
