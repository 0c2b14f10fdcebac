package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/protect"
)

// The exit codes are bash's.
func TestACommandThatCannotRunHasAShellsExitCode(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		must.Do(t, os.WriteFile(path, []byte(text), mode))
		return path
	}
	script := file("script", "#!/bin/sh\nexit 3\n", 0o700)
	plain := file("plain", "#!/bin/sh\n", 0o600)
	orphan := file("orphan", "#!"+dir+"/no-interpreter\n", 0o700)
	foreign := file("foreign", "\x7fELF of another machine", 0o700)
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	o := newOwner(t)
	for _, c := range []struct {
		name string
		code int
		said string
	}{
		{script, 3, ""},
		{"script", 3, ""},
		{"no-such-command", 127, "run no-such-command: there is no such command on PATH; hint: install it"},
		{filepath.Join(dir, "none"), 127, "there is no such file; hint: install it"},
		{orphan, 127, "its interpreter is not there"},
		{plain, 126, "plain is not executable; hint: check"},
		{"plain", 126, "plain is not executable; hint: check"},
		{dir, 126, "is not executable; hint: check"},
		{foreign, 126, "exec format error; hint: check"},
	} {
		_, errs, code := o.run("run", "--", c.name)
		if code != c.code || !strings.Contains(errs, c.said) || errs != "" && !isFailure(errs) {
			t.Errorf("run %s ends with %d and says %q, want %d and %q", c.name, code, errs, c.code, c.said)
		}
	}
}

// A script that probes for a command gets the shell's code also where the home
// cannot be used.
func TestAMissingCommandIsFoundOutBeforeTheHomeIsOpened(t *testing.T) {
	o := newOwner(t)
	must.Do(t, os.WriteFile(filepath.Join(o.Flag, "config.toml"), []byte("unknown = 1\n"), 0o600))
	if _, errs, code := o.run("run", "--", "no-such-command"); code != 127 || !strings.Contains(errs, "no such command") {
		t.Errorf("it ends with %d and says %q, want 127", code, errs)
	}
	if _, errs, code := o.run("run", "--", "true"); code != 1 || !strings.Contains(errs, "unknown key") {
		t.Errorf("a command that exists ends with %d and says %q, want 1 and the key", code, errs)
	}
}

// Both keep the passphrase from the command of aileron run: what protects the
// process, and what makes the command's environment.
func TestThePassphraseIsNotInherited(t *testing.T) {
	if slices.Contains(os.Args, "protected-child") {
		p := must.Get(protect.ProtectProcess())(t)
		if p.Getenv("AILERON_VAULT_PASSPHRASE") != testPassphrase {
			t.Error("aileron itself has lost the passphrase")
		}
		for _, entry := range os.Environ() {
			if strings.Contains(entry, testPassphrase) {
				t.Errorf("the environment still has %s", entry)
			}
		}
		return
	}
	o := newOwner(t)
	for _, name := range []string{"AILERON_VAULT_PASSPHRASE", "AILERON_VAULT_NEW_PASSPHRASE"} {
		t.Setenv(name, testPassphrase)
	}
	if out := o.ok("run", "--", "env"); strings.Contains(out, testPassphrase) || !strings.Contains(out, "AILERON_TOKEN=") {
		t.Errorf("the command's environment is %q", out)
	}
	args := []string{"-test.run=^TestThePassphraseIsNotInherited$", "protected-child"}
	child := exec.CommandContext(t.Context(), os.Args[0], args...)
	if out, err := child.CombinedOutput(); err != nil {
		t.Errorf("a protected process: %v\n%s", err, out)
	}
}
