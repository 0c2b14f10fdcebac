package main

import (
	"os/exec"
	"strings"
	"testing"
)

// The passphrase is asked for on the terminal of the shell, although stdout is its pipe, and no process that is left
// has the terminal or the pipe open: the shell goes on, and the terminal ends with it.
func TestAShellThatDetachesAProxyIsAskedForThePassphrase(t *testing.T) {
	o := newOwner(t)
	o.ok("connector", "install", exampleGitHub, "--yes")
	o.ok("binding", "setup", githubFQN, "--secret-file", o.file("token", githubToken))
	const script = `eval "$(aileron proxy --detach --env)"; echo "set: $AILERON_SESSION_ID"`
	for name, args := range map[string][]string{
		"bash": {"-c", script}, "bash -i": {"--norc", "-i", "-c", script}, "zsh": {"-f", "-c", script},
		"fish": {"--no-config", "-c", script},
	} {
		t.Run(name, func(t *testing.T) {
			shell, _, _ := strings.Cut(name, " ")
			if _, err := exec.LookPath(shell); err != nil {
				t.Skipf("there is no %s; scripts/prepare --tests installs it", shell)
			}
			o := o
			o.t, o.env = t, map[string]string{"AILERON_HOME": o.Flag}
			cmd := o.command(shell, args...)
			shown, code := o.dialogueOf(cmd, []string{testPassphrase + "\n"})
			_, id, _ := strings.Cut(shown, "set: ")
			id = strings.TrimSpace(id)
			if code != 0 || id == "" || strings.Count(shown, "passphrase of the vault") != 1 {
				t.Fatalf("it ends with %d: %s", code, shown)
			}
			if show := o.ok("session", "show", id); !strings.Contains(show, "state    running\n") {
				t.Errorf("session show prints %s", show)
			}
			o.ok("session", "stop", id)
			until(t, "the session ends", func() bool {
				return strings.Contains(o.ok("session", "show", id), "state    ended\n")
			})
		})
	}
}
