package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/spec"
)

// installNamed installs a connector of that FQN, which allows one host.
func installNamed(t *testing.T, c runner, fqn string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		spec.ManifestFile: "[connector]\nname = %q\nversion = \"1.0.0\"\n\n[capabilities.network]\n" +
			"hosts = [\"api.acme.example:443\"]\n\n[provides]\nintents = [\"read\"]\n",
		spec.SpecFile: `{"schema_version": "aileron.connector.v1", "connector": {"fqn": %q, "version": "1.0.0"}, "tools":
			[{"name": "acme", "operations": [{"name": "all", "hosts": ["api.acme.example"]}]}]}`,
	} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), fmt.Appendf(nil, text, fqn), 0o600))
	}
	c.ok("connector", "install", dir, "--yes")
}

// A credential must not go to a connector that a person did not mean.
func TestANameOfTwoConnectorsIsRefused(t *testing.T) {
	c := newRunner(t)
	installNamed(t, c, "github://acme/github")
	installNamed(t, c, "github://acme/tracker")
	installNamed(t, c, "hub://other/tracker")
	for name, want := range map[string]string{
		"github":  "github://acme/github or github://alrubinger/aileron-connector-github", // the latter is not installed
		"tracker": "github://acme/tracker or hub://other/tracker",
	} {
		for _, call := range [][]string{
			{"connector", "show", name}, {"connector", "remove", name}, {"connector", "verify", name},
			{"binding", "setup", name, "--secret-stdin"}, {"audit", "list", "--connector", name},
			{"audit", "tail", "--connector", name}, {"audit", "export", "--connector", name},
			{"run", "--bind", name + "=work", "--", "true"}, {"run", "--connector", name, "--", "true"},
			{"sandbox", "run", "--connector", name, "--", "true"}, {"proxy", "--connector", name},
			{"spec", "match", "--connector", name, "GET", "https://api.acme.example/"},
		} {
			if _, errs, code := c.run(call...); code != 2 || !strings.Contains(errs, name+" can be "+want) {
				t.Errorf("aileron %q ends with %d: %s", call, code, errs)
			}
		}
	}
}

// A project that an agent wrote may contain a directory of any name.
func TestADirectoryIsNotTakenForTheCatalogue(t *testing.T) {
	c := newRunner(t)
	t.Chdir(t.TempDir())
	must.Do(t, os.Mkdir("github", 0o700))
	for _, src := range []string{"github", "github@0.5.0"} {
		if src != "github" {
			must.Do(t, os.Rename("github", src))
		}
		_, errs, code := c.run("connector", "install", src, "--yes")
		if code != 2 || !strings.Contains(errs, "a connector of the catalogue, and a file or directory here") {
			t.Errorf("connector install %s ends with %d: %s", src, code, errs)
		}
	}
	if out := c.ok("connector", "list", "--json"); strings.TrimSpace(out) != "[]" {
		t.Errorf("installed are %s", out)
	}
}
