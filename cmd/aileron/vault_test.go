package main

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/home"
	"github.com/ALRubinger/aileron/internal/system"
)

func TestVaultNeedsAPassphrase(t *testing.T) {
	o := newOwner(t)
	o.env = nil
	o.fails("AILERON_VAULT_PASSPHRASE", "vault", "init")
	o.fails("8 to 1024 bytes", "vault", "init", "--passphrase-file", o.file("empty", ""))
	o.fails("8 to 1024 bytes", "vault", "init", "--passphrase-file", o.file("short", "short\n"))
	o.fails("more than 1024 bytes", "vault", "init", "--passphrase-file", o.file("long", strings.Repeat("x", 1<<20)))
	o.fails("is a directory", "vault", "init", "--passphrase-file", t.TempDir())
	o.fails("no such file", "vault", "init", "--passphrase-file", "/nonexistent")
	if _, errs, code := o.run("vault", "init", "--keyring", "--passphrase-file",
		o.file("good", testPassphrase)); code != 1 || !strings.Contains(errs, "no OS keyring") {
		t.Errorf("init without a keyring ends with %d: %s", code, errs)
	}
	if got := decode[statusJSON](t, o.ok("vault", "status", "--json")); got.Initialised != true {
		t.Errorf("a missing keyring keeps the vault from being made: %+v", got)
	}
	o.fails("AILERON_VAULT_PASSPHRASE", "vault", "unlock")
}

// person answers each prompt on a terminal, as one that types.
func (o owner) person(answers []string, args ...string) (stderr string, code int) {
	o.t.Helper()
	_, stderr, code = o.converse(answers, args...)
	return stderr, code
}

func TestAPersonIsAskedForThePassphrase(t *testing.T) {
	o := newOwner(t)
	o.env = nil
	differ := []string{testPassphrase, testPassphrase + "x"}
	if errs, code := o.person(slices.Concat(differ, differ, differ), "vault", "init"); code != 1 ||
		strings.Count(errs, "the two entries differ") != 3 || !strings.HasPrefix(errs,
		"aileron: the vault's passphrase must have 8 to 1024 bytes") {
		t.Errorf("two that differ, three times, end with %d: %s", code, errs)
	}
	if errs, code := o.person(slices.Concat(differ, []string{"short", "short", testPassphrase, testPassphrase}),
		"vault", "init"); code != 0 || strings.Contains(errs, testPassphrase) ||
		strings.Count(errs, "try again") != 2 {
		t.Errorf("init ends with %d: %s", code, errs)
	}
	if errs, code := o.person([]string{"mistyped it", testPassphrase}, "vault", "unlock"); code != 0 ||
		strings.Contains(errs, testPassphrase) {
		t.Errorf("unlock ends with %d: %s", code, errs)
	}
}

// What was typed ahead of a question that is not asked any more is for no shell: it may be a passphrase.
func TestTypedAheadIsDiscardedByAnError(t *testing.T) {
	o := newOwner(t)
	o.env = nil
	keyboard, terminal, err := pty.Open()
	must.Do(t, err)
	defer keyboard.Close()
	defer terminal.Close()
	o.ok("vault", "init", "--passphrase-file", o.file("passphrase", testPassphrase))
	var errs bytes.Buffer
	a := cli.New(&console.Console{Stdin: terminal, Stdout: io.Discard},
		&home.Dir{VaultOptions: cheapVaults()})
	a.Stderr = writerFunc(func(p []byte) (int, error) {
		if bytes.HasSuffix(p, []byte(": ")) {
			must.Get(keyboard.WriteString("wrong\n" + testPassphrase + "\n"))(t)
		}
		return errs.Write(p)
	})
	if code := Main(t.Context(), []string{"--home", o.Flag, "vault", "unlock"}, a); code != 1 ||
		!strings.Contains(errs.String(), "is wrong") || strings.Count(errs.String(), "passphrase of the vault: ") != 3 {
		t.Errorf("three wrong passphrases end with %d: %s", code, errs.String())
	}
	// Now the shell reads.
	must.Get(keyboard.WriteString("ls\n"))(t)
	line := make([]byte, 100)
	if n, err := terminal.Read(line); err != nil || string(line[:n]) != "ls\n" {
		t.Errorf("the shell reads %q, %v", line[:n], err)
	}
}

// The answer of a fast hand must not be on the screen.
func TestTheEchoEndsBeforeTheQuestion(t *testing.T) {
	keyboard, terminal, err := pty.Open()
	must.Do(t, err)
	defer terminal.Close()
	defer keyboard.Close()
	asked := false
	a := cli.New(&console.Console{Stdin: terminal}, &home.Dir{})
	a.Stderr = writerFunc(func(p []byte) (int, error) {
		if now, err := system.ReadTermios(int(terminal.Fd())); !asked && (err != nil ||
			now.Lflag&unix.ECHO != 0) {
			t.Error("the terminal echoes while the question is shown")
		}
		if !asked {
			must.Get(keyboard.WriteString(testPassphrase + "\n"))(t)
		}
		asked = true
		return len(p), nil
	})
	if got, err := a.ReadUnseen(t.Context(), "passphrase"); err != nil || string(got) != testPassphrase || !asked {
		t.Errorf("read %d bytes, %v", len(got), err)
	}
	if now, err := system.ReadTermios(int(terminal.Fd())); err != nil || now.Lflag&unix.ECHO == 0 {
		t.Error("the echo does not come back")
	}
}

// A prompt that is broken off leaves the terminal as it was.
func TestInterruptedPromptRestoresTheEcho(t *testing.T) {
	o := newOwner(t)
	o.env = nil
	keyboard, terminal, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	defer keyboard.Close() // first, so that a reader sees the end
	fd := int(terminal.Fd())
	before := must.Get(term.GetState(fd))(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	a := cli.New(&console.Console{Stdin: terminal, Stdout: io.Discard},
		&home.Dir{})
	a.Stderr = writerFunc(func(p []byte) (int, error) {
		go func() { // the prompt stands there; break it off once the echo is off
			for ctx.Err() == nil {
				if now, err := term.GetState(fd); err != nil || *now != *before {
					cancel()
				}
			}
		}()
		return len(p), nil
	})
	code := Main(ctx, []string{"--home", o.Flag, "vault", "init"}, a)
	after := must.Get(term.GetState(fd))(t)
	if code != 130 || *after != *before {
		t.Errorf("it ends with %d, and the terminal is as before: %v", code, *after == *before)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// A command that changes something and prints no data confirms it on stderr.
func TestAChangeIsReported(t *testing.T) {
	o := newOwner(t)
	o.ok("connector", "install", exampleGitHub, "--yes")
	secret := o.file("token", "ghp-0123456789abcdef\n")
	name := strings.TrimSpace(o.ok("binding", "setup", githubFQN, "--secret-file", secret))
	o.env["AILERON_VAULT_NEW_PASSPHRASE"] = testPassphrase
	for _, w := range []struct{ call, want string }{
		{"binding rebind " + name + " --secret-file " + secret, name},
		{"vault lock", "vault locked"},
		{"vault unlock", "vault unlocked"},
		{"vault passwd", "passphrase changed"},
		{"binding revoke " + name, name},
	} {
		out, errs, code := o.run(strings.Fields(w.call)...)
		if code != 0 || out != "" || !strings.Contains(errs, w.want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("aileron %s ends with %d: %q, %q; want one line with %q", w.call, code, out, errs, w.want)
		}
	}
}
