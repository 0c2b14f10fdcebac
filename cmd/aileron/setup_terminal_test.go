package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// converse answers each question on a terminal in this process, and fails if a secret is on stdout or stderr.
func (o owner) converse(answers []string, args ...string) (stdout, stderr string, code int) {
	o.t.Helper()
	keyboard, terminal, err := pty.Open()
	fatal(o.t, err)
	defer keyboard.Close()
	defer terminal.Close()
	for _, line := range answers {
		_, err := keyboard.WriteString(line + "\n")
		fatal(o.t, err)
	}
	stdout, stderr, code = o.runWith(terminal, args...)
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
	cmd := o.program(args...)
	keyboard, err := pty.Start(cmd)
	fatal(o.t, err)
	defer keyboard.Close()
	buf := make([]byte, 4096)
	for _, answer := range typed {
		for asked := len(shown); len(shown) == asked || !strings.HasSuffix(shown, ": ") && !strings.HasSuffix(shown, "] "); {
			n, err := keyboard.Read(buf)
			shown += string(buf[:n])
			if err != nil {
				o.t.Fatalf("it ended before it asked for %q: %s", answer, shown)
			}
		}
		_, err := keyboard.WriteString(answer)
		fatal(o.t, err)
	}
	for {
		n, err := keyboard.Read(buf)
		if shown += string(buf[:n]); err != nil {
			break // the terminal has no writer any more
		}
	}
	_ = cmd.Wait()
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
	fatal(t, os.WriteFile(filepath.Join(bin, "claude"), agent, 0o700))
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

// A secret that is pasted before its question is asked, or has a second line, is not on the screen, and no shell gets
// it.
func TestASecretThatIsTypedTooEarlyIsNotOnTheScreen(t *testing.T) {
	keyboard, terminal, err := pty.Open()
	fatal(t, err)
	defer keyboard.Close()
	defer terminal.Close()
	a := &app{stdin: terminal, stderr: io.Discard, getenv: func(string) string { return "" }}
	talk, err := a.converse()
	fatal(t, err)
	typeAhead(t, keyboard, terminal, anthropicKey)
	if got, err := a.readUnseen(t.Context(), "key"); err != nil || string(got) != anthropicKey {
		t.Fatalf("read %d bytes, %v", len(got), err)
	}
	typeAhead(t, keyboard, terminal, githubToken)
	a.discardTyped()
	talk.end()
	_, err = terminal.WriteString("$ ")
	fatal(t, err)
	shown := ""
	for buf := make([]byte, 4096); !strings.HasSuffix(shown, "$ "); {
		n, err := keyboard.Read(buf)
		fatal(t, err)
		shown += string(buf[:n])
	}
	if strings.TrimSpace(shown) != "$" {
		t.Errorf("the screen shows %q", shown)
	}
	// The echo is as it was, and the shell reads what is typed from now on.
	_, err = keyboard.WriteString("ls\n")
	fatal(t, err)
	line := make([]byte, 100)
	if n, err := terminal.Read(line); err != nil || string(line[:n]) != "ls\n" {
		t.Errorf("the shell reads %q, %v", line[:n], err)
	}
}

// typeAhead types a line, and returns when the terminal has taken it, and echoed it if it does.
func typeAhead(t *testing.T, keyboard, terminal *os.File, line string) {
	t.Helper()
	_, err := keyboard.WriteString(line + "\n")
	fatal(t, err)
	for end := time.Now().Add(time.Minute); ; <-time.After(time.Millisecond) {
		n, err := unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCINQ)
		fatal(t, err)
		if n > 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatal("the terminal takes nothing")
		}
	}
}
