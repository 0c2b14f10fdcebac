package devcontainer_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/sandbox/devcontainer"
)

func TestWhatAnImageAsksForIsNamed(t *testing.T) {
	many := make([]string, 40)
	for i := range many {
		many[i] = fmt.Sprintf(`"p%02d":1`, i)
	}
	for label, want := range map[string]string{
		"": "", "[]": "", `[{"id":"a"},{"customizations":{"vscode":{}}}]`: "",
		`[{"id":"ghcr.example/f","privileged":true,"mounts":[]},{"remoteUser":"vscode"}]`: "mounts privileged remoteUser",
		`{"remoteUser":"vscode"}`: "remoteUser",
		`[{"user; agree":1}]`:     `"user; agree"`,
		`[{"remoteUser`:           "what cannot be read",
		`["x"]`:                   "what cannot be read",
		`[{"a":"` + strings.Repeat("x", 1<<18) + `"}]`: "what cannot be read",
	} {
		if got := devcontainer.AskedFor(label); got != want {
			t.Errorf("AskedFor(%.60s) = %q, want %q", label, got, want)
		}
	}
	if got := devcontainer.AskedFor("[{" + strings.Join(many, ",") + "}]"); !strings.HasPrefix(got, "p00 p01 ") ||
		!strings.HasSuffix(got, " p23 and more") {
		t.Errorf("of 40 properties: %q", got)
	}
}

// A directory of a project may have any number of entries, and is not read as a whole.
func TestNamesBesideAConfigurationAreBounded(t *testing.T) {
	dir, root := project(t, map[string]string{".devcontainer/b/devcontainer.json": "{}",
		".devcontainer/a/devcontainer.json": "{}"})
	if found := must.Get(devcontainer.Find(root))(t); strings.Join(found, " ") !=
		".devcontainer/a/devcontainer.json .devcontainer/b/devcontainer.json" {
		t.Errorf("found %q", found)
	}
	for i := range 10_000 {
		must.Do(t, os.Symlink("x", fmt.Sprintf("%s/.devcontainer/%d", dir, i)))
	}
	if found, err := devcontainer.Find(root); err == nil || !strings.Contains(err.Error(), "more than 10000 entries") {
		t.Errorf("found %q, %v, want the bound", found, err)
	}
}

func TestNamesOfAPlanAreWords(t *testing.T) {
	for name, want := range map[string]string{
		"src/a.go": "src/a.go", "${localEnv:HOME}": "${localEnv:HOME}", "ä/*": "ä/*", "": `""`,
		"a at /b": `"a at /b"`, "a; egress: passthrough": `"a; egress: passthrough"`, "a\"b": `"a\"b"`, "a\nb": `"a\nb"`,
		"a, read-only": `"a, read-only"`,
	} {
		if got := devcontainer.Word(name); got != want {
			t.Errorf("Word(%q) = %s, want %s", name, got, want)
		}
	}
	p, err := composed(t, `{"image": "x", "mounts": ["type=volume,source=v,target=/w at /x"]}`, nil)
	if err != nil || !strings.Contains(p.Text(), `mount: volume v at "/w at /x"`) {
		t.Errorf("%v, the plan is\n%s", err, p.Text())
	}
}
