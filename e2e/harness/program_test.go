package harness

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

// inModule makes a module whose cmd/aileron prints word, and goes there.
func inModule(t *testing.T, word string) {
	t.Helper()
	t.Chdir(t.TempDir())
	must.Do(t, os.MkdirAll("cmd/aileron", 0o700))
	write(t, "go.mod", "module example.test/aileron\n\ngo 1.26\n")
	write(t, "cmd/aileron/word.txt", word)
	write(t, "cmd/aileron/main.go", "package main\n\nimport _ \"embed\"\n\n//go:embed word.txt\nvar word string\n\n"+
		"var testOnlyWorkFactor string\n\nfunc main() { print(word, testOnlyWorkFactor) }\n")
}

func write(t *testing.T, path, text string) {
	t.Helper()
	must.Do(t, os.WriteFile(path, []byte(text), 0o600))
}

// says returns the output of the aileron that a suite gets.
func says(t *testing.T) (string, error) {
	t.Helper()
	dir := t.TempDir()
	if err := Build(dir, map[string]string{"aileron": "./cmd/aileron"}); err != nil {
		return "", err
	}
	out := must.Get(exec.CommandContext(t.Context(), filepath.Join(dir, "aileron")).CombinedOutput())(t)
	return string(out), nil
}

func TestASuiteTakesTheProgramThatWasBuiltForAll(t *testing.T) {
	inModule(t, "first")
	all := t.TempDir()
	must.Do(t, BuildForAll(all))
	t.Setenv(ProgramsEnv, all)
	t.Setenv("PATH", "") // there is nothing to build one with
	if got, err := says(t); err != nil || got != "first10" {
		t.Errorf("the program prints %q, %v; want first10", got, err)
	}
	write(t, "cmd/aileron/main_test.go", "package main\n")
	if got, err := says(t); err != nil || got != "first10" {
		t.Errorf("beside a new test the program prints %q, %v; want first10", got, err)
	}
}

// The attacks and the check of the release have no cheap vaults.
func TestTheReleasedProgramIsNotThatOfTheSuites(t *testing.T) {
	inModule(t, "first")
	all := t.TempDir()
	must.Do(t, BuildForAll(all))
	for _, handed := range []string{all, ""} {
		t.Setenv(ProgramsEnv, handed)
		program := filepath.Join(t.TempDir(), "released")
		must.Do(t, BuildReleased(program, "./cmd/aileron"))
		if out, err := exec.CommandContext(t.Context(), program).CombinedOutput(); err != nil || string(out) != "first" {
			t.Errorf("from %q, the program prints %q, %v; want first, and no work factor", handed, out, err)
		}
	}
}

func TestAProgramOfOtherSourcesIsRefused(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, all string){
		"a file of Go":       func(t *testing.T, _ string) { write(t, "cmd/aileron/more.go", "package main\n") },
		"an embedded file":   func(t *testing.T, _ string) { write(t, "cmd/aileron/word.txt", "second") },
		"the module's needs": func(t *testing.T, _ string) { write(t, "go.mod", "module example.test/aileron\n\ngo 1.25\n") },
		"the program": func(t *testing.T, all string) {
			program := filepath.Join(all, "aileron")
			data := must.Get(os.ReadFile(program))(t)
			write(t, program, strings.Replace(string(data), "first", "other", 1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			inModule(t, "first")
			all := t.TempDir()
			must.Do(t, BuildForAll(all))
			t.Setenv(ProgramsEnv, all)
			change(t, all)
			if got, err := says(t); err == nil ||
				!strings.Contains(err.Error(), "was not built from the sources that are here now") {
				t.Errorf("Build = %v, and the program prints %q; want that it is refused as of other sources", err, got)
			}
		})
	}
}

func TestASuiteAloneBuildsForItself(t *testing.T) {
	inModule(t, "own")
	t.Setenv(ProgramsEnv, "")
	if got, err := says(t); err != nil || got != "own10" {
		t.Errorf("the program prints %q, %v; want own10", got, err)
	}
	t.Setenv(ProgramsEnv, t.TempDir())
	if _, err := says(t); err == nil || !strings.Contains(err.Error(), "hint: unset "+ProgramsEnv) {
		t.Errorf("with an empty directory Build = %v; want a hint", err)
	}
}
