package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/e2e/recipes"
	"github.com/ALRubinger/aileron/e2e/stub"
)

// Real agents finish a prompt without an engine, as an ordinary user who has installed them for himself, with keys that
// they never see. They are those of aileron's images.
func TestAgentsFinishAPromptNatively(t *testing.T) {
	for _, name := range []string{"claude", "opencode with anthropic"} {
		t.Run(name, func(t *testing.T) {
			if name != "claude" {
				harness.Turn(t)
			}
			finishesAPromptNatively(t, prompts[name])
		})
	}
}

func finishesAPromptNatively(t *testing.T, a prompted) {
	if os.Geteuid() != 0 {
		harness.Need(t, "root: the test runs aileron as another user")
	}
	u := newUser(t, stub.Script{Command: "curl -sS https://api.github.com/user | tee out.txt; echo TOOL-RAN", Hold: true},
		a.connector, "github")
	if a.config != "" {
		must.Do(t, os.WriteFile(filepath.Join(u.project, a.agent+".json"), []byte(a.config), 0o644))
	}
	dir := filepath.Dir(u.project)
	programs := filepath.Join(dir, "programs")
	must.Do(t, os.Mkdir(programs, 0o755))
	takeProgram(t, a.agent, programs)
	roots := filepath.Join(dir, "roots.pem")
	harness.Copy(t, u.origin.Roots, roots)
	u.origin.Roots = roots
	id := strconv.Itoa(harness.RootlessUser)
	if out, err := exec.Command("chown", "-R", id+":"+id, dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	must.Do(t, os.Chmod(filepath.Dir(binary), 0o711)) // root's until now
	flags := append([]string{"launch", "--sandbox=native", "--keep=false", "--dir", u.project}, u.reach()...)
	as := func(args ...string) *exec.Cmd {
		cmd := u.command(args...)
		cmd.Dir = u.project
		cmd.Env = append(cmd.Env, "PATH="+programs+":/usr/bin:/bin", "HOME="+dir)
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Credential: &syscall.Credential{Uid: harness.RootlessUser, Gid: harness.RootlessUser}}
		return cmd
	}
	cmd := as(append(append(flags, a.agent, "--"), a.args...)...)
	u.finishesItsPrompt(a, cmd, func() {})
}

// takeProgram copies the program of an agent out of its image.
func takeProgram(t *testing.T, agent, to string) {
	t.Helper()
	harness.NeedEngine(t, "podman")
	image := recipes.Agent(agent)
	recipes.Need(t, "podman", image)
	podman := func(args ...string) string {
		cmd := exec.Command("podman", args...)
		cmd.Env = append(os.Environ(), harness.EngineEnv(t)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("podman %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	id := podman("create", "--network=none", image.Ref, "/")
	defer podman("rm", "--force", id)
	podman("cp", id+":/usr/local/bin/"+agent, filepath.Join(to, agent))
}
