package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/project"
)

// On a terminal a person sees what a project asks for, with all values, and its Dockerfile, line by line and without
// escape sequences. Nothing is built, and no engine asked, before the answers; they are remembered.
func TestAPersonDecidesAboutAProjectOnATerminal(t *testing.T) {
	o := newOwner(t)
	o.env = nil
	t.Setenv("DOCKER_HOST", "unix://"+filepath.Join(t.TempDir(), "no-engine"))
	dir := t.TempDir()
	must.Do(t, errors.Join(
		os.Mkdir(filepath.Join(dir, "data"), 0o700),
		os.WriteFile(filepath.Join(dir, ".aileron.toml"), []byte("mounts = [\"data:/srv/data\"]\nports = [\"8080:80\"]\n"+
			"[env]\nGREETING = \"hello  world\"\n"), 0o600),
		os.WriteFile(filepath.Join(dir, project.Dockerfile), []byte("ARG BASE\nFROM ${BASE}\nRUN echo made\n"),
			0o600)))
	run := []string{"sandbox", "run", "--sandbox=docker", "--dir", dir, "--", "true"}
	question := []string{
		`.aileron.toml" (sha256:`, ") asks for more than a session has without it:\r\n",
		`  | mount "` + dir + `/data" at "/srv/data", writable` + "\r\n",
		`  | set the variable GREETING to "hello  world"` + "\r\n",
		"  | publish port 80 of the sandbox as 127.0.0.1:8080, for all programs of this host\r\n",
		"agree, and remember this content? [y/N]",
	}
	build := []string{
		"aileron.Dockerfile (sha256:",
		", 3 lines) adds to the image:\r\n",
		"  | ARG BASE\r\n  | FROM ${BASE}\r\n  | RUN echo made\r\n",
		"with the network of the engine's machine, without mediation", "build it, and remember this content? [y/N]",
	}
	const engine = "docker does not respond"
	for _, step := range []struct {
		name        string
		typed       []string
		shown, none []string
	}{
		{"declined", []string{"\n"}, append(question, "it was declined"), append(build, engine)},
		{"the Dockerfile is declined", []string{"y\n", "n\n"}, append(append(question, build...),
			"build the image of the Dockerfile: it was declined"), []string{engine}},
		{"agreed", []string{"y\n"}, build, append(question, "declined")},
		{"remembered", nil, nil, append(append(question, build...), "declined")},
	} {
		shown, code := o.dialogue(step.typed, run...)
		if code != 1 || strings.Contains(shown, "\x1b[2J") {
			t.Errorf("%s: it ends with %d: %q", step.name, code, shown)
		}
		for _, want := range step.shown {
			if !strings.Contains(shown, want) {
				t.Errorf("%s: %q is not shown:\n%s", step.name, want, shown)
			}
		}
		for _, not := range step.none {
			if strings.Contains(shown, not) {
				t.Errorf("%s: %q is shown:\n%s", step.name, not, shown)
			}
		}
	}
}

// For a command on this host a person decides about what is in force there, and is told what is for a sandbox alone.
// The command does not run before the answer.
func TestAPersonDecidesAboutAProjectOfACommandOnThisHost(t *testing.T) {
	o := newOwner(t)
	o.env = nil
	dir := t.TempDir()
	file := filepath.Join(dir, ".aileron.toml")
	write := func(text string) { must.Do(t, os.WriteFile(file, []byte(text), 0o600)) }
	const content = "allow = [\"docs.example\"]\nports = [\"8080:80\"]\n"
	write(content)
	question := []string{
		file + `" (sha256:`, ") asks for more than a session has without it:\r\n",
		"  | allow requests to docs.example, without credentials\r\n", "agree, and remember this content? [y/N]",
	}
	inForce := []string{"in force by " + file + ": allow docs.example\r\n",
		"without a sandbox, " + file + " is not in force for: ports\r\n", "it ran\r\n"}
	declined := append([]string{"use " + file + ": it was declined\r\nhint: start without it: --ignore-project"},
		question...)
	for _, step := range []struct {
		name        string
		typed       []string
		flags       []string
		code        int
		shown, none []string
	}{
		{"declined", []string{"n\n"}, nil, 1, declined, append(inForce, "8080")},
		{"the default", []string{"\n"}, nil, 1, declined, inForce},
		{"the input ends", []string{"\x04"}, nil, 1, question, inForce},
		{"interrupted", []string{"\x03"}, nil, 130, question, inForce},
		{"without it", nil, []string{"--ignore-project"}, 0, []string{"it ran\r\n"}, append(inForce[:2:2], question...)},
		{"agreed", []string{"y\n"}, nil, 0, append(inForce, question...), []string{"declined"}},
		{"remembered", nil, nil, 0, inForce, question},
		{"changed", []string{"n\n"}, nil, 1, declined, inForce},
	} {
		if step.name == "changed" {
			write(content + "# another\n")
		}
		cmd := o.program(append(append([]string{"run"}, step.flags...), "--", "echo", "it ran")...)
		cmd.Dir = dir
		shown, code := o.dialogueOf(cmd, step.typed)
		if code != step.code {
			t.Errorf("%s: it ends with %d, want %d: %s", step.name, code, step.code, shown)
		}
		for _, want := range step.shown {
			if !strings.Contains(shown, want) {
				t.Errorf("%s: %q is not shown:\n%s", step.name, want, shown)
			}
		}
		for _, not := range step.none {
			if strings.Contains(shown, not) {
				t.Errorf("%s: %q is shown:\n%s", step.name, not, shown)
			}
		}
	}
}
