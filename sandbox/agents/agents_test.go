package agents_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/sandbox/agents"
)

func TestEveryAgentIsComplete(t *testing.T) {
	names := agents.Names()
	if !slices.IsSorted(names) || len(names) == 0 || len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Fatalf("Names() = %q, want some names, sorted, each once", names)
	}
	for _, name := range names {
		a, ok := agents.Find(name)
		if !ok || a.Name != name {
			t.Fatalf("Find(%q) = %q, %v", name, a.Name, ok)
		}
		if len(a.Commands) == 0 || len(a.Connectors) == 0 {
			t.Errorf("%s: Commands = %q, Connectors = %q, want both", name, a.Commands, a.Connectors)
		}
		if a.NeverAsks == (a.Unattended.String() != "") {
			t.Errorf("%s: NeverAsks is %v, and its switch %q: want one of them", name, a.NeverAsks, a.Unattended)
		}
		for k := range a.Env {
			if strings.Contains(k, "KEY") || strings.Contains(k, "TOKEN") || strings.Contains(k, "SECRET") {
				t.Errorf("%s: sets %s; keys and their placeholders come from connectors", name, k)
			}
		}
	}
}

// The switch stands where the agent takes it, once, and not behind a subcommand that would refuse it.
func TestTheUnattendedSwitchStandsWhereItIsTaken(t *testing.T) {
	for _, c := range []struct{ agent, args, want string }{
		{"claude", "", "--dangerously-skip-permissions"},
		{"claude", "-p hello", "--dangerously-skip-permissions -p hello"},
		{"claude", "mcp list", "--dangerously-skip-permissions mcp list"},
		{"claude", "-p x --dangerously-skip-permissions", "-p x --dangerously-skip-permissions"},
		{"codex", "exec hello", "--dangerously-bypass-approvals-and-sandbox exec hello"},
		{"opencode", "", "--auto"},
		{"opencode", "--continue", "--auto --continue"},
		{"opencode", "run hello", "run --auto hello"},
		{"opencode", "serve", ""},
		{"goose", "run -t hello", "run -t hello"},
	} {
		a, _ := agents.Find(c.agent)
		args := strings.Fields(c.args)
		with, ok := a.Unattended.In(args)
		if got := strings.Join(with, " "); ok != (c.want != "") || ok && got != c.want || !ok && got != c.args {
			t.Errorf("%s %s: In = %q, %v; want %q", c.agent, c.args, got, ok, c.want)
		}
	}
}

// A recipe must build on any base without a build context, and leave the
// base's user and entry point as they are.
func TestRecipesKeepTheBase(t *testing.T) {
	for _, name := range agents.Names() {
		a, _ := agents.Find(name)
		if a.Recipe == nil {
			continue
		}
		var instructions []string
		for line := range bytes.Lines(bytes.ReplaceAll(a.Recipe, []byte("\\\n"), nil)) {
			if s := strings.TrimSpace(string(line)); s != "" && s[0] != '#' {
				instructions = append(instructions, s)
			}
		}
		if instructions[0] != "ARG BASE" {
			t.Errorf("%s: the recipe begins with %q, want ARG BASE", name, instructions[0])
		}
		last := -1
		for i, s := range instructions {
			if strings.HasPrefix(s, "FROM ") {
				last = i
				if !strings.HasPrefix(s, "FROM ${BASE}") {
					t.Errorf("%s: %q is a stage that is not the base", name, s)
				}
			}
			if strings.HasPrefix(s, "COPY ") && !strings.HasPrefix(s, "COPY --from=") || strings.HasPrefix(s, "ADD ") {
				t.Errorf("%s: %q wants a build context", name, s)
			}
		}
		for _, s := range instructions[last+1:] {
			if regexp.MustCompile(`^(USER|ENTRYPOINT|CMD|WORKDIR|ENV|VOLUME)\b`).MatchString(s) {
				t.Errorf("%s: the last stage contains %q", name, s)
			}
		}
		for _, secret := range []string{"_authToken", "//registry", "https://"} {
			if bytes.Contains(a.Recipe, []byte(secret)) {
				t.Errorf("%s: the recipe contains %q; registries are the user's configuration", name, secret)
			}
		}
	}
}

// The layer is put on an image that may be anyone's: nothing of that runs while it is built, and its user stays. It has
// no stage of its own, whose image would stay without a name, on Podman even without a step.
func TestALayerRunsNothingOfTheImage(t *testing.T) {
	for _, name := range agents.Names() {
		a, _ := agents.Find(name)
		if a.Recipe == nil && a.Layer.Recipe() == nil {
			continue
		}
		recipe := string(a.Layer.Recipe())
		steps, ok := strings.CutPrefix(recipe, "ARG BASE\nFROM ${BASE}\n")
		if !ok {
			t.Fatalf("%s: the layer is\n%s", name, recipe)
		}
		for line := range strings.Lines(steps) {
			if !strings.HasPrefix(line, "COPY --from=${AGENT} /") {
				t.Errorf("%s: %q on the image", name, line)
			}
		}
		if len(a.Layer.Libraries) > 0 && !a.Layer.Glibc {
			t.Errorf("%s: it needs %q, and no C library", name, a.Layer.Libraries)
		}
	}
	if recipe := (agents.Layer{}).Recipe(); recipe != nil {
		t.Errorf("of nothing a layer is made: %s", recipe)
	}
}

func TestFindReturnsANewValue(t *testing.T) {
	a, _ := agents.Find("opencode")
	a.Env["X"] = "1"
	a.Recipe[0] = 'x'
	if b, _ := agents.Find("opencode"); b.Env["X"] != "" || b.Recipe[0] == 'x' {
		t.Error("a change to one value shows in the next")
	}
}

// A recipe whose agent is not listed could never be launched.
func TestEveryRecipeHasItsAgent(t *testing.T) {
	recipes, err := filepath.Glob("*.Dockerfile")
	if err != nil || len(recipes) == 0 {
		t.Fatalf("recipes: %q, %v", recipes, err)
	}
	for _, file := range recipes {
		name := strings.TrimSuffix(file, ".Dockerfile")
		want := must.Get(os.ReadFile(file))(t)
		if a, ok := agents.Find(name); !ok || !bytes.Equal(a.Recipe, want) {
			t.Errorf("%s is not the recipe of an agent %s: add it to agents.go", file, name)
		}
	}
	// No hash of a release of Goose's is known.
	if len(recipes) != len(agents.Names())-1 {
		t.Errorf("%d recipes for the agents %q", len(recipes), agents.Names())
	}
}

func TestAnUnknownAgentIsNotFound(t *testing.T) {
	for _, name := range []string{"", "OpenCode", "opencode ", "../opencode"} {
		if a, ok := agents.Find(name); ok {
			t.Errorf("Find(%q) = %q, want nothing", name, a.Name)
		}
	}
}
