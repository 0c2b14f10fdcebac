package e2e

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/recipes"
	"github.com/ALRubinger/aileron/e2e/stub"
)

// An agent by name runs in a devcontainer whose image has neither it nor Node.js: as one more layer, after consent,
// which is built once.
func TestAnAgentIsPutOnADevcontainersImage(t *testing.T) {
	for _, engine := range []string{"podman", "docker"} {
		for _, agent := range []string{"claude", "codex", "opencode", "pi"} {
			t.Run(engine+"/"+agent, func(t *testing.T) {
				if agent != "pi" {
					harness.PodmanIsEnough(t, engine)
					harness.Turn(t)
				}
				u := composing(t, engine)
				recipes.Need(t, engine, recipes.Agent(agent))
				u.write(".devcontainer/devcontainer.json", image(`{"build": {"dockerfile": "Dockerfile"}}`))
				u.write(".devcontainer/Dockerfile", image("FROM BASE\nUSER root\nRUN echo theirs >/opt/word\nUSER agent\n"))
				launch := func(flags ...string) result {
					args := append([]string{"launch", "--sandbox=" + engine, "--keep=false", "--dir", u.project}, u.reach()...)
					return u.run(append(append(args, flags...), agent, "--", "--version")...)
				}
				refused := launch("--trust-project")
				if refused.code != 1 {
					t.Errorf("without consent: exit %d\n%s", refused.code, refused.err)
				}
				contains(t, "the refusal", refused.err, "the image has none, and a person must agree to add it as one more layer",
					"aileron sandbox build --agent "+agent+" --dir ", "ARG BASE and FROM ${BASE}")
				built := strings.TrimSpace(u.must("sandbox", "build", "--sandbox="+engine, "--if-missing", "--agent", agent,
					"--dir", u.project, "--yes").out)
				if !strings.HasPrefix(built, "localhost/aileron/devcontainer-"+agent+":") {
					t.Errorf("the image is %q", built)
				}
				t.Cleanup(func() { u.ask("image", "rm", built) })
				r := launch("--sandbox-build=never")
				if r.code != 0 || !strings.ContainsAny(r.out, "0123456789") {
					t.Errorf("exit %d, %q\n%s", r.code, r.out, r.err)
				}
				// What the image had is there, and so is its user.
				check := u.must("sandbox", "check", "--sandbox="+engine, "--agent", agent, "--dir", u.project, "--json",
					"--sandbox-build=never").out
				contains(t, "the check", check, `"tier":"devcontainer"`, built, `"support":"ok"`)
				user := strings.TrimSpace(u.list("image", "inspect", "--format", "{{.Config.User}}", built))
				if user != "agent" {
					t.Errorf("the user of the image is %q", user)
				}
				if left := u.leftovers(); left != "" {
					t.Errorf("left: %s", left)
				}
			})
		}
	}
}

// What the layer cannot be put on is refused before anything is built: other C libraries, and an image that would run
// something in the build.
func TestAnImageThatTakesNoLayerIsRefused(t *testing.T) {
	for _, engine := range []string{"podman", "docker"} {
		t.Run(engine, func(t *testing.T) {
			u := composing(t, engine)
			alpine := recipes.Kind("alpine")
			recipes.Need(t, engine, alpine)
			const triggered = "localhost/aileron-test/onbuild:" + "layer"
			build := exec.Command(engine, "build", "-t", triggered, "-")
			build.Stdin = strings.NewReader(image("FROM BASE\nONBUILD RUN echo theirs runs\n"))
			if engine == "podman" {
				build.Args = append(build.Args[:len(build.Args)-1], "--format", "docker", "-f", "-")
			}
			if out, err := build.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			t.Cleanup(func() { u.ask("image", "rm", triggered) })
			for ref, want := range map[string]string{
				alpine.Ref: "add claude to the image " + alpine.Ref + ": it lacks the library ld-linux-",
				triggered:  "add claude to the image " + triggered + ": its ONBUILD would run outside of the sandbox",
			} {
				u.write(".devcontainer/devcontainer.json", `{"image": "`+ref+`"}`)
				r := u.run("launch", "--sandbox="+engine, "--trust-project", "--yes", "--dir", u.project, "claude", "--",
					"--version")
				if r.code != 1 || strings.Contains(r.err, "building") {
					t.Errorf("%s: exit %d\n%s", ref, r.code, r.err)
				}
				contains(t, ref, r.err, want, "--devcontainer=off")
			}
		})
	}
}

// A session that is detached cannot ask about the layer with its agent: a person at a terminal is asked before, and
// without one the start is refused, with what to do. It does not go on without the agent.
func TestADetachedSessionHasAnAnswerAboutItsLayer(t *testing.T) {
	u := composingFor(t, "podman", recipes.Base(), stub.Script{}, interactives["codex"].connector)
	recipes.Need(t, "podman", recipes.Agent("codex"))
	u.write(".devcontainer/devcontainer.json", image(`{"image": "BASE"}`))
	launch := func(flags ...string) *exec.Cmd {
		args := append([]string{"launch", "--detach", "--sandbox=podman", "--keep=false", "--dir", u.project}, u.reach()...)
		return u.command(append(append(args, flags...), "codex", "--", "--version")...)
	}
	r := finish(t, launch("--trust-project"))
	if r.code != 1 || r.out != "" {
		t.Errorf("without a terminal: exit %d, %q\n%s", r.code, r.out, r.err)
	}
	contains(t, "the refusal", r.err, "a person must agree to add it as one more layer",
		"aileron sandbox build --agent codex --dir ")
	s := newScreen(t, launch())
	s.waitFor("addaileron'sasonemorelayer?")
	s.Keys("n\r")
	s.Wait()
	if !strings.Contains(s.Shown(), "itwasdeclined") || strings.Contains(s.Shown(), "sessionattach") {
		t.Errorf("it shows %q", s.Shown())
	}
	if list := u.must("session", "list").out; strings.Contains(list, "running") {
		t.Errorf("the sessions are\n%s", list)
	}
	if left := u.leftovers(); left != "" {
		t.Errorf("left: %s", left)
	}
}
