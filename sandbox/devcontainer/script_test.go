package devcontainer_test

import (
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

// script runs the commands of a configuration, and then prints the arguments.
func script(t *testing.T, text string) (stdout, stderr string, code int) {
	t.Helper()
	p := must.Get(composed(t, text, nil))(t)
	var out, errs strings.Builder
	cmd := exec.CommandContext(t.Context(), "sh", "-c", p.Script(p.Unset)+"\nprintf '[%s]' \"$@\"", "sh", "the command",
		"it's")
	cmd.Stdout, cmd.Stderr, cmd.Stdin = &out, &errs, strings.NewReader("the command's input")
	cmd.Dir = t.TempDir()
	_ = cmd.Run()
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

func TestCommandsRunInTheirOrder(t *testing.T) {
	stdout, stderr, code := script(t, `{"image": "x", "remoteEnv": {"HOME": null},
		"postAttachCommand": "echo last", "onCreateCommand": ["echo", "it's $HOME", "b c"],
		"postCreateCommand": {"a": "cat; echo \"a:${HOME-unset}\"", "b": ["sh", "-c", "exit 0"]}, "postStartCommand": ""}`)
	want := "aileron: onCreateCommand\nit's $HOME b c\naileron: postCreateCommand\na:unset\n" +
		"aileron: postAttachCommand\nlast\n"
	if stdout != "[the command][it's]" || stderr != want || code != 0 {
		t.Errorf("stdout %q, stderr %q, %d; want %q", stdout, stderr, code, want)
	}
	if p := must.Get(composed(t, `{"image": "x"}`, nil))(t); p.Script(p.Unset) != "" {
		t.Errorf("without commands: %q", p.Script(p.Unset))
	}
}

func TestACommandThatFailsKeepsTheAgentFromStarting(t *testing.T) {
	stdout, stderr, code := script(t, `{"image": "x", "postCreateCommand": {"good": "true", "bad": "echo oh; exit 7"},
		"postStartCommand": "echo never"}`)
	if stdout != "" || code != 7 || strings.Contains(stderr, "never") ||
		!strings.Contains(stderr, "oh\naileron: postCreateCommand.bad failed, so the command does not start: exit code 7\n") {
		t.Errorf("stdout %q, stderr %q, %d", stdout, stderr, code)
	}
}

func TestASignalEndsACommandThatHangs(t *testing.T) {
	p := must.Get(composed(t, `{"image": "x", "postCreateCommand": "echo begun; exec sleep 1000"}`, nil))(t)
	cmd := exec.CommandContext(t.Context(), "sh", "-c", p.Script(p.Unset)+"\necho never", "sh")
	out := must.Get(cmd.StderrPipe())(t)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	must.Do(t, cmd.Start())
	// Outside of a sandbox what hangs outlives the shell.
	t.Cleanup(func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	begun := make([]byte, len("aileron: postCreateCommand\nbegun\n"))
	for n := 0; n < len(begun); {
		m, err := out.Read(begun[n:])
		must.Do(t, err)
		n += m
	}
	must.Do(t, cmd.Process.Signal(syscall.SIGINT))
	go func() { _, _ = out.Read(make([]byte, 100)) }()
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 130 {
		t.Errorf("it ends with %d, want 130", code)
	}
}

func TestAPlanIsTextOfOneLineEach(t *testing.T) {
	p := must.Get(composed(t, `{"image": "x", "postStartCommand": "a\nrefused: b", "features": {"a": {}}}`, nil))(t)
	if text := p.Text(); strings.Count(text, "\n") != 7 || strings.Contains(text, "\nrefused: b") {
		t.Errorf("the text is %q", text)
	}
}
