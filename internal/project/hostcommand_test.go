package project

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/hint"
)

func hostCommands(w *wanted) { w.Devcontainer.HostCommands = true }

// As in the reference implementation, initializeCommand comes before the build, for which it may make files.
func TestTheInitializeCommandComesBeforeWhatABuildReads(t *testing.T) {
	dir, out := t.TempDir(), new(strings.Builder)
	a := asker(t, out)
	withFiles(t, dir, map[string]string{devcontainerFile: `{"build": {"dockerfile": "Dockerfile"},
		"initializeCommand": "cd .devcontainer && echo FROM x >Dockerfile && echo COPY made / >>Dockerfile &&\n` +
		`echo 1 >>made"}`})
	_, err := using(a, dir, hostCommands)
	if err == nil || !strings.Contains(err.Error(), "must agree to it first: run initializeCommand on this host") {
		t.Errorf("without consent: %v", err)
	}
	made := filepath.Join(dir, ".devcontainer/made")
	if _, err := os.Stat(made); err == nil {
		t.Fatal("it ran without consent")
	}
	w, err := using(a, dir, hostCommands, trusting)
	must.Do(t, err)
	if b := w.Devcontainer.Plan.Build; b == nil || !slices.Equal(b.Reads, []string{"made"}) || len(b.Files) != 1 {
		t.Errorf("the build is %+v", b)
	}
	all := strings.Join(w.ProjectFile().Widens, "; ")
	for _, want := range []string{"run initializeCommand on this host", `build the image of ".devcontainer/Dockerfile"`} {
		if !strings.Contains(all, want) {
			t.Errorf("recorded is %q, want %q", all, want)
		}
	}
	// The process of a detached session is not the one that runs it. What it has made since is asked about: it is no
	// longer what was agreed to.
	before := must.Get(os.ReadFile(made))(t)
	a.Initialized = true
	if w, err = using(a, dir, hostCommands); err != nil || !strings.Contains(strings.Join(w.ProjectFile().Widens, "; "),
		"run initializeCommand on this host") {
		t.Errorf("a second process: %v, recorded is %q", err, w.ProjectFile().Widens)
	}
	withFiles(t, dir, map[string]string{".devcontainer/made": "2\n"})
	if _, err = using(a, dir, hostCommands); err == nil || !strings.Contains(err.Error(), "agree to it first: build") {
		t.Errorf("after a file of the build has changed: %v", err)
	}
	must.Do(t, os.WriteFile(made, before, 0o600))
	if after := must.Get(os.ReadFile(made))(t); string(after) != string(before) {
		t.Errorf("a second process has run it: %q", after)
	}
}

// The consent is to a string, and what it starts lies in the project, where an agent may write.
func TestConsentToAnInitializeCommandIsForOneStart(t *testing.T) {
	dir, a := t.TempDir(), asker(t, t.Output())
	withFiles(t, dir, map[string]string{
		devcontainerFile: `{"image": "${localEnv:AILERON_TEST_VALUE}", "initializeCommand": "sh init.sh"}`,
		"init.sh":        "true\n"})
	t.Setenv("AILERON_TEST_VALUE", "x")
	_, err := using(a, dir, hostCommands, trusting)
	must.Do(t, err)
	withFiles(t, dir, map[string]string{"init.sh": "touch ran\n"})
	_, err = using(a, dir, hostCommands)
	if err == nil || !strings.HasSuffix(err.Error(), "agree to it first: run initializeCommand on this host, outside of "+
		"any sandbox, with files of the project, which an agent may have changed") ||
		!strings.Contains(hint.Of(err), "--trust-project") {
		t.Errorf("the next start: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "ran")); err == nil {
		t.Fatal("what the agent wrote ran on this host")
	}
	_, err = using(a, dir, hostCommands, trusting)
	must.Do(t, err)
	if _, err := os.Stat(filepath.Join(dir, "ran")); err != nil {
		t.Errorf("after consent to this start: %v", err)
	}
}

// What is refused is refused before anything runs on the host.
func TestARefusedDevcontainerRunsNothingOnTheHost(t *testing.T) {
	dir, a := t.TempDir(), asker(t, t.Output())
	withFiles(t, dir, map[string]string{devcontainerFile: `{"image": "x", "privileged": true,
		"initializeCommand": "touch ran"}`})
	_, err := using(a, dir, hostCommands, trusting)
	if err == nil || !strings.Contains(err.Error(), "privileged (line 1)") {
		t.Errorf("it is refused with %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "ran")); err == nil {
		t.Error("it ran")
	}
}

// Its parts run at once, and each line of output has the name of its part.
func TestThePartsOfAnInitializeCommandRunAtOnce(t *testing.T) {
	dir, out := t.TempDir(), new(strings.Builder)
	a := asker(t, out)
	// Each waits for the other: one after the other they would not end.
	withFiles(t, dir, map[string]string{devcontainerFile: `{"image": "x", "initializeCommand": {
		"a": "mkfifo one; echo begun; echo x >one; printf end",
		"b": ["sh", "-c", "until test -p one; do :; done; cat one; exit 3"]}}`})
	w := wantedIn(dir, hostCommands, trusting)
	err := a.UseProject(t.Context(), &w.Session, &w.Sandbox)
	if err == nil || !strings.Contains(err.Error(), "run initializeCommand.b on this host: exit status 3") ||
		hint.Of(err) == "" {
		t.Errorf("it fails with %v", err)
	}
	for _, want := range []string{"a: begun\n", "b: x\n", "a: end\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the output is %q, want %q", out, want)
		}
	}
}

func TestAnInitializeCommandThatHangsEndsWithTheContext(t *testing.T) {
	dir := t.TempDir()
	withFiles(t, dir, map[string]string{devcontainerFile: `{"image": "x",
		"initializeCommand": "echo begun; sleep 1000; echo never"}`})
	ctx, cancel := context.WithCancel(t.Context())
	a := asker(t, writerFunc(func(p []byte) {
		if strings.Contains(string(p), "begun") {
			cancel()
		}
	}))
	w := wantedIn(dir, hostCommands, trusting)
	if err := a.UseProject(ctx, &w.Session, &w.Sandbox); err == nil || !strings.Contains(err.Error(), "on this host") {
		t.Errorf("it ends with %v", err)
	}
}

// A command that starts no sandbox needs no flag for what it does not run.
func TestABuildRunsNothingOnTheHost(t *testing.T) {
	dir, out := t.TempDir(), new(strings.Builder)
	a := asker(t, out)
	withFiles(t, dir, map[string]string{devcontainerFile: `{"image": "x", "initializeCommand": "touch ran"}`})
	w := wantedIn(dir, trusting)
	must.Do(t, a.UseProjectImage(t.Context(), &w.Project, &w.Sandbox))
	if _, err := os.Stat(filepath.Join(dir, "ran")); err == nil {
		t.Error("it ran")
	}
	if !strings.Contains(out.String(), "initializeCommand does not run") || w.Devcontainer.Plan == nil {
		t.Errorf("the plan is %v, and printed is %q", w.Devcontainer.Plan, out)
	}
}

type writerFunc func(p []byte)

func (f writerFunc) Write(p []byte) (int, error) {
	f(p)
	return len(p), nil
}
