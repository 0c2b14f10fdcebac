package devcontainer_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/sandbox/devcontainer"
)

func TestAScaffoldIsInForceAsItIs(t *testing.T) {
	dir, root := project(t, nil)
	written := must.Get(devcontainer.Scaffold(root))(t)
	if want := []string{".devcontainer/Dockerfile", at}; !slices.Equal(written, want) {
		t.Errorf("written are %v, want %v", written, want)
	}
	in := devcontainer.Input{Root: root, Dir: dir, File: at, Getenv: environment()}
	p := must.Get(devcontainer.Compose(t.Context(), in))(t)
	if len(p.Warnings)+len(p.Refusals) > 0 || p.Build == nil || !p.Build.UsesBase || p.Egress != "deny" {
		t.Errorf("the plan is %+v", p)
	}
	_, err := devcontainer.Scaffold(root)
	if err == nil || !strings.Contains(err.Error(), "the project has "+at) || hint.Of(err) == "" {
		t.Errorf("a second time: %v", err)
	}
}

func TestAScaffoldOverwritesNothing(t *testing.T) {
	outside := t.TempDir()
	for name, files := range map[string]map[string]string{
		"a Dockerfile": {".devcontainer/Dockerfile": "FROM x\n"}, "a file": {".devcontainer.json": "{}"},
		"another name": {".devcontainer/go/devcontainer.json": "{}"}, "a way out": {".devcontainer": "-> " + outside},
		"a link": {".devcontainer/devcontainer.json": "-> " + outside + "/new"},
	} {
		dir, root := project(t, files)
		if written, err := devcontainer.Scaffold(root); err == nil || len(written) > 0 {
			t.Errorf("%s: written %v, %v", name, written, err)
		}
		for file, text := range files {
			if data, _ := os.ReadFile(filepath.Join(dir, file)); !strings.HasPrefix(text, "-> ") && string(data) != text {
				t.Errorf("%s: %s is %q", name, file, data)
			}
		}
		if left := must.Get(os.ReadDir(outside))(t); len(left) > 0 {
			t.Errorf("%s: written outside: %v", name, left)
		}
	}
}
