package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	launchcmd "github.com/ALRubinger/aileron/cmd/aileron/internal/launch"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/config"
	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/home"
	"github.com/ALRubinger/aileron/internal/project"
	"github.com/ALRubinger/aileron/sandbox"
	"github.com/ALRubinger/aileron/sandbox/agents"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/catalog"
)

// What sandbox check and build say of an image is what launch does with it: the project's file counts, and is asked
// about.
func TestAProjectsFileDecidesAboutImagesWithoutASession(t *testing.T) {
	c := newRunner(t)
	dir := t.TempDir()
	file := filepath.Join(dir, config.ProjectFile)
	write := func(text string) {
		t.Helper()
		must.Do(t, os.WriteFile(file, []byte(text), 0o600))
	}
	for _, verb := range [][]string{{"sandbox", "check", "--agent=sh"}, {"sandbox", "build"}} {
		// allow and mounts are not about an image.
		write("packages = [\"tree\"]\nallow = [\"a.example\"]\nmounts = [\"/:/x\"]\n")
		_, errs, code := c.run(append(verb, "--dir", dir)...)
		if code != 1 || !strings.HasPrefix(errs, "aileron: use \""+file+"\": a person must agree to it first: "+
			"install the Debian package tree in the image, with the network of the engine's machine; hint: ") {
			t.Errorf("%q ends with %d: %s", verb, code, errs)
		}
		write("dockerfile = \"nothing\"\n")
		_, errs, code = c.run(append(verb, "--dir", dir)...)
		if code != 1 || !strings.Contains(errs, "read the Dockerfile nothing: no such file") {
			t.Errorf("%q ends with %d: %s", verb, code, errs)
		}
		write("agent = \"emacs\"\n")
		_, errs, code = c.run(append(verb, "--dir", dir)...)
		if code != 1 || !strings.Contains(errs, `there is no agent "emacs"`) {
			t.Errorf("%q ends with %d: %s", verb, code, errs)
		}
	}
	write("read_only = true\n")
	if _, errs, code := c.run("sandbox", "check", "--dir", dir); code != 2 || !strings.Contains(errs, "--agent=CMD") {
		t.Errorf("without an agent check ends with %d: %s", code, errs)
	}
}

func TestAnAgentWithoutItsModelIsAdvisedByTheCause(t *testing.T) {
	c := newRunner(t)
	c.ok("connector", "install", "npm", "--yes")
	claude, _ := agents.Find("claude")
	npm, model := &spec.Connector{FQN: catalog.FQN("npm")}, &spec.Connector{FQN: catalog.FQN("anthropic")}
	file := &config.Project{Path: "/p/.aileron.toml", Connectors: []string{"npm"}}
	for _, installed := range []bool{false, true} {
		if installed {
			c.ok("connector", "install", "anthropic", "--yes")
		}
		for _, x := range []struct {
			inForce []*spec.Connector
			opts    cli.SessionOptions
			want    string
		}{
			{[]*spec.Connector{npm, model}, cli.SessionOptions{}, ""},
			{[]*spec.Connector{npm}, cli.SessionOptions{Session: project.Session{Project: project.Use{File: file}}},
				"aileron: connectors in /p/.aileron.toml leaves out the connector for claude's model provider, and its " +
					"requests will be denied; add " + string(model.FQN) + "\n"},
			{[]*spec.Connector{npm}, cli.SessionOptions{Session: project.Session{Connectors: []string{"npm"},
				Project: project.Use{File: file}}},
				"aileron: --connector leaves out the connector for claude's model provider, and its requests will be denied; " +
					"add " + string(model.FQN) + "\n"},
		} {
			want := x.want
			if !installed && want != "" {
				want = "aileron: no connector for a model provider of claude (" + strings.Join(claude.Connectors, ", ") +
					") is installed; set it up with: aileron setup claude\n"
			}
			var printed strings.Builder
			a := cli.New(&console.Console{Stderr: &printed}, &home.Dir{Flag: c.Flag})
			launchcmd.AdviseModel(a, claude, x.inForce, &x.opts)
			if printed.String() != want {
				t.Errorf("installed %v, %q: advice is %q, want %q", installed, x.opts.Connectors, printed.String(), want)
			}
		}
	}
}

// The example is what a stranger begins with.
func TestTheExampleOfAProjectsFileIsInForce(t *testing.T) {
	c := newRunner(t)
	for _, name := range []string{"anthropic", "github", "go"} {
		c.ok("connector", "install", name, "--yes")
	}
	s := &cli.SandboxOptions{}
	s.Dir, s.Project.Trust, s.Given = "../../examples/project", true, func(string) bool { return false }
	a := cli.New(&console.Console{Stderr: t.Output()}, &home.Dir{Flag: c.Flag})
	must.Do(t, a.UseProject(t.Context(), &s.Session, &s.Sandbox))
	_, data, err := s.Custom.Read(s.Dir)
	if err == nil {
		_, err = sandbox.CustomImage(sandbox.BaseImage(), nil, data)
	}
	if err != nil || len(s.Project.Connectors) != 3 || len(s.Shared.Mounts) != 1 || len(s.Shared.Ports) != 1 {
		t.Errorf("in force is %+v, %v", s.Project.InForce, err)
	}
}
