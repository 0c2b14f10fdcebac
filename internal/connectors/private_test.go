package connectors

import (
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/home"
	"github.com/ALRubinger/aileron/spec/catalog"
	"github.com/ALRubinger/aileron/spec/source"
	"github.com/ALRubinger/aileron/spec/store"
)

// A credential goes where the person has agreed that the connector sends it, whatever base URL config.toml has.
func TestACredentialGoesToAHostOfItsConnector(t *testing.T) {
	d := &home.Dir{Flag: t.TempDir(), Environ: func(string) string { return "" }}
	s := must.Get(d.OpenStore())(t)
	entry, _ := catalog.Find("gitlab")
	must.Get(s.InstallAll(t.Context(), []store.Source{{Src: "gitlab", Files: entry.Files}}, nil))(t)
	p := &Private{Dir: d, Identity: "default"}
	if op, err := p.operation(source.API{Forge: "gitlab", Host: "gitlab.com"}); err != nil || op.Injection.In != "header" {
		t.Errorf("gitlab.com: %v", err)
	}
	for api, want := range map[source.API]string{
		{Forge: "gitlab", Host: "gitlab.evil.example"}: "sends no credential to gitlab.evil.example",
		{Forge: "gitlab", Host: "gitlab.com:8443"}:     "sends no credential to gitlab.com:8443",
		{Forge: "github", Host: "api.github.com"}:      "is not installed",
	} {
		if _, err := p.operation(api); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", api, err, want)
		}
	}
}
