package gitlayout_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/gitlayout"
	"github.com/ALRubinger/aileron/internal/hint"
)

// git runs the host's git in a directory, as what a person without settings has.
func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.org", "-c",
		"protocol.file.allow=always"}, args...)...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1"}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// repositories makes one of each kind, as git makes them, below a directory: main with the worktrees wt and
// main/inside, super with the submodule super/lib, which has the worktree libwt, and the worktree superwt with its own
// superwt/lib; shared, which has its objects in lib; and sep, with its directory of git in sep.git.
func repositories(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git: ", err)
	}
	root := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	for _, args := range []string{
		"init -q -b main lib", "-C lib commit -q --allow-empty -m one", "clone -q --shared lib shared",
		"init -q --separate-git-dir=sep.git sep", "-C sep commit -q --allow-empty -m one",
		"init -q -b main main", "-C main commit -q --allow-empty -m one",
		"-C main worktree add -q -b wt ../wt", "-C main worktree add -q -b inside inside",
		"init -q -b main super", "-C super submodule --quiet add ../lib lib", "-C super commit -q -m one",
		"-C super/lib worktree add -q -b libwt ../../libwt", "-C super worktree add -q -b superwt ../superwt",
		"-C superwt submodule --quiet update --init",
	} {
		git(t, root, strings.Fields(args)...)
	}
	must.Do(t, os.MkdirAll(filepath.Join(root, "super", "packages", "app"), 0o700))
	return root
}

func nothing(string) bool { return false }

func TestTheRepositoriesThatGitMakes(t *testing.T) {
	root := repositories(t)
	t.Run("what git needs is found", func(t *testing.T) { findWhatGitNeeds(t, root) })
	t.Run("what is missing is named", func(t *testing.T) { nameWhatIsMissing(t, root) })
	t.Run("their own settings are read", func(t *testing.T) { readSettings(t, root) })
}

func findWhatGitNeeds(t *testing.T, root string) {
	at := func(path string) string {
		if path == "" {
			return ""
		}
		return filepath.Join(root, path)
	}
	for project, want := range map[string]struct {
		kind, git, own string
		others         []string
	}{
		"main":        {"", "main/.git", "", []string{"wt"}},
		"wt":          {"worktree", "main/.git", "main/.git/worktrees/wt", []string{"main/inside"}},
		"main/inside": {"worktree", "main/.git", "main/.git/worktrees/inside", []string{"wt"}},
		"super":       {"", "super/.git", "", []string{"superwt"}},
		"super/lib":   {"submodule", "super/.git/modules/lib", "", []string{"libwt"}},
		"libwt":       {"worktree", "super/.git/modules/lib", "super/.git/modules/lib/worktrees/libwt", nil},
		"superwt/lib": {"submodule", "super/.git/worktrees/superwt/modules/lib", "", nil},
		"lib":         {"", "lib/.git", "", nil},
	} {
		got, err := gitlayout.Of(t.Context(), at(project), nothing)
		var others []string
		for _, w := range got.Others {
			others = append(others, must.Get(filepath.Rel(root, w.Path))(t))
		}
		if err != nil || got.Kind != want.kind || got.Git != at(want.git) || got.Own != at(want.own) ||
			!slices.Equal(others, want.others) {
			t.Errorf("%s: %+v with the worktrees %q, %v; want %+v", project, got, others, err, want)
		}
	}
	if got, err := gitlayout.Of(t.Context(), t.TempDir(), nothing); got.Git != "" || err != nil {
		t.Errorf("a project without a repository: %+v, %v", got, err)
	}
}

// Where git will not work, what is missing is named, and and a mount adds it.
func nameWhatIsMissing(t *testing.T, root string) {
	at := func(path string) string { return filepath.Join(root, path) }
	must.Do(t, os.Mkdir(at("linked"), 0o700))
	must.Do(t, os.Symlink(at("lib/.git"), at("linked/.git")))
	git(t, root, "init", "-q", "parts")
	must.Do(t, os.RemoveAll(at("parts/.git/objects"))) // as Android's repo does
	must.Do(t, os.Symlink("../../lib/.git/objects", at("parts/.git/objects")))
	for _, c := range []struct{ project, missing, help string }{
		{"super/packages/app", "is a directory of the repository " + at("super"), "--dir " + at("super") + " "},
		{"sep", at("sep.git") + ", which does not name this project", "--mount " + at("sep.git")},
		{"shared", "alternates leads to " + at("lib/.git/objects"), "--mount " + at("lib/.git/objects")},
		{"linked", "leads to " + at("lib/.git"), "--mount " + at("lib/.git")},
		{"parts", "objects leads to " + at("lib/.git/objects"), "--mount " + at("lib/.git/objects")},
	} {
		_, err := gitlayout.Of(t.Context(), at(c.project), nothing)
		if err == nil || !strings.Contains(err.Error(), c.missing) || !strings.Contains(hint.Of(err)+" ", c.help) {
			t.Errorf("%s: %v, hint %q; want %q, and %q", c.project, err, hint.Of(err), c.missing, c.help)
			continue
		}
		mounted := strings.TrimPrefix(strings.TrimSpace(c.help), "--mount ")
		seen := func(path string) bool { return path == mounted || strings.HasPrefix(path, mounted+"/") }
		if _, err := gitlayout.Of(t.Context(), at(c.project), seen); c.project != "super/packages/app" && err != nil {
			t.Errorf("%s with %s: %v", c.project, c.help, err)
		}
	}
}

// layouts writes what git would: main with the worktrees wt and inside, lib, super with the submodule lib, and sep.git.
func layouts(t *testing.T) string {
	t.Helper()
	root := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	for _, git := range []string{"main/.git", "lib/.git", "super/.git/modules/lib", "sep.git"} {
		for _, dir := range []string{"objects", "refs"} {
			must.Do(t, os.MkdirAll(filepath.Join(root, git, dir), 0o700))
		}
		write(t, root, git+"/HEAD", "ref: refs/heads/main\n")
	}
	for _, dir := range []string{"wt", "inside", "sep", "super/lib", "main/.git/worktrees/wt",
		"main/.git/worktrees/inside"} {
		must.Do(t, os.MkdirAll(filepath.Join(root, dir), 0o700))
	}
	for _, name := range []string{"wt", "inside"} {
		write(t, root, name+"/.git", "gitdir: ../main/.git/worktrees/"+name+"\n") // as worktree.useRelativePaths makes it
		write(t, root, "main/.git/worktrees/"+name+"/gitdir", "../../../../"+name+"/.git\n")
	}
	write(t, root, "super/lib/.git", "gitdir: ../.git/modules/lib\n")
	write(t, root, "super/.git/modules/lib/config", "[core]\nworktree = ../../../lib\n")
	if l, err := gitlayout.Of(t.Context(), filepath.Join(root, "wt"), nothing); l.Kind != "worktree" || err != nil {
		t.Fatalf("as it is made: %+v, %v", l, err)
	}
	return root
}

// The .git of a hostile project names a directory that is not its own.
func TestAProjectCannotNameAnotherRepository(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, root string){
		"not a repository's": func(t *testing.T, root string) { write(t, root, "wt/.git", "gitdir: /etc\n") },
		"another worktree's": func(t *testing.T, root string) {
			write(t, root, "wt/.git", "gitdir: "+filepath.Join(root, "main/.git/worktrees/inside")+"\n")
		},
		"another repository's": func(t *testing.T, root string) {
			write(t, root, "wt/.git", "gitdir: "+filepath.Join(root, "lib/.git")+"\n")
		},
		"another submodule's": func(t *testing.T, root string) {
			write(t, root, "wt/.git", "gitdir: ../super/.git/modules/lib\n")
		},
		"no back link": func(t *testing.T, root string) {
			must.Do(t, os.Remove(filepath.Join(root, "main/.git/worktrees/wt/gitdir")))
		},
		"a directory that is no repository": func(t *testing.T, root string) {
			must.Do(t, os.Remove(filepath.Join(root, "main/.git/HEAD")))
		},
		"a link as file": func(t *testing.T, root string) {
			must.Do(t, os.Rename(filepath.Join(root, "wt/.git"), filepath.Join(root, "wt/real")))
			must.Do(t, os.Symlink("real", filepath.Join(root, "wt/.git")))
		},
		"a repository in the project": func(t *testing.T, root string) { // where a sandbox could put a link instead
			must.Do(t, os.Rename(filepath.Join(root, "main/.git"), filepath.Join(root, "wt/own")))
			write(t, root, "wt/.git", "gitdir: own/worktrees/wt\n")
		},
		"a link in the repository": func(t *testing.T, root string) {
			back := filepath.Join(root, "main/.git/worktrees/wt/gitdir")
			must.Do(t, os.Rename(back, back+".real"))
			must.Do(t, os.Symlink(back+".real", back))
		},
		"an included setting": func(t *testing.T, root string) {
			write(t, root, "sep.git/config", "[include]\npath = "+filepath.Join(root, "sep", "mine")+"\n")
			write(t, root, "sep/mine", "[core]\nworktree = "+filepath.Join(root, "wt")+"\n")
			write(t, root, "wt/.git", "gitdir: ../sep.git\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			root := layouts(t)
			spoil(t, root)
			if got, _ := gitlayout.Of(t.Context(), filepath.Join(root, "wt"), nothing); got.Git != "" {
				t.Errorf("%+v", got)
			}
		})
	}
}

func readSettings(t *testing.T, root string) {
	write(t, root, "lib/.git/config", "[core]\n\tbare\n\thooksPath = /a b\n"+
		"[http \"https://a.example/?x=y\"]\n\tproxy = p\n"+
		"[user]\n\tname = One\n\tname = Two\n[include]\n\tpath = more\n")
	write(t, root, "lib/.git/more", "[user]\n\temail = other\n")
	l, err := gitlayout.Of(t.Context(), filepath.Join(root, "lib"), nothing)
	got := l.Settings(t.Context())
	for name, want := range map[string]string{"core.bare": "true", "core.hookspath": "/a b",
		"http.https://a.example/?x=y.proxy": "p", "user.name": "Two", "user.email": ""} {
		if got.Last(name) != want {
			t.Errorf("%s is %q, want %q (%v)", name, got[name], want, err)
		}
	}
}

func write(t *testing.T, root, path, text string) {
	t.Helper()
	must.Do(t, os.WriteFile(filepath.Join(root, path), []byte(text), 0o600))
}
