package main

import (
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/launch"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/home"
)

// unlockedFirst calls unlockFirst for a session with a passphrase file, and returns whether the vault is open then.
func (o owner) unlockedFirst(file string) (bool, error) {
	o.t.Helper()
	a := cli.New(&console.Console{Stdin: strings.NewReader("")},
		&home.Dir{Environ: func(k string) string { return o.env[k] }, Flag: o.Flag, VaultOptions: cheapVaults()})
	opts := &cli.SessionOptions{PassphraseFile: file}
	err := launch.UnlockFirst(o.t.Context(), a, opts)
	return opts.Opened != nil && opts.Opened.Unlocked(), err
}

// The vault is opened before an image is built, if the session needs it: a wrong passphrase is found at once.
func TestTheVaultIsOpenedBeforeAnImageIsBuilt(t *testing.T) {
	o := withConnectors(t)
	want := func(when string, open bool, failure string, file string) {
		t.Helper()
		got, err := o.unlockedFirst(file)
		if got != open || (err == nil) != (failure == "") || err != nil && !strings.Contains(err.Error(), failure) {
			t.Errorf("%s: open %v, %v; want %v, %q", when, got, err, open, failure)
		}
	}
	want("without a vault", false, "", "")
	o.ok("vault", "init")
	want("without a binding", false, "", "")
	o.ok("binding", "setup", githubFQN, "--secret-file", o.file("token", testToken))
	want("with a binding", true, "", "")
	want("with a wrong passphrase", false, "the passphrase is wrong", o.file("wrong", "a wrong passphrase"))
	pipe := filepath.Join(t.TempDir(), "pipe")
	must.Do(t, unix.Mkfifo(pipe, 0o600))
	want("with a pipe, for which the session waits", false, "", pipe)
	o.ok("vault", "lock")
	want("locked for all", false, "", "")
	o.ok("vault", "unlock")
	o.env = nil
	want("without a passphrase", false, "none was given", "")
	o.ok("connector", "remove", githubFQN)
	want("without the connector", false, "", "")
}

// A sandbox fails for its passphrase before it looks for an engine or an image.
func TestASandboxAsksForThePassphraseFirst(t *testing.T) {
	o := withConnectors(t)
	o.ok("vault", "init")
	o.ok("binding", "setup", githubFQN, "--secret-file", o.file("token", testToken))
	o.env = nil
	t.Setenv("PATH", t.TempDir()) // no engine
	o.fails("none was given", "sandbox", "run", "--", "true")
	o.fails("none was given", "launch", "claude")
}
