package spec

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

func TestExampleOfTheContractLoads(t *testing.T) {
	c := must.Get(Load([]byte(goodManifest), []byte(specWith(goodFields+`, "idempotency": "idempotent",
	 "inputs": [{"name": "project", "type": "string", "required": true}, {"name": "fields"}],
	 "audit": [{"name": "project", "source": "path.project"},
	           {"name": "title_hash", "source": "response.body.title", "redact": true}]`))))(t)
	op := c.Tools[0].Operations[0]
	if !op.Idempotent || !op.QueryDeclaredOnly || op.Approval != "none" ||
		op.Injection.Name != "X-Api-Key" || op.Injection.Format != "{secret}" {
		t.Errorf("the operation is %+v, injection %+v", op, op.Injection)
	}
	if got := c.Credential(); got == nil || got.Kind != "api_key" || got.Scope != "Read and create issues" {
		t.Errorf("Credential() = %+v", got)
	}
}

func TestAllMistakesAreReportedTogether(t *testing.T) {
	_, err := Load([]byte("[connector]\nnme = \"x\"\n"), []byte(specWith(
		`"method": "get", "path": "x", "hosts": ["127.0.0.1", "https://a.example"], "credential": "bearer", "extra": 1`)))
	var got []string
	for _, f := range Diagnostics(err) {
		place, _, _ := strings.Cut(strings.TrimPrefix(f.Error(), f.File+": "), ": ")
		got = append(got, f.File+" "+place)
	}
	const op = SpecFile + " tools[0].operations[0]"
	for _, want := range []string{
		"manifest.toml line 2", op + ".method", op + ".path", op + ".hosts[0]", op + ".hosts[1]", op + ".extra",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("the diagnostics are at %q, want %q among them", got, want)
		}
	}
}

func TestASpecKeepsToItsManifest(t *testing.T) {
	const credentialTable = "[capabilities.credential]\nkind = \"api_key\"\nscope = \"Read and create issues\"\n"
	manifest := func(was, is string) string { return strings.Replace(goodManifest, was, is, 1) }
	for _, c := range []struct{ name, manifest, spec, want string }{
		{"name", manifest("acme", "other"), specWith(goodFields),
			"connector.fqn: it is github://acme/tracker, and the manifest's name is github://other/tracker"},
		{"version", manifest("1.2.0", "1.2.1"), specWith(goodFields), "connector.version: it is 1.2.0"},
		{"host", goodManifest, edited("api.", "apx."),
			"tools[0].operations[0].hosts[0]: apx.tracker.example:443 is not among"},
		{"port", goodManifest, edited("example\"", "example:8443\""),
			"tools[0].operations[0].hosts[0]: api.tracker.example:8443 is not among"},
		{"kind", goodManifest, edited("api_key", "bearer"), "tools[0].operations[0].credential: its kind is bearer"},
		{"no credential asked for", manifest(credentialTable, ""), specWith(goodFields),
			"tools[0].operations[0].credential: the manifest asks for no credential"},
		{"credential not used", goodManifest, specWith(`"hosts": ["api.tracker.example"]`),
			"tools: no operation uses the credential"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Load([]byte(c.manifest), []byte(c.spec))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, want %q in it", err, c.want)
			}
		})
	}
}

func TestEveryExampleLoads(t *testing.T) {
	dirs, err := filepath.Glob("../examples/connectors/*")
	if err != nil || len(dirs) < 3 {
		t.Fatalf("the examples are %q, %v", dirs, err)
	}
	var all []*Connector
	for _, dir := range dirs {
		manifest, err1 := os.ReadFile(filepath.Join(dir, ManifestFile))
		spec, err2 := os.ReadFile(filepath.Join(dir, SpecFile))
		readme, err3 := os.ReadFile(filepath.Join(dir, "README.md"))
		if err1 != nil || err2 != nil || err3 != nil {
			t.Fatal(err1, err2, err3)
		}
		c, err := Load(manifest, spec)
		if err != nil {
			t.Fatalf("%s: %v", dir, err)
		}
		if !strings.Contains(string(readme), string(c.FQN)) {
			t.Errorf("%s/README.md does not name %s", dir, c.FQN)
		}
		all = append(all, c)
	}
	if _, err := NewIndex(all); err != nil {
		t.Error(err)
	}
}

func TestTheManualsExampleLoads(t *testing.T) {
	data := must.Get(os.ReadFile("../docs/connectors.md"))(t)
	block := func(kind string) []byte {
		_, rest, _ := strings.Cut(string(data), "```"+kind+"\n")
		text, _, _ := strings.Cut(rest, "```")
		return []byte(text)
	}
	c := must.Get(Load(block("toml"), block("json")))(t)
	if op := c.Tools[0].Operations[1]; op.Injection.Format != "{secret}" || op.Idempotent {
		t.Errorf("issues.create is %+v", op)
	}
}
