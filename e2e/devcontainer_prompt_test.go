package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/e2e/recipes"
	"github.com/ALRubinger/aileron/e2e/stub"
)

// A real agent works in a devcontainer that is built on its image: its tool calls an operation, in the project's place,
// with its variables and after its commands, and neither key is in what it printed.
func TestAgentsCallAnOperationInADevcontainer(t *testing.T) {
	for _, engine := range []string{"podman", "docker"} {
		for _, name := range []string{"claude", "opencode with anthropic"} {
			t.Run(engine+"/"+name, func(t *testing.T) {
				harness.PodmanIsEnough(t, engine)
				a := prompts[name]
				u := composingFor(t, engine, recipes.Agent(a.agent), stub.Script{Command: "github user.get | tee out.txt; " +
					"echo $AILERON_SANDBOX_TIER $WORD $PWD $(cat made /opt/word) >where.txt; echo TOOL-RAN"}, a.connector, "github")
				u.write(".devcontainer/devcontainer.json", `{"build": {"dockerfile": "Dockerfile"},
					"containerEnv": {"OF": "file"}, "remoteEnv": {"WORD": "of-the-${containerEnv:OF}"},
					"postCreateCommand": "echo commanded >made"}`)
				u.write(".devcontainer/Dockerfile", "ARG BASE\nFROM ${BASE}\nUSER root\nRUN echo built >/opt/word\nUSER agent\n")
				if a.config != "" {
					u.write(a.agent+".json", a.config)
				}
				args := append([]string{"launch", "--sandbox=" + engine, "--keep=false", "--trust-project", "--dir", u.project},
					u.reach()...)
				r := u.run(append(append(args, a.agent, "--"), a.args...)...)
				if r.code != 0 {
					t.Fatalf("exit %d\n%s\n%s", r.code, r.out, r.err)
				}
				contains(t, "what the agent said", r.out, "All done, says the stub.")
				where := string(must.Get(os.ReadFile(filepath.Join(u.project, "where.txt")))(t))
				want := "devcontainer of-the-file /workspaces/" + filepath.Base(u.project) + " commanded built\n"
				if where != want {
					t.Errorf("the tool ran in %q, want %q", where, want)
				}
				if out := must.Get(os.ReadFile(filepath.Join(u.project, "out.txt")))(t); !strings.Contains(string(out),
					"octo-stand-in") {
					t.Errorf("the operation returned %q", out)
				}
				if strings.Contains(r.out+r.err, secret[:16]) || strings.Contains(r.out+r.err, modelKey[:16]) {
					t.Error("a secret is in the output")
				}
				u.checkWhatArrived(a)
				u.checkRows(a)
				if left := u.leftovers(); left != "" {
					t.Errorf("left: %s", left)
				}
			})
		}
	}
}
