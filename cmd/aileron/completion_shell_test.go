package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

// Each shell loads its script and completes from it, with what is in the home. zsh completes only at a prompt: that it
// loads the script, and what the program responds to it, is all that is checked there.
func TestShellsCompleteWithTheirScripts(t *testing.T) {
	const bash = `. /usr/share/bash-completion/bash_completion; . "$1"; shift
compopt() { :; }
for line; do
	COMP_LINE=$line COMP_POINT=${#line}; read -ra COMP_WORDS <<<"$line"; [[ $line == *" " ]] && COMP_WORDS+=("")
	COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMPREPLY=(); __start_aileron
	echo "$line:" "${COMPREPLY[@]}" ""
done`
	const fish = `source $argv[1]; for line in $argv[2..]; echo $line: (complete -C $line) ""; end`
	const zsh = `autoload -U compinit; compinit -u -D; source $1; shift; [[ $_comps[aileron] == _aileron ]] || exit 1
for line; do echo $line: ${${(f)"$(${=line/aileron/aileron __complete} "")"}%%$'\t'*} ""; done`
	o := newOwner(t)
	o.ok("setup", "claude", "--yes", "--sandbox=off", "--key-file", o.file("key", anthropicKey))
	o.ok("connector", "install", "npm", "--yes")
	want := map[string][]string{
		"aileron launch ":            {" claude ", " codex ", " opencode "},
		"aileron launch --egress ":   {" deny ", " passthrough "},
		"aileron setup --provider ":  {" anthropic ", " openrouter "},
		"aileron connector show ":    {" anthropic ", " npm "},
		"aileron binding inspect ":   {" " + anthropicBinding + " "},
		"aileron setup --sandbox ":   {" podman ", " off "},
		"aileron connector install ": {" github ", " pypi "},
	}
	for shell, c := range map[string]struct{ needs, script string }{
		"bash": {"/usr/share/bash-completion/bash_completion", bash}, "fish": {"/usr/bin/fish", fish},
		"zsh": {"/usr/bin/zsh", zsh},
	} {
		t.Run(shell, func(t *testing.T) {
			if _, err := os.Stat(c.needs); err != nil {
				t.Skipf("there is no %s; scripts/prepare --tests installs it", c.needs)
			}
			file := filepath.Join(t.TempDir(), "aileron."+shell)
			must.Do(t, os.WriteFile(file, []byte(o.ok("completion", shell)), 0o600))
			args := []string{"-c", c.script}
			if shell != "fish" {
				args = append(args, "sh")
			}
			args = append(args, file)
			for line := range want {
				args = append(args, line)
			}
			cmd := exec.CommandContext(t.Context(), shell, args...)
			cmd.Env = append(os.Environ(), "AILERON_HOME="+o.Flag, "HOME="+t.TempDir())
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			for line := range strings.Lines(string(out)) {
				asked, got, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
				for _, word := range want[asked+strings.Repeat(" ", 1-strings.Count(asked[len(asked)-1:], " "))] {
					if !strings.Contains(got, word) {
						t.Errorf("%q completes to %q, without %q", asked, got, word)
					}
				}
			}
			if strings.Count(string(out), "\n") != len(want) {
				t.Errorf("it printed %q", out)
			}
		})
	}
}
