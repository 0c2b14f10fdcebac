package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/home"
)

func TestADockerfileNeedsConsentToItsBytes(t *testing.T) {
	dir := t.TempDir()
	var errs bytes.Buffer
	a := cli.New(&console.Console{Stdin: strings.NewReader("y\n"), Stderr: &errs},
		&home.Dir{Getenv: func(string) string { return "" }})
	file := []byte("ARG BASE\nFROM ${BASE}\nRUN id\n")
	// Where there is no terminal a line of the input is no consent.
	err := a.Consent(dir, "/p/aileron.Dockerfile", file, false)
	if err == nil || !strings.Contains(err.Error(), "a person must agree") || !strings.Contains(hint.Of(err), "--yes") {
		t.Fatalf("consent without a terminal = %v", err)
	}
	if err := a.Consent(dir, "/p/aileron.Dockerfile", file, true); err != nil {
		t.Fatal(err)
	}
	if err := a.Consent(dir, "/q/aileron.Dockerfile", file, false); err != nil {
		t.Errorf("the same bytes are asked about again: %v", err)
	}
	if err := a.Consent(dir, "/p/aileron.Dockerfile", append(file, '\n'), false); err == nil {
		t.Error("consent to one content is consent to another")
	}
}

func TestADockerfileOfAnotherKindIsNotRead(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, cli.ProjectDockerfile)
	if _, data, err := (cli.CustomOptions{}).Read(dir); data != nil || err != nil {
		t.Errorf("a project without one: %q, %v", data, err)
	}
	if _, _, err := (cli.CustomOptions{Dockerfile: path}).Read(dir); err == nil {
		t.Error("a file that is named and does not exist is ignored")
	}
	secret := filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, []byte("ARG BASE\nFROM ${BASE}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, path); err != nil {
		t.Fatal(err)
	}
	_, data, err := (cli.CustomOptions{}).Read(dir)
	if data != nil || err == nil || !strings.Contains(err.Error(), "it is a symbolic link") || hint.Of(err) == "" {
		t.Errorf("a link: %q, %v", data, err)
	}
	if _, data, err := (cli.CustomOptions{Dockerfile: "off"}).Read(dir); data != nil || err != nil {
		t.Errorf("off: %q, %v", data, err)
	}
}
