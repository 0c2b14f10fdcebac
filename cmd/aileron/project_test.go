package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/internal/config"
	"github.com/ALRubinger/aileron/spec/catalog"
)

// sandboxProject puts a project's file in force for a sandbox.
func sandboxProject(t *testing.T, text string, s *sandboxOptions) error {
	t.Helper()
	s.dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(s.dir, config.ProjectFile), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return useProjectIn(t, s)
}

func useProjectIn(t *testing.T, s *sandboxOptions) error {
	t.Helper()
	a := &app{stdin: strings.NewReader("y\n"), stderr: t.Output(), getenv: func(string) string { return "" },
		home: t.TempDir()}
	if s.given == nil {
		s.given = func(string) bool { return false }
	}
	return a.useProject(&s.sessionOptions, s)
}

func TestAProjectsFileDecidesAboutItsSandbox(t *testing.T) {
	s := &sandboxOptions{}
	text := "agent = \"claude\"\nread_only = true\nprotect = true\ndockerfile = \"off\"\n"
	if err := sandboxProject(t, text, s); err != nil {
		t.Fatalf("what narrows is asked about: %v", err)
	}
	if !s.readOnly || !s.protect || s.custom.dockerfile != "off" || s.project.file.Agent != "claude" {
		t.Errorf("got %+v", s)
	}

	s = &sandboxOptions{custom: customOptions{packages: []string{"jq"}}}
	s.project.trust = true
	if err := sandboxProject(t, "packages = [\"jq\", \"tree\"]\n", s); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(s.custom.packages, []string{"jq", "tree"}) || len(s.project.widens) != 1 {
		t.Errorf("packages %q, asked %q", s.custom.packages, s.project.widens)
	}
	s = &sandboxOptions{}
	if err := sandboxProject(t, "packages = [\"tree\"]\n", s); err == nil || !strings.Contains(err.Error(), "tree") {
		t.Errorf("a package without consent: %v", err)
	}
	s = &sandboxOptions{image: "localhost/my/tools"}
	if err := sandboxProject(t, "packages = [\"tree\"]\n", s); err != nil || len(s.custom.packages) > 0 {
		t.Errorf("an image of one's own gets packages: %q, %v", s.custom.packages, err)
	}
	if err := sandboxProject(t, "agent = \"emacs\"\n", &sandboxOptions{}); err == nil ||
		!strings.Contains(err.Error(), `there is no agent "emacs"; known: `) {
		t.Errorf("an unknown agent: %v", err)
	}
}

func TestAProjectsDockerfileIsInTheProject(t *testing.T) {
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "Dockerfile"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &sandboxOptions{dir: t.TempDir()}
	s.project.trust = true
	if err := os.Symlink(outside, filepath.Join(s.dir, "sub")); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(s.dir, config.ProjectFile)
	if err := os.WriteFile(file, []byte("dockerfile = \"sub/Dockerfile\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := useProjectIn(t, s); err == nil || s.custom.dockerfile != "" {
		t.Errorf("a link leads to %q, %v", s.custom.dockerfile, err)
	}
	if err := os.Remove(filepath.Join(s.dir, "sub")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(s.dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.dir, "sub/Dockerfile"), []byte("ARG BASE\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.project.file = nil
	if err := useProjectIn(t, s); err != nil || s.custom.dockerfile != filepath.Join(s.dir, "sub/Dockerfile") {
		t.Errorf("the Dockerfile is %q, %v", s.custom.dockerfile, err)
	}
}

func TestConsentToAProjectsFileIsForItsBytesThere(t *testing.T) {
	home := t.TempDir()
	a := &app{stdin: strings.NewReader("y\n"), stderr: t.Output()}
	use := func(path, hash string, trust bool, widens ...string) *projectUse {
		return &projectUse{file: &config.Project{Path: path, Hash: hash}, trust: trust, widens: widens}
	}
	if err := a.consentToProject(home, use("/p", "1", false)); err != nil {
		t.Errorf("what narrows is asked about: %v", err)
	}
	// Where there is no terminal a line of the input is no consent.
	err := a.consentToProject(home, use("/p", "1", false, "allow a"))
	if err == nil || !strings.Contains(err.Error(), "a person must agree to it first: allow a") {
		t.Fatalf("without a terminal: %v", err)
	}
	if err := a.consentToProject(home, use("/p", "1", true, "allow a")); err != nil {
		t.Fatal(err)
	}
	if err := a.consentToProject(home, use("/p", "1", false, "allow a")); err != nil {
		t.Errorf("the same is asked about again: %v", err)
	}
	for what, u := range map[string]*projectUse{
		"other bytes": use("/p", "2", false, "allow a"), "another project": use("/q", "1", false, "allow a"),
		"more": use("/p", "1", false, "allow a", "allow b"),
	} {
		if err := a.consentToProject(home, u); err == nil {
			t.Errorf("the consent is one to %s, too", what)
		}
	}
}

func TestAnIdentityOfAProjectsFileIsChosenOnce(t *testing.T) {
	c := newCLI(t)
	c.ok("connector", "install", "npm", "--yes")
	a := &app{getenv: func(string) string { return "" }, home: c.home}
	u := projectUse{file: &config.Project{Bindings: map[string]string{"npm": "a", string(catalog.FQN("npm")): "b"}}}
	// With a flag for it, what is bound does not matter.
	err := u.useBindings(a, &sessionOptions{binds: []string{"npm=c"}})
	if err == nil || !strings.Contains(err.Error(), "bindings has two identities for") {
		t.Errorf("two identities for one connector: %v", err)
	}
}
