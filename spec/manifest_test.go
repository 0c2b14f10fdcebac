package spec

import (
	"strings"
	"testing"
)

const goodManifest = `[connector]
name = "github://acme/tracker"
version = "1.2.0"

[capabilities.network]
hosts = ["api.tracker.example:443", "*.up.tracker.example", "api.tracker.example:80"]

[capabilities.credential]
kind = "api_key"
scope = "Read and create issues"

[provides]
intents = ["read_issues", "create_issue"]
`

func TestManifestIsReadStrictly(t *testing.T) {
	for _, c := range []struct{ name, add, want string }{
		{"unknown key", "\n[capabilities.files]\nread = true\n", "line 15: capabilities.files"},
		{"known key in a wrong table", "\nhosts = []\n", "line 15: provides.hosts: unknown key"},
		{"folded key", "\n[Capabilities]\n", "line 15: Capabilities: unknown key"},
		{"doubled key", "\nintents = []\n", "line 15: Key 'provides.intents' has already been defined"},
		{"doubled table", "\n[connector]\n", "line 15: Key 'connector' has already been defined"},
		{"syntax", "\nx = \n", "line 15: "},
		{"wrong type", "\n[capabilities.runtime]\nimports = 1\n", "line 16 (last key \"capabilities.runtime.imports\"): "},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := ParseManifest([]byte(goodManifest + c.add))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, want %q in it", err, c.want)
			}
		})
	}
	for _, c := range []struct{ old, new, want string }{
		{"github://acme/tracker", "acme", "line 2: connector.name: read the connector name"},
		{"1.2.0", "latest", "line 3: connector.version: \"latest\""},
		{"api.tracker.example:443", "10.0.0.1", "line 6: capabilities.network.hosts[0]"},
		{"api_key", "token", "line 9: capabilities.credential.kind"},
		{"read_issues", "read issues", "line 13: provides.intents[0]"},
		{"Read and", "Read\\nand", "line 10: capabilities.credential.scope"},
	} {
		_, err := ParseManifest([]byte(strings.Replace(goodManifest, c.old, c.new, 1)))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("with %q the error is %v, want %q in it", c.new, err, c.want)
		}
	}
}

// The TOML decoder needs half a minute for each of these.
func TestManifestsMadeToBeSlowAreRefused(t *testing.T) {
	for _, text := range []string{
		"a" + strings.Repeat(".a", 30000) + " = 1", "[a" + strings.Repeat(".a", 30000) + "]",
		"a = " + strings.Repeat("{b=", 15000), strings.Repeat("#", maxManifest+1),
	} {
		_, err := ParseManifest([]byte(text))
		if err == nil || !strings.Contains(err.Error(), "more than") && !strings.Contains(err.Error(), "larger than") {
			t.Errorf("%.20s…: %.100v", text, err)
		}
	}
	if _, err := ParseManifest([]byte(strings.Repeat("a.b = 1\n", 8000))); len(Diagnostics(err)) > maxDiagnostics+1 {
		t.Errorf("there are %d diagnostics", len(Diagnostics(err)))
	}
}
