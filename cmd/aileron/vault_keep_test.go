package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/home"
	"github.com/ALRubinger/aileron/vault"
	"github.com/ALRubinger/aileron/vault/keeper"
)

// program returns a command of the built aileron in the home of o, with o's passphrase.
func (o owner) program(args ...string) *exec.Cmd {
	o.t.Helper()
	return o.command("aileron", append([]string{"--home", o.Flag}, args...)...)
}

// command returns a command with the variables of o.
func (o owner) command(name string, args ...string) *exec.Cmd {
	o.t.Helper()
	cmd := exec.CommandContext(o.t.Context(), name, args...)
	cmd.Env = os.Environ()
	for k, v := range o.env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	return cmd
}

// The process that holds the key shows it nowhere, and belongs to no terminal, directory or pipe of its starter.
func TestTheProcessThatHoldsTheKeyIsItsOwn(t *testing.T) {
	o, held := kept(t)
	read := func(name string) []byte {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", held.PID, name))
		if err != nil && os.Geteuid() == 0 {
			t.Error(err)
		}
		return text
	}
	v := vault.Open(filepath.Join(o.Flag, "vault"), cheapVaults()...)
	must.Do(t, v.Unlock([]byte(testPassphrase)))
	key, err := v.Key()
	must.Do(t, err)
	for _, name := range []string{"cmdline", "environ"} {
		if text := read(name); bytes.Contains(text, key) || bytes.Contains(text, []byte(testPassphrase)) {
			t.Errorf("%s of the process has the key or the passphrase", name)
		}
	}
	if limits := read("limits"); !regexp.MustCompile(`Max core file size +0 `).Match(limits) {
		t.Errorf("the process may write a core file: %s", limits)
	}
	if status := read("status"); !regexp.MustCompile(`VmLck:\s+[1-9]`).Match(status) {
		t.Errorf("the process has locked no memory: %s", status)
	}
	if sid, _, errno := syscall.Syscall(syscall.SYS_GETSID, uintptr(held.PID), 0, 0); errno != 0 || int(sid) != held.PID {
		t.Errorf("the process is of session %d, %v; want its own", sid, errno)
	}
	if os.Geteuid() == 0 {
		if dir, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", held.PID)); err != nil || dir != "/" {
			t.Errorf("the process is in %s, %v", dir, err)
		}
	}
	if got, err := keeper.Fetch(t.Context(), o.Flag); err != nil || !bytes.Equal(got, key) {
		t.Errorf("fetched another key, %v", err)
	}
	o.ok("vault", "lock")
}

// kept returns an owner whose vault is unlocked for an hour, and the process that holds its key.
func kept(t *testing.T) (owner, keeper.State) {
	t.Helper()
	o := newOwner(t)
	must.Do(t, os.Chmod(os.Getenv("XDG_RUNTIME_DIR"), 0o700))
	o.ok("vault", "init")
	if out, err := o.program("vault", "unlock", "--for", "1h").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	held := must.Get(keeper.Ask(t.Context(), o.Flag))(t)
	t.Cleanup(func() { _ = syscall.Kill(held.PID, syscall.SIGTERM) })
	return o, held
}

// The mark of a lock ends the process by itself: the command that left it may have been killed.
func TestALockedVaultsKeyIsNotKept(t *testing.T) {
	o, _ := kept(t)
	must.Do(t, vault.Open(filepath.Join(o.Flag, "vault"), cheapVaults()...).SetLocked(true))
	if _, err := keeper.Fetch(t.Context(), o.Flag); !errors.Is(err, keeper.ErrNone) {
		t.Errorf("the key of a locked vault is given out: %v", err)
	}
}

func TestAVaultThatIsRemovedTakesItsKeyWithIt(t *testing.T) {
	o, _ := kept(t)
	must.Do(t, os.RemoveAll(filepath.Join(o.Flag, "vault")))
	if _, err := keeper.Fetch(t.Context(), o.Flag); !errors.Is(err, keeper.ErrNone) {
		t.Errorf("the key of a vault that was removed is given out: %v", err)
	}
}

// A held key is no proof of who changes the passphrase.
func TestAHeldKeyDoesNotChangeThePassphrase(t *testing.T) {
	o, _ := kept(t)
	o.env = nil
	o.fails("none was given", "vault", "passwd", "--new-passphrase-file", o.file("fresh", "a new passphrase"))
}

// A key of the vault that was here before opens nothing, and is no obstacle.
func TestAHeldKeyOfAnotherVaultIsNotUsed(t *testing.T) {
	o := withConnectors(t)
	must.Do(t, os.Chmod(os.Getenv("XDG_RUNTIME_DIR"), 0o700))
	o.ok("vault", "init")
	a := cli.New(&console.Console{}, &home.Dir{Flag: o.Flag,
		VaultOptions: cheapVaults()})
	serveHeld(t, o.Flag, "AGE-SECRET-KEY-1QQQSYQCYQ5RQWZQFPG9SCRGWPUGPZYSNZS23V9CCRYDPK8QARC0SWL8VNN")
	if v, held, err := a.HeldVault(t.Context(), ""); err != nil || held || v.Unlocked() {
		t.Errorf("a key of another vault opens it: %v, %v", held, err)
	}
	v := a.VaultAt(o.Flag)
	must.Do(t, v.Unlock([]byte(testPassphrase)))
	key, err := v.Key()
	must.Do(t, err)
	must.Do(t, keeper.End(t.Context(), o.Flag))
	serveHeld(t, o.Flag, string(key))
	if v, held, err := a.HeldVault(t.Context(), ""); err != nil || !held || !v.Unlocked() {
		t.Errorf("the key of the vault does not open it: %v, %v", held, err)
	}
}

// serveHeld holds a key for the vault of home in this process, until the test ends or [keeper.End] is called.
func serveHeld(t *testing.T, home, text string) {
	t.Helper()
	key, err := keeper.ReadKey(strings.NewReader(text))
	must.Do(t, err)
	ready, ended := make(chan struct{}), make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		ended <- keeper.Serve(ctx, key, keeper.Options{Home: home, Until: time.Now().Add(time.Hour),
			Current: func() bool { return true }, Ready: func() { close(ready) }})
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	select {
	case <-ready:
	case err := <-ended:
		ended <- err
		t.Fatal(err)
	}
}

// Setup proposes to unlock the vault for the day, unless it is unlocked.
func TestSetupProposesNoSecondUnlock(t *testing.T) {
	const proposal = "aileron vault unlock --for 8h"
	o, _ := kept(t)
	args := []string{"setup", "claude", "--yes", "--sandbox=off", "--key-file", o.file("key", anthropicKey)}
	for _, want := range []bool{false, true} {
		out, err := o.program(args...).CombinedOutput()
		if err != nil || strings.Contains(string(out), proposal) != want {
			t.Errorf("it proposes to unlock the vault, want %v: %v\n%s", want, err, out)
		}
		o.ok("vault", "lock")
		o.ok("vault", "unlock")
	}
}
