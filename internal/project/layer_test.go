package project

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/launch"
	"github.com/ALRubinger/aileron/sandbox"
	"github.com/ALRubinger/aileron/sandbox/agents"
)

// Which images get a layer: those that the devcontainer names or builds, unless they have the agent's below them.
func TestOnlyTheImageOfADevcontainerGetsALayer(t *testing.T) {
	claude, _ := agents.Find("claude")
	for name, c := range map[string]struct {
		text, file string
		want       bool
	}{
		"an image":                {text: `{"image": "x"}`, want: true},
		"a build":                 {text: `{"dockerFile": "Dockerfile"}`, file: "FROM x\n", want: true},
		"a build on the agent's":  {text: `{"dockerFile": "Dockerfile"}`, file: "ARG BASE\nFROM ${BASE}\n"},
		"an image that is byo":    {text: `{"customizations": {"aileron": {"image": "x"}}}`, want: true},
		"a project without one":   {},
		"an image with variables": {text: `{"image": "x", "remoteEnv": {"PATH": "${containerEnv:PATH}:/y"}}`, want: true},
	} {
		dir, a := t.TempDir(), asker(t, t.Output())
		if c.text != "" {
			withFiles(t, dir, map[string]string{devcontainerFile: c.text, ".devcontainer/Dockerfile": c.file})
		}
		w, err := using(a, dir, trusting)
		must.Do(t, err)
		l := launch.Sandbox{Agent: "claude", Layer: launch.LayerOf(claude)}
		a.Into(&w.Sandbox, &l)
		if (l.Layer != nil) != c.want {
			t.Errorf("%s: the layer is %+v", name, l.Layer)
		}
		if l.Layer == nil {
			continue
		}
		if l.Layer.Otherwise == "" || l.Layer.Otherwise != l.Advice {
			t.Errorf("%s: without it %q", name, l.Layer.Otherwise)
		}
		if env := l.Layer.Env([]string{"PATH=/bin"}); strings.Contains(c.text, "PATH") &&
			(len(env) != 1 || env[0] != "PATH=/bin:/y") {
			t.Errorf("%s: its command has %q", name, env)
		}
	}
	if l := launch.LayerOf(agents.Agent{Name: "x", Commands: []string{"x"}}); l != nil {
		t.Errorf("an agent without files has a layer: %+v", l)
	}
}

// A person agrees once, for an agent and a devcontainer; without a terminal the command that agrees is named.
func TestALayerNeedsConsent(t *testing.T) {
	claude, _ := agents.Find("claude")
	pi, _ := agents.Find("pi")
	dir, a := t.TempDir(), asker(t, t.Output())
	withFiles(t, dir, map[string]string{devcontainerFile: `{"image": "x"}`,
		".devcontainer/go/devcontainer.json": `{"image": "x"}`})
	agree := func(agent agents.Agent, change ...func(*wanted)) error {
		w, err := using(a, dir, append(change, trusting)...)
		must.Do(t, err)
		l := launch.Sandbox{Layer: launch.LayerOf(agent)}
		a.Into(&w.Sandbox, &l)
		return l.Layer.Agree(t.Context(), "image:1")
	}
	named := func(w *wanted) { w.Devcontainer.Name = "go" }
	err := agree(claude, named)
	if err == nil || !strings.Contains(err.Error(), "run claude in the image \"image:1\" of "+
		"\".devcontainer/go/devcontainer.json\": the image has none, and a person must agree") ||
		!strings.Contains(hint.Of(err), "aileron sandbox build --agent claude --dir '"+dir+"'") ||
		!strings.Contains(hint.Of(err), " --devcontainer 'go' --yes; or build it on the agent's image: begin the last") {
		t.Errorf("without a terminal: %v\n%s", err, hint.Of(err))
	}
	must.Do(t, agree(claude, func(w *wanted) { w.Custom.Yes = true }))
	if err := agree(claude); err != nil {
		t.Errorf("the same is asked about again: %v", err)
	}
	for what, err := range map[string]error{"another agent": agree(pi), "another devcontainer": agree(claude, named)} {
		if err == nil || !strings.Contains(err.Error(), "a person must agree") {
			t.Errorf("%s has the same consent: %v", what, err)
		}
	}
}

// An agent without a recipe needs an image of the user's own: the toolbox is not built for it.
func TestAnAgentWithoutARecipeNeedsAnImage(t *testing.T) {
	goose, _ := agents.Find("goose")
	dir, a := t.TempDir(), asker(t, t.Output())
	own := sandbox.AgentImage(goose.Name, goose.Recipe)
	of := func(s Sandbox) (sandbox.Image, error) {
		s.Dir, s.Custom.Yes = dir, true
		return a.ImageOf(&s, own, nil)
	}
	_, err := of(Sandbox{})
	if err == nil || !strings.Contains(err.Error(), "make an image for goose: aileron has no recipe of it") ||
		!strings.Contains(hint.Of(err), "lines of an aileron.Dockerfile") {
		t.Errorf("without one: %v\n%s", err, hint.Of(err))
	}
	if img, err := of(Sandbox{Image: "mine"}); err != nil || img.Ref != "mine" {
		t.Errorf("--image: %v, %v", img.Ref, err)
	}
	withFiles(t, dir, map[string]string{Dockerfile: "ARG BASE\nFROM ${BASE}\nRUN true\n"})
	if img, err := of(Sandbox{}); err != nil || img.Base == nil || img.Base.Ref != sandbox.ToolboxImage().Ref {
		t.Errorf("%s: %+v, %v", Dockerfile, img, err)
	}
	if _, err := of(Sandbox{Custom: Custom{Dockerfile: "off"}}); err == nil {
		t.Error("--dockerfile=off: the toolbox is used for it")
	}
}

// What an error tells a person to paste is one word for each value, whatever a project's folder is called.
func TestACommandToPasteHasNoOtherCommand(t *testing.T) {
	s := Sandbox{Dir: "/home/me/it's $(touch /tmp/x); `id`"}
	s.Devcontainer.Name = "a;b"
	out := must.Get(exec.CommandContext(t.Context(), "sh", "-c", "printf '[%s]' "+s.flags()).Output())(t)
	if want := "[--dir][" + s.Dir + "][--devcontainer][a;b]"; string(out) != want {
		t.Errorf("a shell reads %s as %s, want %s", s.flags(), out, want)
	}
}
