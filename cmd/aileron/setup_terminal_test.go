package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/home"
)

// converse answers each question on a terminal in this process when it is shown, and fails if a secret is on stdout or
// stderr. At a question without an answer the input ends.
func (o owner) converse(answers []string, args ...string) (stdout, stderr string, code int) {
	o.t.Helper()
	keyboard, terminal, err := pty.Open()
	must.Do(o.t, err)
	defer keyboard.Close()
	defer terminal.Close()
	var out, errs bytes.Buffer
	a := cli.New(&console.Console{Stdin: terminal, Stdout: &out},
		&home.Dir{Environ: func(k string) string { return o.env[k] }, VaultOptions: cheapVaults()})
	a.Stderr = writerFunc(func(p []byte) (int, error) {
		if bytes.HasSuffix(p, []byte(": ")) || bytes.HasSuffix(p, []byte("] ")) {
			keys := "\x04"
			if len(answers) > 0 {
				keys, answers = answers[0]+"\n", answers[1:]
			}
			must.Get(keyboard.WriteString(keys))(o.t)
		}
		return errs.Write(p)
	})
	code = Main(o.t.Context(), append([]string{"--home", o.Flag}, args...), a)
	stdout, stderr = out.String(), errs.String()
	for _, secret := range []string{anthropicKey, githubToken, openaiKey, testPassphrase} {
		if strings.Contains(stdout+stderr, secret) {
			o.t.Errorf("a secret was printed: %s%s", stdout, stderr)
		}
	}
	return stdout, stderr, code
}

// breaksOff runs the program on a terminal of its own, answers questions as they are asked, and types end at the next.
func (o owner) breaksOff(answers []string, end string, args ...string) (shown string, code int) {
	o.t.Helper()
	var typed []string
	for _, line := range answers {
		typed = append(typed, line+"\n")
	}
	return o.dialogue(append(typed, end), args...)
}

// dialogue runs the program on a terminal of its own, and types the answer to each question when it is asked.
func (o owner) dialogue(typed []string, args ...string) (shown string, code int) {
	o.t.Helper()
	return o.dialogueOf(o.program(args...), typed)
}

// dialogueOf is dialogue with a command that runs the program. It ends a program that waits for more than is typed.
func (o owner) dialogueOf(cmd *exec.Cmd, typed []string) (shown string, code int) {
	o.t.Helper()
	keyboard, err := pty.Start(cmd)
	must.Do(o.t, err)
	defer keyboard.Close()
	var late atomic.Bool
	defer time.AfterFunc(patience, func() {
		late.Store(true)
		_ = cmd.Process.Kill()
	}).Stop()
	buf := make([]byte, 4096)
	for _, answer := range typed {
		for asked := len(shown); len(shown) == asked || !strings.HasSuffix(shown, ": ") && !strings.HasSuffix(shown, "] "); {
			n, err := keyboard.Read(buf)
			shown += string(buf[:n])
			if err != nil {
				o.t.Fatalf("it ended before it asked for %q: %s", answer, shown)
			}
		}
		must.Get(keyboard.WriteString(answer))(o.t)
	}
	for {
		n, err := keyboard.Read(buf)
		if shown += string(buf[:n]); err != nil {
			break // the terminal has no writer any more
		}
	}
	_ = cmd.Wait()
	if late.Load() {
		o.t.Errorf("it had to be killed after %v: %s", patience, shown)
	}
	for _, secret := range []string{anthropicKey, githubToken, testPassphrase} {
		if strings.Contains(shown, secret) {
			o.t.Errorf("a secret is on the screen: %s", shown)
		}
	}
	return shown, cmd.ProcessState.ExitCode()
}

// A person who launches an agent that has no key is asked for it, once, and for what else is unbound.
func TestALaunchAsksForWhatIsMissing(t *testing.T) {
	o := newOwner(t)
	o.env = nil
	bin := t.TempDir()
	agent := []byte("#!/bin/sh\necho the agent runs\n")
	must.Do(t, os.WriteFile(filepath.Join(bin, "claude"), agent, 0o700))
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	shown, code := o.dialogue([]string{"y\n", anthropicKey + "\n", "\n", testPassphrase + "\n", testPassphrase + "\n",
		"y\n"}, "launch", "--sandbox=off", "claude")
	if code != 0 || !strings.Contains(shown, "claude has no key for its model; set it up now? [Y/n]") ||
		!strings.Contains(shown, "the agent runs") || strings.Count(shown, "passphrase of the vault") != 2 {
		t.Fatalf("it ends with %d: %s", code, shown)
	}
	o.ok("connector", "install", exampleGitHub, "--yes")
	shown, code = o.dialogue([]string{"y\n", githubToken + "\n", testPassphrase + "\n"},
		"launch", "--sandbox=off", "claude")
	if code != 0 || !strings.Contains(shown, githubFQN+" has no credential; bind one now? [y/N]") ||
		!strings.Contains(shown, "the agent runs") {
		t.Fatalf("it ends with %d: %s", code, shown)
	}
	o.holds(map[string]string{anthropicBinding: anthropicKey, gitBinding: githubToken})
	// With everything bound it asks for the passphrase alone.
	if shown, code = o.dialogue([]string{testPassphrase + "\n"}, "launch", "--sandbox=off", "claude"); code != 0 ||
		strings.Contains(shown, "[") {
		t.Errorf("it ends with %d: %s", code, shown)
	}
	// Without a terminal nothing is asked.
	empty := newOwner(t)
	empty.env = nil
	if _, errs, code := empty.run("launch", "--sandbox=off", "claude"); code != 0 ||
		strings.Contains(errs, "[Y/n]") {
		t.Errorf("without a terminal it ends with %d: %s", code, errs)
	}
}

// An offer that is declined is not made at every launch.
func TestALaunchOffersOnceWhatIsDeclined(t *testing.T) {
	o := newOwner(t)
	o.env = nil
	bin := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(bin, "claude"), []byte("#!/bin/sh\necho the agent runs\n"), 0o700))
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	o.ok("connector", "install", exampleGitHub, "--yes")
	launch := []string{"launch", "--sandbox=off", "claude"}
	shown, code := o.dialogue([]string{"n\n", "\n"}, launch...)
	if code != 0 || !strings.Contains(shown, "this is not asked again; later: aileron setup claude\r\n") ||
		!strings.Contains(shown, "this is not asked again; later: aileron binding setup "+githubFQN+"\r\n") {
		t.Errorf("declined, it ends with %d: %s", code, shown)
	}
	if shown, code = o.dialogue(nil, launch...); code != 0 || strings.Contains(shown, "[y/N]") ||
		strings.Contains(shown, "[Y/n]") || !strings.Contains(shown, "the agent runs") {
		t.Errorf("the next launch ends with %d: %s", code, shown)
	}
}

// A secret that is pasted before its question is asked, or has a second line, is not on the screen, and no shell gets
// it.
func TestASecretThatIsTypedTooEarlyIsNotOnTheScreen(t *testing.T) {
	keyboard, terminal, err := pty.Open()
	must.Do(t, err)
	defer keyboard.Close()
	defer terminal.Close()
	a := cli.New(&console.Console{Stdin: terminal}, &home.Dir{})
	a.Stderr = writerFunc(func(p []byte) (int, error) { return keyboard.WriteString(anthropicKey + "\n") })
	talk, err := a.Converse()
	must.Do(t, err)
	typeAhead(t, keyboard, terminal, githubToken)
	if got, err := a.ReadUnseen(t.Context(), "key"); err != nil || string(got) != anthropicKey {
		t.Fatalf("read %d bytes, %v; want what was typed after the question", len(got), err)
	}
	typeAhead(t, keyboard, terminal, githubToken)
	a.DiscardTyped()
	talk.End()
	must.Get(terminal.WriteString("$ "))(t)
	shown := ""
	for buf := make([]byte, 4096); !strings.HasSuffix(shown, "$ "); {
		n := must.Get(keyboard.Read(buf))(t)
		shown += string(buf[:n])
	}
	if strings.TrimSpace(shown) != "$" {
		t.Errorf("the screen shows %q", shown)
	}
	// The echo is as it was, and the shell reads what is typed from now on.
	must.Get(keyboard.WriteString("ls\n"))(t)
	line := make([]byte, 100)
	if n, err := terminal.Read(line); err != nil || string(line[:n]) != "ls\n" {
		t.Errorf("the shell reads %q, %v", line[:n], err)
	}
}

// The second line of what is pasted at a question grants nothing at the next.
func TestWhatIsTypedAheadAnswersNoQuestion(t *testing.T) {
	keyboard, terminal, err := pty.Open()
	must.Do(t, err)
	defer keyboard.Close()
	defer terminal.Close()
	a := cli.New(&console.Console{Stdin: terminal}, &home.Dir{})
	a.Stderr = writerFunc(func(p []byte) (int, error) { return keyboard.WriteString("n\n") })
	for what, ask := range map[string]func() (bool, error){
		"confirm": func() (bool, error) { return a.Confirm(t.Context(), "grant this?", false) },
		"agreed":  func() (bool, error) { return a.Agreed("grant this?") },
	} {
		typeAhead(t, keyboard, terminal, "y")
		if yes, err := ask(); err != nil || yes {
			t.Errorf("%s: %v, %v", what, yes, err)
		}
	}
}

// A prompt ends as a program that the signal ended.
func TestASignalAtAPromptIsInTheExitCode(t *testing.T) {
	for end, want := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143, syscall.SIGHUP: 129} {
		o := newOwner(t)
		o.env = nil
		cmd := o.program("vault", "init")
		keyboard := must.Get(pty.Start(cmd))(t)
		defer keyboard.Close()
		shown, buf := "", make([]byte, 4096)
		for !strings.HasSuffix(shown, ": ") {
			n := must.Get(keyboard.Read(buf))(t)
			shown += string(buf[:n])
		}
		must.Do(t, cmd.Process.Signal(end))
		_ = cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != want {
			t.Errorf("%v: it ends with %d, want %d", end, code, want)
		}
	}
}

// A caller that hears the signal too, and ends its context by it, does not change the code.
func TestASignalThatEndsTheContextIsInTheExitCode(t *testing.T) {
	for range 20 {
		ctx, stop := signal.NotifyContext(t.Context(), syscall.SIGTERM)
		in, out, err := os.Pipe()
		must.Do(t, err)
		_, err = console.Ask(ctx, func() error {
			if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
				return err
			}
			<-ctx.Done()
			return nil
		}, func() ([]byte, error) { return console.ReadTyped(in) })
		stop()
		must.Do(t, out.Close())
		if got := (console.ExitError{}); !errors.As(err, &got) || got.Code != 143 {
			t.Fatalf("it ends with %v, want 143", err)
		}
	}
}

// typeAhead types a line, and returns when the terminal has taken it, and echoed it if it does.
func typeAhead(t *testing.T, keyboard, terminal *os.File, line string) {
	t.Helper()
	must.Get(keyboard.WriteString(line + "\n"))(t)
	for end := time.Now().Add(patience); ; <-time.After(time.Millisecond) {
		n := must.Get(unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCINQ))(t)
		if n > 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatal("the terminal takes nothing")
		}
	}
}

// Whether agents are unattended is asked once, and the answer is in config.toml. A launch without a sealed sandbox has
// none of it.
func TestSetupAsksOnceWhetherAgentsAreUnattended(t *testing.T) {
	o := newOwner(t)
	o.env = nil
	t.Setenv("DOCKER_HOST", "unix:///nonexistent/docker.sock") // the launch ends there
	const question = "let agents use their tools without asking you before each? [y/N]"
	shown, _ := o.dialogue([]string{"y\n", anthropicKey + "\n", "\n", testPassphrase + "\n", testPassphrase + "\n", "y\n",
		"y\n"}, "launch", "--sandbox=docker", "claude")
	if !strings.Contains(shown, question) ||
		!strings.Contains(shown, "config.toml has unattended = true below [sandbox]") ||
		!strings.Contains(shown, "unattended: claude uses its tools without asking (--dangerously-skip-permissions)") {
		t.Errorf("it shows %s", shown)
	}
	shown, _ = o.dialogue([]string{"y\n", openaiKey + "\n", "\n", "y\n", testPassphrase + "\n"},
		"launch", "--sandbox=docker", "codex")
	if strings.Contains(shown, question) {
		t.Errorf("it asks again: %s", shown)
	}
	_, errs, _ := o.run("launch", "--sandbox=off", "claude")
	if !strings.Contains(errs, "the agent asks as it is configured: unattended in config.toml is for a sealed sandbox") {
		t.Errorf("without a sandbox it says %s", errs)
	}
}
