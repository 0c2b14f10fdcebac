package scaffold

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/spec"
)

// Whatever the name, the host and the credential are, the files load, and declare what was asked for.
func TestTheFilesOfAStarterLoad(t *testing.T) {
	for _, fqn := range []spec.FQN{
		"github://acme/tracker", "gitlab://acme/git", "hub://a/aileron-connector-x", "github://acme/mono/connectors/Jira",
		"github://acme/python3.12", "github://acme/aileron", spec.FQN("github://acme/" + strings.Repeat("n", 90)),
	} {
		for _, kind := range append(spec.Kinds(), "") {
			files, err := Starter(fqn, "api.tracker.example:8443", kind).Files()
			if err != nil {
				t.Errorf("%s with %q: %v", fqn, kind, err)
				continue
			}
			c := must.Get(spec.Load(files[spec.ManifestFile], files[spec.SpecFile]))(t)
			need := c.Credential()
			if c.FQN != fqn || (need == nil) != (kind == "") || need != nil && need.Kind != kind {
				t.Errorf("%s with %q is %s with %+v", fqn, kind, c.FQN, need)
			}
			for _, op := range c.Tools[0].Operations {
				if reads := op.Method == "GET"; reads != (op.Approval == "none") || reads != op.Idempotent {
					t.Errorf("%s: approval %s, idempotent %v", op, op.Approval, op.Idempotent)
				}
			}
		}
	}
}

func TestTheToolOfAName(t *testing.T) {
	for fqn, want := range map[spec.FQN]string{
		"github://acme/tracker": "tracker", "github://acme/aileron-connector-jira": "jira", "github://acme/git": "git-api",
		"github://acme/mono/connectors/Jira": "jira", "github://acme/connector-ld.so": "api-ld.so",
	} {
		if got := ToolName(fqn); got != want {
			t.Errorf("ToolName(%s) = %q, want %q", fqn, got, want)
		}
	}
}

func TestTheTagIsThatOfSources(t *testing.T) {
	for fqn, want := range map[spec.FQN]string{
		"github://acme/tracker": "v1.2.0", "github://acme/mono/connectors/jira": "connectors/jira/v1.2.0",
	} {
		if got := (&Connector{FQN: fqn, Version: "1.2.0"}).Tag(); got != want {
			t.Errorf("the tag of %s is %q, want %q", fqn, got, want)
		}
	}
}

func TestTheNameOfARemote(t *testing.T) {
	for _, w := range []struct{ remote, dir, want string }{
		{"https://github.com/Acme/Tracker.git", "", "github://acme/tracker"},
		{"https://user:token@github.com/acme/tracker", "", "github://acme/tracker"},
		{"git@github.com:acme/tracker.git", "connectors/Jira", "github://acme/tracker/connectors/Jira"},
		{"ssh://git@gitlab.com:22/group/sub/tracker.git/", "", "gitlab://group/sub/tracker"},
		{"github.com:acme/tracker", "", "github://acme/tracker"},
		{"https://git.acme.example/acme/tracker", "", ""},
		{"https://github.com.evil.example/acme/tracker", "", ""},
		{"https://github.com/acme", "", ""},
		{"https://github.com/acme/tracker", "a b", ""},
		{"../tracker", "", ""},
		{"", "", ""},
	} {
		if got, ok := NameOfRemote(w.remote, w.dir); string(got) != w.want || ok != (w.want != "") {
			t.Errorf("NameOfRemote(%q, %q) = %q, %v; want %q", w.remote, w.dir, got, ok, w.want)
		}
	}
}

// A directory that does not exist yet is named after the repository around it.
func TestTheNameFromGit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
	dir := t.TempDir()
	if _, ok := NameFromGit(t.Context(), dir); ok {
		t.Error("a directory without a repository has a name")
	}
	for _, args := range [][]string{{"init", "-q"}, {"remote", "add", "origin", "git@github.com:acme/mono.git"}} {
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	for sub, want := range map[string]spec.FQN{"": "github://acme/mono", "a/b": "github://acme/mono/a/b"} {
		if got, ok := NameFromGit(t.Context(), filepath.Join(dir, sub)); got != want || !ok {
			t.Errorf("NameFromGit(%q) = %q, %v; want %q", sub, got, ok, want)
		}
	}
}

func TestNothingIsReplaced(t *testing.T) {
	files := must.Get(Starter("github://acme/tracker", "api.tracker.example", spec.KindBearer).Files())(t)
	for _, name := range []string{spec.ManifestFile, spec.SpecFile} {
		dir := t.TempDir()
		put(t, filepath.Join(dir, name), "mine")
		_, err := Write(dir, files)
		if err == nil || !strings.Contains(err.Error(), name+": it exists already") || hint.Of(err) == "" {
			t.Errorf("with %s: %v, hint %q", name, err, hint.Of(err))
		}
		if got := names(t, dir); !slices.Equal(got, []string{name}) {
			t.Errorf("with %s, the directory then has %v", name, got)
		}
	}
	dir := t.TempDir()
	put(t, filepath.Join(dir, "README.md"), "mine")
	skipped, err := Write(dir, files)
	if err != nil || !slices.Equal(skipped, []string{"README.md"}) {
		t.Errorf("with a README.md: skipped %v, %v", skipped, err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "README.md")); err != nil || string(text) != "mine" {
		t.Errorf("README.md then has %q, %v", text, err)
	}
	if got := names(t, dir); !slices.Equal(got, []string{".gitignore", "README.md", spec.SpecFile, spec.ManifestFile}) {
		t.Errorf("the directory has %v", got)
	}
}

// A dangling link is a file that exists: what it leads to is not created.
func TestALinkIsNotFollowed(t *testing.T) {
	files := must.Get(Starter("github://acme/tracker", "api.tracker.example", "").Files())(t)
	dir, elsewhere := t.TempDir(), filepath.Join(t.TempDir(), "elsewhere")
	must.Do(t, os.Symlink(elsewhere, filepath.Join(dir, spec.SpecFile)))
	if _, err := Write(dir, files); err == nil || !strings.Contains(err.Error(), "it exists already") {
		t.Errorf("with a link: %v", err)
	}
	if _, err := os.Lstat(elsewhere); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what the link leads to: %v", err)
	}
}

// After a failure nothing is there that was not before.
func TestAFailureLeavesNothing(t *testing.T) {
	files := must.Get(Starter("github://acme/tracker", "api.tracker.example", "").Files())(t)
	parent := t.TempDir()
	files["new/directory/file"] = []byte("x") // its directories are removed too
	files["new/directory/file/below"] = nil   // sorts after the others, and is below a file
	if _, err := Write(filepath.Join(parent, "a", "b"), files); err == nil {
		t.Error("a file below a file was written")
	}
	if got := names(t, parent); len(got) != 0 {
		t.Errorf("%v are left", got)
	}
}

// The layout changes white space alone.
func TestTheLayoutIsTheSameJSON(t *testing.T) {
	wide := strings.Repeat("x", widest)
	for _, v := range []any{
		nil, 1.5, "<&>\u2028\"\\", []any{}, map[string]any{}, []any{[]any{}, wide, map[string]any{wide: []any{true, wide}}},
	} {
		compact := must.Get(encode(v))(t)
		var again bytes.Buffer
		if err := json.Compact(&again, layout(compact)); err != nil || again.String() != string(compact) {
			t.Errorf("%s is laid out as %s, %v", compact, layout(compact), err)
		}
	}
}

func ExampleStarter() {
	files, err := Starter("github://acme/tracker", "api.tracker.example", spec.KindBearer).Files()
	if err != nil {
		panic(err)
	}
	c, err := spec.Load(files[spec.ManifestFile], files[spec.SpecFile])
	fmt.Println(c.FQN, c.Version, err)
	for _, op := range c.Tools[0].Operations {
		fmt.Println(op.Method, op.Path, op.Approval)
	}
	// Output:
	// github://acme/tracker 0.1.0 <nil>
	// GET /v1/items/{id} none
	// POST /v1/items required
}

func put(t *testing.T, name, text string) {
	t.Helper()
	must.Do(t, os.WriteFile(name, []byte(text), 0o600))
}

func names(t *testing.T, dir string) (list []string) {
	t.Helper()
	entries := must.Get(os.ReadDir(dir))(t)
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}
