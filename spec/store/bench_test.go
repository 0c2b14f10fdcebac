package store

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/spec"
)

// BenchmarkManyConnectors lists 200 connectors with 50 operations each: what a session reads before it opens, and what
// it reads again when one of them changes.
func BenchmarkManyConnectors(b *testing.B) {
	s := must.Get(Open(b.TempDir()))(b)
	for i := range 200 {
		var ops []string
		for n := range 50 {
			ops = append(ops, fmt.Sprintf(`{"name": "things%d.get", "summary": "Get one of the things of a project",
				"method": "GET", "path": "/v1/projects/{project}/things%d/{id}", "hosts": ["api%d.tracker.example"],
				"inputs": [{"name": "project", "type": "string", "required": true, "description": "Its name"},
				{"name": "id", "type": "integer", "required": true}, {"name": "fields", "type": "string"}]}`, n, n, i))
		}
		c := contents{
			spec.ManifestFile: fmt.Appendf(nil, "[connector]\nname = \"github://acme/number%d\"\nversion = \"1.0.0\"\n"+
				"[capabilities.network]\nhosts = [\"api%d.tracker.example\"]\n", i, i),
			spec.SpecFile: fmt.Appendf(nil, `{"schema_version": "aileron.connector.v1", "connector":
				{"fqn": "github://acme/number%d", "version": "1.0.0"}, "tools": [{"name": "number%d", "operations": [%s]}]}`,
				i, i, strings.Join(ops, ",")),
		}
		dir := filepath.Join(s.connectors(), strings.TrimPrefix(c.hash(), "sha256:"))
		must.Do(b, os.Mkdir(dir, 0o700))
		for name, data := range c {
			must.Do(b, os.WriteFile(filepath.Join(dir, name), data, 0o600))
		}
	}
	list := func(b *testing.B) {
		if all, errs := s.All(); len(all) != 200 || len(errs) > 0 {
			b.Fatal(len(all), errs)
		}
	}
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			s.parsed.Store(nil)
			list(b)
		}
	})
	b.Run("again", func(b *testing.B) {
		for b.Loop() {
			list(b)
		}
	})
}
