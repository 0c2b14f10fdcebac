package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/home"
)

func TestEveryCommandHasAManualPage(t *testing.T) {
	c, manDir := newRunner(t), t.TempDir()
	c.ok("man", manDir)
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		page := filepath.Join(manDir, "man/man1", strings.ReplaceAll(cmd.CommandPath(), " ", "-")+".1")
		text, err := os.ReadFile(page)
		switch {
		case !cmd.IsAvailableCommand():
			if err == nil {
				t.Errorf("%s is hidden and has a page", cmd.CommandPath())
			}
		case err != nil:
			t.Error(err)
		case !strings.Contains(string(text), `.TH "AILERON" "1"`):
			t.Errorf("%s is not a manual page:\n%s", page, text)
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	root := newRootCommand(cli.New(&console.Console{}, &home.Dir{}))
	for _, cmd := range root.Commands() {
		walk(cmd)
	}
}

// The script is what a person's bash sources; the program behind it is a process, as in a shell.
func TestBashCompletes(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash")
	}
	manDir := t.TempDir()
	newRunner(t).ok("man", manDir)
	for line, want := range map[string]string{
		"aileron au":                         "audit",
		"aileron audit v":                    "verify",
		"aileron launch open":                "opencode",
		"aileron sandbox w":                  "", // the warden's command is hidden
		"aileron vault init --passphrase-fi": "--passphrase-file",
	} {
		// bash-completion may not be installed, and bash allows compopt while it completes only.
		script := `compopt() { :; }
		_init_completion() { cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}
			words=("${COMP_WORDS[@]}") cword=$COMP_CWORD; }
		source "$1"
		COMP_LINE=$2 COMP_POINT=${#2} COMP_WORDS=($2) COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMP_TYPE=9
		__start_aileron
		printf '%s\n' "${COMPREPLY[@]%% *}"`
		args := []string{"--norc", "-c", script, "bash", filepath.Join(manDir, "completions/aileron.bash"), line}
		cmd := exec.CommandContext(t.Context(), bash, args...)
		cmd.Env = append(os.Environ(), "AILERON_HOME="+manDir)
		out, err := cmd.CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != want {
			t.Errorf("bash completes %q to %q, %v; want %q", line, got, err, want)
		}
	}
}
