package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creack/pty"

	"github.com/ALRubinger/aileron/e2e/must"
)

// changedBeforeTheAnswer runs a command on a terminal, calls change when it asks, and agrees.
func (o owner) changedBeforeTheAnswer(change func(), args ...string) (shown string, code int) {
	o.t.Helper()
	cmd := o.program(args...)
	keyboard, err := pty.Start(cmd)
	must.Do(o.t, err)
	defer keyboard.Close()
	buf := make([]byte, 4096)
	for answered := false; ; {
		n, err := keyboard.Read(buf)
		if shown += string(buf[:n]); err != nil {
			break // the terminal has no writer any more
		}
		if !answered && strings.HasSuffix(shown, "[y/N] ") {
			answered = true
			change()
			must.Get(keyboard.WriteString("y\n"))(o.t)
		}
	}
	_ = cmd.Wait()
	return shown, cmd.ProcessState.ExitCode()
}

// What a person agrees to is what was shown, also if the file is another one when they answer.
func TestWhatIsChangedBeforeTheAnswerIsNotAdded(t *testing.T) {
	o := newOwner(t)
	const text = "+++\n[action]\nname = \"try\"\nversion = \"1.0.0\"\ndescription = \"what was shown\"\n" +
		"[[requires.connectors]]\nname = \"github://acme/tracker\"\nversion = \"1.0.0\"\n" +
		"hash = \"sha256:0000000000000000000000000000000000000000000000000000000000000000\"\ncapabilities = [\"get\"]\n" +
		"[[execute]]\ntool = \"tracker\"\noperation = \"get\"\nargs = { owner = \"the value of its author\" }\n+++\n"
	file := o.file("try.md", text)
	shown, code := o.changedBeforeTheAnswer(func() {
		must.Do(t, os.WriteFile(file, []byte(strings.ReplaceAll(text, "what was shown", "another one")), 0o600))
	}, "action", "add", file)
	if code != 0 || !strings.Contains(shown, `tracker get  {"owner":"the value of its author"}`) {
		t.Errorf("action add ends with %d: %s", code, shown)
	}
	if added := o.ok("action", "show", "try"); !strings.Contains(added, "what was shown") {
		t.Errorf("another action was added than was shown: %s", added)
	}

	dir := filepath.Join(t.TempDir(), "c")
	must.Do(t, errors.Join(os.Mkdir(dir, 0o700), os.CopyFS(dir, os.DirFS("../../examples/connectors/github"))))
	manifest := filepath.Join(dir, "manifest.toml")
	shown, code = o.changedBeforeTheAnswer(func() {
		data, err := os.ReadFile(manifest)
		must.Do(t, errors.Join(err, os.Remove(manifest), os.WriteFile(manifest, append(data, "# changed\n"...), 0o600)))
	}, "connector", "install", dir)
	if code != 1 || !strings.Contains(shown, " has the hash sha256:") {
		t.Errorf("connector install ends with %d: %s", code, shown)
	}
	if installed := o.ok("connector", "list", "--json"); strings.TrimSpace(installed) != "[]" {
		t.Errorf("installed are %s", installed)
	}
}
