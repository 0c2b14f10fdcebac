package project

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/config"
	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/home"
	"github.com/ALRubinger/aileron/internal/launch"
	"github.com/ALRubinger/aileron/sandbox/engine"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/catalog"
	"github.com/ALRubinger/aileron/spec/store"
)

// wanted is what a command with a sandbox asks for.
type wanted struct {
	Session
	Sandbox
}

// asker returns one that prints to stderr, and has no terminal: a line of the input is no answer.
func asker(t *testing.T, stderr io.Writer) *Asker {
	t.Helper()
	return &Asker{Console: &console.Console{Stdin: strings.NewReader("y\n"), Stderr: stderr},
		Dir: &home.Dir{Flag: t.TempDir()}}
}

// sandboxProject puts a project's file in force for a sandbox.
func sandboxProject(t *testing.T, text string, s *wanted) error {
	t.Helper()
	s.Dir = t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(s.Dir, config.ProjectFile), []byte(text), 0o600))
	return useProjectIn(t, s)
}

func useProjectIn(t *testing.T, s *wanted) error {
	t.Helper()
	return useProjectPrinting(t, s, t.Output())
}

// useProjectPrinting puts the project's file in force, and prints to stderr.
func useProjectPrinting(t *testing.T, s *wanted, stderr io.Writer) error {
	t.Helper()
	a := asker(t, stderr)
	if s.Given == nil {
		s.Given = func(string) bool { return false }
	}
	return a.UseProject(context.Background(), &s.Session, &s.Sandbox)
}

func TestAProjectsFileDecidesAboutItsSandbox(t *testing.T) {
	s := &wanted{}
	text := "agent = \"claude\"\nread_only = true\nprotect = true\ndockerfile = \"off\"\n"
	if err := sandboxProject(t, text, s); err != nil {
		t.Fatalf("what narrows is asked about: %v", err)
	}
	if !s.ReadOnly || !s.Protect || s.Custom.Dockerfile != "off" || s.Project.File.Agent != "claude" {
		t.Errorf("got %+v", s)
	}

	s = &wanted{Sandbox: Sandbox{Custom: Custom{Packages: []string{"jq"}}}}
	s.Project.Trust = true
	must.Do(t, sandboxProject(t, "packages = [\"jq\", \"tree\"]\n", s))
	if !slices.Equal(s.Custom.Packages, []string{"jq", "tree"}) || len(s.Project.Widens) != 1 {
		t.Errorf("packages %q, asked %q", s.Custom.Packages, s.Project.Asked())
	}
	s = &wanted{}
	if err := sandboxProject(t, "packages = [\"tree\"]\n", s); err == nil || !strings.Contains(err.Error(), "tree") {
		t.Errorf("a package without consent: %v", err)
	}
	s = &wanted{Sandbox: Sandbox{Image: "localhost/my/tools"}}
	if err := sandboxProject(t, "packages = [\"tree\"]\n", s); err != nil || len(s.Custom.Packages) > 0 {
		t.Errorf("an image of one's own gets packages: %q, %v", s.Custom.Packages, err)
	}
	if err := sandboxProject(t, "agent = \"emacs\"\n", &wanted{}); err == nil ||
		!strings.Contains(err.Error(), `there is no agent "emacs"; known: `) {
		t.Errorf("an unknown agent: %v", err)
	}
}

const sharing = `
mounts = ["data:/srv/data", "data:/srv/read:ro"]
ports = ["8080:3000", "9000"]
[env]
CI = "1"
GREETING = "hello  world"
`

// projectThatShares returns the options of a project whose file shares more with the sandbox.
func projectThatShares(t *testing.T, text string) *wanted {
	t.Helper()
	s := &wanted{Sandbox: Sandbox{Dir: t.TempDir()}}
	for _, dir := range []string{"data", ".git"} {
		must.Do(t, os.Mkdir(filepath.Join(s.Dir, dir), 0o700))
	}
	must.Do(t, os.WriteFile(filepath.Join(s.Dir, config.ProjectFile), []byte(text), 0o600))
	return s
}

func TestWhatAProjectsFileSharesIsAskedAbout(t *testing.T) {
	s := projectThatShares(t, sharing)
	err := useProjectIn(t, s)
	if err == nil || strings.Contains(err.Error(), "hello") || !strings.Contains(hint.Of(err), "--trust-project") {
		t.Fatalf("without consent: %v", err)
	}
	for _, want := range []string{
		"a person must agree to it first: mount \"" + s.Dir + "/data\" at \"/srv/data\", writable; ",
		"; mount \"" + s.Dir + "/data\" at \"/srv/read\", read-only; set the variable CI; set the variable GREETING; ",
		"; publish port 3000 of the sandbox as 127.0.0.1:8080, for all programs of this host; ",
		"; publish port 9000 of the sandbox as 127.0.0.1:9000",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v: it has no %q", err, want)
		}
	}

	s = projectThatShares(t, sharing)
	s.Project.Trust = true
	s.Env, s.Ports, s.Mounts = []string{"CI=2"}, []string{"7000:3000"}, []string{s.Dir + "/data:/srv/read"}
	var printed strings.Builder
	must.Do(t, useProjectPrinting(t, s, &printed))
	data := filepath.Join(s.Dir, "data")
	want := Shared{
		Mounts: []engine.Mount{{Source: data, Target: "/srv/read"}, {Source: data, Target: "/srv/data"}},
		Env:    []string{"CI=2", "GREETING=hello  world"}, Ports: []launch.Port{{Host: 7000, Sandbox: 3000}, {Host: 9000,
			Sandbox: 9000}},
	}
	if !reflect.DeepEqual(*s.Shared, want) {
		t.Errorf("in force is %+v, want %+v", *s.Shared, want)
	}
	for _, line := range []string{
		": mount /srv/data; variable GREETING; port 9000 of the sandbox\n",
		"aileron: a flag takes precedence over " + s.Project.File.Path +
			" for: the mount at /srv/read; the variable CI; port 3000 of the sandbox\n",
	} {
		if !strings.Contains(printed.String(), line) {
			t.Errorf("%q is not printed:\n%s", line, printed.String())
		}
	}
	if got := strings.Join(s.Project.Asked(), ";"); strings.Contains(got, "hello") || strings.Contains(got, "CI") {
		t.Errorf("the audit log gets %q", got)
	}
}

func TestWhatAProjectsFileMustNotShareIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		`mounts = ["/:/x"]`:                           "is refused",
		`mounts = ["../..:/x:ro"]`:                    "is refused",
		`mounts = ["/usr:/x:ro"]`:                     "is not in the project",
		`mounts = [".git:/x"]`:                        "git's hooks",
		`mounts = ["data"]`:                           "names no place",
		`mounts = ["data:/x", "data:/x/:ro"]`:         "mounts has two for /x",
		"protect = true\nmounts = [\"data:/x\"]":      "protect is in force",
		`ports = ["0.0.0.0:80:80"]`:                   "it is not [HOST:]PORT",
		`ports = ["3128"]`:                            "its gateway's",
		`ports = ["80", "80:81"]`:                     "ports has two for port 80",
		`env = {HTTPS_PROXY = "http://192.0.2.1"}`:    "the session sets it",
		`env = {AILERON_TOKEN = "x"}`:                 "the session sets it",
		`env = {NODE_EXTRA_CA_CERTS = "/x"}`:          "the session sets it",
		`env = {GOOSE_MODE = "auto"}`:                 "which only its user decides",
		`env = {OPENCODE_PERMISSION = "{}"}`:          "which only its user decides",
		`env = {"A B" = "x"}`:                         "it is not K=V",
		`env = {"A=B" = "x"}`:                         "env has the name \"A=B\"",
		"mounts = [\"data:/home/agent/workspace/x\"]": "is not yours to replace",
	} {
		s := projectThatShares(t, text+"\n")
		s.Project.Trust = true
		err := useProjectIn(t, s)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), config.ProjectFile) ||
			hint.Of(err) == "" || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v (%s), want %q", text, err, hint.Of(err), want)
		}
	}
	// protect makes the rest of what the host would run read-only, and what is read-only stays.
	s := projectThatShares(t, "protect = true\nmounts = [\"data:/x:ro\"]\n")
	s.Project.Trust = true
	if err := useProjectIn(t, s); err != nil || len(s.Shared.Mounts) != 1 {
		t.Errorf("a mount that is read-only: %v", err)
	}
}

func TestAProjectsFileWithoutASandbox(t *testing.T) {
	s := projectThatShares(t, "read_only = true\n"+sharing)
	t.Chdir(s.Dir)
	var printed strings.Builder
	a := asker(t, &printed)
	o := &Session{Given: func(string) bool { return false }}
	must.Do(t, a.UseProject(t.Context(), o, nil))
	want := "aileron: without a sandbox, " + o.Project.File.Path + " is not in force for: read_only; mounts; env; ports\n"
	if printed.String() != want {
		t.Errorf("printed is %q, want %q", printed.String(), want)
	}
}

func TestAProjectsDockerfileIsInTheProject(t *testing.T) {
	outside := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(outside, "Dockerfile"), []byte("secret"), 0o600))
	s := &wanted{Sandbox: Sandbox{Dir: t.TempDir()}}
	s.Project.Trust = true
	must.Do(t, os.Symlink(outside, filepath.Join(s.Dir, "sub")))
	file := filepath.Join(s.Dir, config.ProjectFile)
	must.Do(t, os.WriteFile(file, []byte("dockerfile = \"sub/Dockerfile\"\n"), 0o600))
	if err := useProjectIn(t, s); err == nil || strings.Contains(err.Error(), "not exist") {
		t.Errorf("a link leads out of the project: %v", err)
	}
	must.Do(t, os.Remove(filepath.Join(s.Dir, "sub")))
	must.Do(t, os.Mkdir(filepath.Join(s.Dir, "sub"), 0o700))
	must.Do(t, os.WriteFile(filepath.Join(s.Dir, "sub/Dockerfile"), []byte("ARG BASE\n"), 0o600))
	s.Project.File = nil
	must.Do(t, useProjectIn(t, s))
	path, data, err := s.Custom.Read("/elsewhere")
	if path != filepath.Join(s.Dir, "sub/Dockerfile") || string(data) != "ARG BASE\n" || err != nil {
		t.Errorf("the Dockerfile is %q in %s, %v", data, path, err)
	}
	// A link that another sandbox of the project puts there after the check.
	must.Do(t, errors.Join(os.RemoveAll(filepath.Join(s.Dir, "sub")),
		os.Symlink(outside, filepath.Join(s.Dir, "sub"))))
	if _, data, err := s.Custom.Read(s.Dir); err == nil {
		t.Errorf("a link leads to %q", data)
	}
}

func TestConsentToAProjectsFileIsForItsBytesThere(t *testing.T) {
	dir := t.TempDir()
	a := asker(t, t.Output())
	use := func(path, hash string, trust bool, widens ...string) *Use {
		u := &Use{File: &config.Project{Path: path, Hash: hash}, Trust: trust}
		for _, w := range widens {
			u.Widens = append(u.Widens, Widening{What: w, Value: " to a value"})
		}
		return u
	}
	if err := a.ConsentToProject(dir, use("/p", "1", false)); err != nil {
		t.Errorf("what narrows is asked about: %v", err)
	}
	// Where there is no terminal a line of the input is no consent.
	err := a.ConsentToProject(dir, use("/p", "1", false, "allow a"))
	if err == nil || !strings.Contains(err.Error(), "a person must agree to it first: allow a") {
		t.Fatalf("without a terminal: %v", err)
	}
	must.Do(t, a.ConsentToProject(dir, use("/p", "1", true, "allow a")))
	if err := a.ConsentToProject(dir, use("/p", "1", false, "allow a")); err != nil {
		t.Errorf("the same is asked about again: %v", err)
	}
	for what, u := range map[string]*Use{
		"other bytes": use("/p", "2", false, "allow a"), "another project": use("/q", "1", false, "allow a"),
		"more": use("/p", "1", false, "allow a", "allow b"),
	} {
		if err := a.ConsentToProject(dir, u); err == nil {
			t.Errorf("the consent is one to %s, too", what)
		}
	}
}

func TestAnIdentityOfAProjectsFileIsChosenOnce(t *testing.T) {
	a := asker(t, nil)
	npm, _ := catalog.Find("npm")
	s, err := a.OpenStore()
	if err == nil {
		_, err = s.InstallAll(t.Context(), []store.Source{{Src: "npm", Files: npm.Files}},
			func(_ *spec.Connector, install func() error) error { return install() })
	}
	if err != nil {
		t.Fatal(err)
	}
	u := Use{File: &config.Project{Bindings: map[string]string{"npm": "a", string(catalog.FQN("npm")): "b"}}}
	// With a flag for it, what is bound does not matter.
	err = u.UseBindings(a, &Session{Binds: []string{"npm=c"}})
	if err == nil || !strings.Contains(err.Error(), "bindings has two identities for") {
		t.Errorf("two identities for one connector: %v", err)
	}
}

func TestADockerfileNeedsConsentToItsBytes(t *testing.T) {
	dir := t.TempDir()
	a := asker(t, t.Output())
	file := []byte("ARG BASE\nFROM ${BASE}\nRUN id\n")
	// Where there is no terminal a line of the input is no consent.
	err := a.Consent(dir, "/p/aileron.Dockerfile", file, false)
	if err == nil || !strings.Contains(err.Error(), "a person must agree") || !strings.Contains(hint.Of(err), "--yes") {
		t.Fatalf("consent without a terminal = %v", err)
	}
	must.Do(t, a.Consent(dir, "/p/aileron.Dockerfile", file, true))
	if err := a.Consent(dir, "/q/aileron.Dockerfile", file, false); err != nil {
		t.Errorf("the same bytes are asked about again: %v", err)
	}
	if err := a.Consent(dir, "/p/aileron.Dockerfile", append(file, '\n'), false); err == nil {
		t.Error("consent to one content is consent to another")
	}
}

func TestADockerfileOfAnotherKindIsNotRead(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, Dockerfile)
	if _, data, err := (Custom{}).Read(dir); data != nil || err != nil {
		t.Errorf("a project without one: %q, %v", data, err)
	}
	if _, _, err := (Custom{Dockerfile: path}).Read(dir); err == nil {
		t.Error("a file that is named and does not exist is ignored")
	}
	secret := filepath.Join(dir, "secret")
	must.Do(t, os.WriteFile(secret, []byte("ARG BASE\nFROM ${BASE}\n"), 0o600))
	must.Do(t, os.Symlink(secret, path))
	_, data, err := (Custom{}).Read(dir)
	if data != nil || err == nil || !strings.Contains(err.Error(), "it is a symbolic link") || hint.Of(err) == "" {
		t.Errorf("a link: %q, %v", data, err)
	}
	if _, data, err := (Custom{Dockerfile: "off"}).Read(dir); data != nil || err != nil {
		t.Errorf("off: %q, %v", data, err)
	}
}
