package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/e2e/stub"
)

// A program that prints a credential runs on this host while the sandbox can write to the project: it is not one of the
// project, although PATH leads there and it runs while a session of the project begins.
func TestAProgramThatPrintsACredentialIsNoneOfTheProject(t *testing.T) {
	t.Parallel()
	u := newUser(t, stub.Script{}, "github")
	mine := filepath.Join(filepath.Dir(u.project), "bin")
	must.Do(t, os.Mkdir(mine, 0o755))
	program := func(dir, prints string) {
		must.Do(t, os.WriteFile(filepath.Join(dir, "print-token"), []byte("#!/bin/sh\necho '"+prints+"'\n"), 0o755))
	}
	program(mine, secret)
	inPath := "PATH=" + u.project + ":" + mine + ":" + os.Getenv("PATH")
	bind := u.command("binding", "rebind", "bearer/aileron-connector-github/work", "--secret-exec", "print-token")
	bind.Env = append(bind.Env, inPath)
	if r := finish(t, bind); r.code != 0 {
		t.Fatalf("exit %d\n%s%s", r.code, r.out, r.err)
	}
	program(u.project, "a token of the agent")
	needPodman(t)
	box := u.command(append([]string{"sandbox", "run", "--sandbox=podman", "--dir", u.project},
		append(u.reach(), "--", "curl", "-sS", "https://"+stub.GitHub+"/user")...)...)
	box.Env, box.Dir = append(box.Env, inPath), u.project
	r := finish(t, box)
	if seen := u.origin.Seen(); r.code != 0 || len(seen) != 1 || seen[0].Auth() != "Bearer "+secret {
		t.Errorf("exit %d, and the service got %v\n%s%s", r.code, seen, r.out, r.err)
	}
}
