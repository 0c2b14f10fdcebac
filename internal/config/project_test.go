package config_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unicode"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/config"
	"github.com/ALRubinger/aileron/internal/format"
	"github.com/ALRubinger/aileron/internal/hint"
)

// readProject reads a project's file with the given text.
func readProject(t *testing.T, text string) (*config.Project, error) {
	t.Helper()
	dir := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(dir, config.ProjectFile), []byte(text), 0o600))
	return config.ReadProject(dir)
}

func TestAProjectsFileIsRead(t *testing.T) {
	if p, err := config.ReadProject(t.TempDir()); p != nil || err != nil {
		t.Errorf("a project without one: %v, %v", p, err)
	}
	p := must.Get(readProject(t, "agent = \"claude\"\nconnectors = []\nallow = [\"docs.example\"]\nread_only = true\n"+
		"mounts = [\"data:/data:ro\"]\nports = [\"8080:3000\"]\n"+
		"[bindings]\n\"github://acme/tracker\" = \"work\"\n[env]\nCI = \"1\"\nEMPTY = \"\"\n"))(t)
	if p.Connectors == nil || !strings.HasPrefix(p.Hash, "sha256:") || len(p.Hash) != 71 {
		t.Errorf("got %+v", p)
	}
	want := config.Project{Path: p.Path, Hash: p.Hash, Agent: "claude", Connectors: []string{},
		Allow: []string{"docs.example"}, ReadOnly: true, Bindings: map[string]string{"github://acme/tracker": "work"},
		Mounts: []string{"data:/data:ro"}, Ports: []string{"8080:3000"}, Env: map[string]string{"CI": "1", "EMPTY": ""}}
	if !reflect.DeepEqual(*p, want) {
		t.Errorf("got %+v, want %+v", *p, want)
	}
	if got, want := p.ForSandbox(), []string{"read_only", "mounts", "env", "ports"}; !reflect.DeepEqual(got, want) {
		t.Errorf("ForSandbox() = %q, want %q", got, want)
	}
	if other, _ := readProject(t, "agent = \"claude\"\n"); other.Hash == p.Hash {
		t.Error("two contents have one hash")
	}
}

func TestAHostileProjectsFileIsRefused(t *testing.T) {
	many := strings.Repeat(`"a.example",`, 65)
	for _, c := range []struct{ text, want string }{
		{strings.Repeat("#", 10<<20), "larger than 16384 bytes"},
		{"sandbox = \"off\"\n", "unknown key sandbox"},
		{"unattended = true\n", "unattended is not for a project to decide"},
		{"[sandbox]\nunattended = true\n", "unattended is not for a project to decide"},
		{"mount = [\"/\"]\n", "unknown key mount"},
		{"Mounts = [\"/\"]\n", "unknown key Mounts"},
		{"mounts = \"a:/b\"\n", "mounts"},
		{"mounts = [\"a\\nb:/c\"]\n", "mounts has a value with a control character"},
		{"mounts = [" + many + "]\n", "mounts has more than 64 entries"},
		{"ports = [3000]\n", "ports"},
		{"ports = [\"\\u202e80\"]\n", "ports has a value with a control character"},
		{"[env]\nA = 1\n", "A"},
		{"[env]\nA = \"b\\u001b[2J\"\n", "env has a value with a control character"},
		{"[env]\nA = \"" + strings.Repeat("a", 257) + "\"\n", "env has a value of more than 256 bytes"},
		{"[env.A]\nb = \"c\"\n", "A"},
		{"[env]\nA = \"1\"\nA = \"2\"\n", "A"},
		{"[upstream]\nresolve = [\"api.github.com:443:192.0.2.1\"]\n", "unknown key upstream"},
		{"[[bindings]]\n\"github://a/b\" = \"work\"\n", "bindings is no table"},
		{"bindings = [\"github://a/b\"]\n", "bindings is no table"},
		{"[[env]]\nA = \"1\"\n", "env is no table"},
		{"env = \"A=1\"\n", "env is no table"},
		{"[bindings.github]\nx = \"y\"\n", "bindings"},
		{"path = \"/etc/passwd\"\n", "unknown key path"},
		{"[approval]\ndecider = [\"/bin/true\"]\n", "unknown key approval"},
		{"decider = \"unix:/tmp/s\"\n", "unknown key decider"},
		{"Path = \"/etc/passwd\"\n", "unknown key Path"},
		{"agent = \"a\"\nagent = \"b\"\n", "agent"},
		// Which of the two the decoder takes is not decided: see projectKeys.
		{"allow = [\"a.example\"]\nAllow = [\"b.example\"]\n", "unknown key Allow"},
		{"allow = \"a.example\"\n", "allow"},
		{"allow = [\"a\\u001b[2Jb\"]\n", "a value with a control character"},
		{"allow = [\"a\\u202eb\"]\n", "a value with a control character"},
		{"[bindings]\n\"a\\nb\" = \"c\"\n", "a value with a control character"},
		{"[bindings]\na = \"\"\n", "an empty name"},
		{"agent = \"\x1b[2J\"\n", "cannot contain control characters"},
		{"agent = \"\xff\"\n", "UTF-8"},
		{"allow = [" + many + "]\n", "allow has more than 64 entries"},
		{"agent = \"" + strings.Repeat("a", 257) + "\"\n", "more than 256 bytes"},
		{"egress = \"open\"\n", "it must be deny or passthrough"},
		{"dockerfile = \"../Dockerfile\"\n", "it must be a file in the project"},
		{"dockerfile = \"/etc/passwd\"\n", "it must be a file in the project"},
		{"allow = " + strings.Repeat("[", 16000), "toml"},
	} {
		p, err := readProject(t, c.text)
		if p != nil || err == nil || !strings.Contains(err.Error(), c.want) || hint.Of(err) == "" {
			t.Errorf("%.60q: %v, %v (%s); want %q", c.text, p, err, hint.Of(err), c.want)
			continue
		}
		if strings.ContainsAny(err.Error(), "\n\x1b") {
			t.Errorf("%.60q: the error is not one plain line: %q", c.text, err)
		}
	}
	if _, err := readProject(t, "format = 2\nnews = 1\n"); !errors.As(err, new(*format.Error)) {
		t.Errorf("a newer format: %v", err)
	}
}

func TestAProjectsFileOfAnotherKindIsNotRead(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "secret")
	must.Do(t, os.WriteFile(outside, []byte("agent = \"claude\"\n"), 0o600))
	for what, c := range map[string]struct {
		make func(path string) error
		want string
	}{
		"link":      {func(p string) error { return os.Symlink(outside, p) }, "it is a symbolic link"},
		"pipe":      {func(p string) error { return syscall.Mkfifo(p, 0o600) }, "it is not a regular file"},
		"directory": {func(p string) error { return os.Mkdir(p, 0o700) }, "it is not a regular file"},
		"device":    {func(p string) error { return os.Symlink("/dev/zero", p) }, "it is a symbolic link"},
	} {
		dir := t.TempDir()
		must.Do(t, c.make(filepath.Join(dir, config.ProjectFile)))
		p, err := config.ReadProject(dir)
		if p != nil || err == nil || !strings.Contains(err.Error(), c.want) || hint.Of(err) == "" {
			t.Errorf("%s: %v, %v; want %q", what, p, err, c.want)
		}
	}
}

// Whatever a repository has in its file: an error of one line for a person, or values that a person can read.
func FuzzProject(f *testing.F) {
	for _, text := range []string{"", "format = 1\n", "agent = \"claude\"\n[env]\nCI = \"1\"\n",
		"mounts = [\"a:/b:ro\"]\nports = [\"1:2\"]\n[bindings]\ngithub = \"work\"\n", "env.A = \"b\"\n", "[[env]]\n",
		"allow = [\"\"\"a\nb\"\"\"]\n", "Env.A = \"b\"\n", "env = {A = \"b\"}\n", "\"env\".\"A\" = 'b'\n"} {
		f.Add(text)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		must.Do(t, os.WriteFile(filepath.Join(dir, config.ProjectFile), []byte(text), 0o600))
		p, err := config.ReadProject(dir)
		if err != nil {
			newer := errors.As(err, new(*format.Error)) // its own hint is the error
			if p != nil || hint.Of(err) == "" && !newer || strings.ContainsAny(err.Error(), "\n\x1b") {
				t.Errorf("%q: %v, %q with the hint %q", text, p, err, hint.Of(err))
			}
			return
		}
		values := slices.Concat(p.Connectors, p.Allow, p.Packages, p.Mounts, p.Ports, slices.Collect(maps.Keys(p.Env)),
			slices.Collect(maps.Values(p.Env)), []string{p.Agent, p.Egress, p.Dockerfile})
		for _, v := range values {
			if len(v) > 256 || strings.ContainsFunc(v, func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Errorf("%q: a value is %q", text, v)
			}
		}
	})
}
