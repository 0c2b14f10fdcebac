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

// From nothing: setup takes the secrets from files, one unlock serves the day, and a launch asks for nothing.
func TestSetupAndOneUnlockAreAllThatALaunchNeeds(t *testing.T) {
	const engine = "podman"
	harness.NeedEngine(t, engine)
	a := prompts["opencode with openai"]
	recipes.Need(t, engine, recipes.Agent(a.agent))
	u := newUser(t, stub.Script{Command: "curl -sS https://api.github.com/user | tee out.txt; echo TOOL-RAN"})
	file := func(name, text string) string {
		path := filepath.Join(filepath.Dir(u.home), name)
		must.Do(t, os.WriteFile(path, []byte(text+"\n"), 0o600))
		return path
	}
	must.Do(t, os.WriteFile(filepath.Join(u.project, a.agent+".json"), []byte(a.config), 0o644))
	opens := file("passphrase", passphrase)
	run := func(args ...string) result {
		t.Helper()
		cmd := u.command(args...)
		cmd.Env = append(cmd.Env, "AILERON_VAULT_PASSPHRASE=") // the last one counts
		return finish(t, cmd)
	}
	must := func(args ...string) result {
		t.Helper()
		r := run(args...)
		if r.code != 0 {
			t.Fatalf("aileron %s: exit %d\n%s%s", strings.Join(args, " "), r.code, r.out, r.err)
		}
		return r
	}
	setup := []string{"setup", a.agent, "--yes", "--sandbox=" + engine, "--key-file", file("key", modelKey),
		"--github-token-file", file("token", secret), "--passphrase-file", opens}
	for range 2 { // the second run finds everything there
		if r := must(setup...); r.out != "aileron launch --sandbox="+engine+" "+a.agent+"\n" {
			t.Errorf("setup prints %q\n%s", r.out, r.err)
		}
	}
	launch := append(append([]string{"launch", "--sandbox=" + engine, "--keep=false",
		"--dir", u.project}, u.reach()...), a.agent, "--")
	launch = append(launch, a.args...)
	if r := run(launch...); r.code != 1 || !strings.Contains(r.err, "there is no terminal to ask on") {
		t.Errorf("a launch without the passphrase ends with %d: %s", r.code, r.err)
	}
	must("vault", "unlock", "--for", "1h", "--passphrase-file", opens)
	t.Cleanup(func() { run("vault", "lock") })
	r := must(launch...)
	contains(t, "what the agent said", r.out, "All done, says the stub.")
	if out, err := os.ReadFile(filepath.Join(u.project, "out.txt")); err != nil ||
		!strings.Contains(string(out), "octo-stand-in") {
		t.Errorf("the tool's output: %q, %v", out, err)
	}
	if strings.Contains(r.out+r.err, secret[:16]) || strings.Contains(r.out+r.err, modelKey[:16]) {
		t.Error("a secret is in the output")
	}
	// A sandbox whose project contains the home does not see the socket at which the key is held.
	r = must("sandbox", "run", "--sandbox="+engine, "--dir", filepath.Dir(u.home), "--",
		"sh", "-c", `ls; find / -xdev -name "vault-*.sock" 2>/dev/null; find . -name "*.sock"; ls -A h`)
	if strings.Contains(r.out, ".sock") || strings.Contains(r.out, "vault") || !strings.Contains(r.out, "passphrase") {
		t.Errorf("the sandbox sees %q", r.out)
	}
	if left := u.leftovers(); left != "" {
		t.Errorf("containers are left: %s", left)
	}
}
