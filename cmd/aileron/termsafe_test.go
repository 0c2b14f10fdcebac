package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/termsafe"
)

// hostile is what a name can hold that a terminal must not get, and none of it
// is what a shell or a file system minds.
const hostile = "a\x1b[2J\u009b31m\u202e\u2066\u200f\u061c\u200b\u2028\x7fz"

// checkSafe reports what of text would reach a terminal as it is.
func checkSafe(t *testing.T, what, text string) {
	t.Helper()
	for _, r := range text {
		if termsafe.Unsafe(r) || r == '\ufffd' {
			t.Errorf("%+q prints %U:\n%+q", what, r, text)
			return
		}
	}
}

func TestWhatIsPrintedCannotControlATerminal(t *testing.T) {
	o := newOwner(t)
	dir := filepath.Join(t.TempDir(), hostile)
	must.Do(t, os.Mkdir(dir, 0o700))
	script := filepath.Join(dir, "run\n"+hostile)
	must.Do(t, os.WriteFile(script, []byte("#!/bin/sh\nexit 0\n"), 0o700))
	spec := filepath.Join(dir, "aileron.connector.v1.json")
	must.Do(t, os.WriteFile(spec, []byte(`{"`+"\u202e\u009b"+`":1}`), 0o600))
	for _, args := range [][]string{
		{"--" + hostile}, {hostile}, {"vault", hostile}, {"help", hostile}, {"audit", "list", "--since", hostile},
		{"--log-level", hostile, "vault", "status"},
		{"spec", "validate", spec}, {"spec", "validate", dir}, {"spec", "validate", hostile},
		{"spec", "match", "GET", "https://" + hostile}, {"connector", "install", dir, "--yes"},
		{"connector", "install", hostile}, {"connector", "show", hostile}, {"binding", "inspect", hostile},
		{"binding", "setup", hostile}, {"run", "--", hostile}, {"run", "--", script},
		{"run", "--resolve", hostile, "--", "true"}, {"--home", filepath.Join(spec, hostile), "vault", "status"},
		{"session", "show", hostile}, {"session", "list"}, {"audit", "list"}, {"audit", "export", "--format", "csv"},
		{"vault", "init", "--passphrase-file", hostile}, {"sandbox", "check", "--agent", hostile, "--dir", hostile},
	} {
		for _, format := range []string{"", "--json"} {
			call := args
			if format != "" {
				call = append([]string{format}, args...)
			}
			out, errs, code := o.run(call...)
			checkSafe(t, strings.Join(call, " "), out)
			checkSafe(t, strings.Join(call, " "), errs)
			if code != 0 && errs == "" && out != "" {
				continue // a verdict
			}
			if code != 0 && !isFailure(errs) {
				t.Errorf("%+q ends with %d and prints %q, want a failure", call, code, errs)
			}
			if format != "" && code != 0 && !json.Valid([]byte(errs)) {
				t.Errorf("%+q prints an error that is no JSON: %s", call, errs)
			}
		}
	}
}

func TestJSONForATerminalKeepsItsMeaning(t *testing.T) {
	o := newOwner(t)
	script := filepath.Join(t.TempDir(), hostile)
	must.Do(t, os.WriteFile(script, []byte("#!/bin/sh\nexit 0\n"), 0o700))
	o.ok("run", "--", script)
	out := o.ok("session", "list", "--json")
	var list []struct{ Agent string }
	if err := json.Unmarshal([]byte(out), &list); err != nil || len(list) != 1 || list[0].Agent != script {
		t.Errorf("session list --json prints %q, %v; want the agent %+q", out, err, script)
	}
	if !strings.Contains(out, `\u202e`) || !strings.Contains(out, `\u009b`) {
		t.Errorf("session list --json prints %q without \\u escapes", out)
	}
	id := regexp.MustCompile(`[0-9A-Z]{26}`).FindString(out)
	for _, args := range [][]string{{"session", "show", id}, {"session", "list"}} {
		if out := o.ok(args...); !strings.Contains(out, `\u202e`) {
			t.Errorf("%q prints %q without the name's escapes", args, out)
		}
	}
}

func TestTheOutputOfTheCommandPassesUntouched(t *testing.T) {
	o := newOwner(t)
	if out := o.ok("run", "--", "printf", "%s", hostile); out != hostile {
		t.Errorf("the command's output arrives as %+q, want %+q", out, hostile)
	}
}

// Scripts that a shell evaluates must hold nothing that is escaped.
func TestCompletionScriptsStayAsTheyAre(t *testing.T) {
	o := newOwner(t)
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if out := o.ok("completion", shell); strings.Contains(out, `\u00`) || strings.Contains(out, "\ufffd") {
			t.Errorf("the completion script for %s has escapes in it", shell)
		}
	}
}

// TestNothingIsPrintedPastTheEscapes holds the one way out: the process's own
// streams are named where the app is made, and the command's streams where a
// command is run, and where a table with colours has escaped its cells.
func TestNothingIsPrintedPastTheEscapes(t *testing.T) {
	direct := regexp.MustCompile(`\bos\.Std(out|err)\b|\bfmt\.Print(f|ln)?\(`)
	child := regexp.MustCompile(`\bchild\.std(out|err)\b`)
	runCommands := []string{"app.go", "launcher.go", "proxy.go", "audit_table.go", // those of a detached command:
		"detach.go", "session_attach.go", "session_logs.go",
		"action_run.go"} // a response as it is, never to a terminal
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		raw := must.Get(os.ReadFile(name))(t)
		if got := direct.Find(raw); got != nil && name != "app.go" && name != "main.go" {
			t.Errorf("%s uses %s; print to the app's stdout or stderr", name, got)
		}
		if child.Match(raw) && !slices.Contains(runCommands, name) {
			t.Errorf("%s uses the streams of the command that aileron runs; print to the app's", name)
		}
	}
}
