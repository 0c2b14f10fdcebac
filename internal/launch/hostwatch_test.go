package launch

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/internal/hostfiles"
	"github.com/ALRubinger/aileron/sandbox"
)

// The settings of a worktree's repository run programs of the host as those of a project do.
func TestTheCommonDirectoryOfAWorktreeIsProtectedToo(t *testing.T) {
	dir, common := t.TempDir(), t.TempDir()
	for at, text := range map[string]string{
		filepath.Join(dir, ".git"): "gitdir: x\n", filepath.Join(dir, "Makefile"): "x",
		filepath.Join(common, "config"): "[core]\n\tbare = false\n", filepath.Join(common, "hooks/pre-push"): "x",
		filepath.Join(common, "worktrees/w/HEAD"):            "x",
		filepath.Join(common, "worktrees/w/config.worktree"): "[core]\n\tbare = false\n",
	} {
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	w := watchHostFiles(t.Context(), dir, common)
	w.wait()
	for all, want := range map[bool]string{
		false: ".git " + common + "/hooks", // the file of a worktree could be replaced by a directory
		true: strings.Join([]string{".git", "Makefile", common + "/hooks", common + "/config",
			common + "/worktrees/w/config.worktree"}, " "),
	} {
		covers, err := w.cover(filepath.Join(t.TempDir(), "c"), all, nil)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range covers {
			got = append(got, c.Path)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("with all %v: %v, want %s", all, got, want)
		}
	}
}

// A sandbox that could rename .git, or make the hooks that are not there, would need no hook that it can write to.
func TestGitsHooksCannotBeReplacedNorMade(t *testing.T) {
	dir, to := t.TempDir(), filepath.Join(t.TempDir(), "c")
	hooks := filepath.Join(dir, ".git/hooks")
	if err := os.Mkdir(filepath.Dir(hooks), 0o755); err != nil {
		t.Fatal(err)
	}
	w := watchHostFiles(t.Context(), dir)
	w.wait()
	covers, err := w.cover(to, false, []string{filepath.Join(dir, ".git")})
	want := []sandbox.Cover{
		{Source: filepath.Join(dir, ".git"), Path: ".git", Held: true}, {Source: to + "-no-hooks", Path: ".git/hooks"},
	}
	if err != nil || !slices.Equal(covers, want) {
		t.Fatalf("%v, %v; want %v", covers, err, want)
	}
	if entries, err := os.ReadDir(to + "-no-hooks"); err != nil || len(entries) > 0 {
		t.Errorf("%v, %v", entries, err)
	}
	// The engine makes the mount point.
	if err := os.Mkdir(hooks, 0o755); err != nil {
		t.Fatal(err)
	}
	w.removeMade()
	if _, err := os.Lstat(hooks); err == nil {
		t.Error("the directory that the engine made is left")
	}
	if err := os.MkdirAll(filepath.Join(hooks, "the-persons-own"), 0o755); err != nil {
		t.Fatal(err)
	}
	if w.removeMade(); len(hostfiles.HookDirs(dir)) != 1 {
		t.Error("hooks that a person made meanwhile are removed")
	}
}

// What decides about sandboxes, or would be believed by the next one, is no project.
func TestNoPartOfTheHomeIsAProject(t *testing.T) {
	home := t.TempDir()
	for _, part := range []string{
		"", "cache/images", "consents", "detached", "run", "sessions", "store", "trust", "vault/bindings",
	} {
		dir := filepath.Join(home, part)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if _, _, err := Project(dir, home); err == nil {
			t.Errorf("%q of the home is a project", part)
		}
	}
}
