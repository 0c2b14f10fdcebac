package images

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/e2e/recipes"
)

// git runs the host's git in a directory.
func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=host", "-c", "user.email=host@example.org"}, args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// An agent commits in a worktree as the person does, and the host sees the
// commit.
func TestGitWorksInAWorktreeWithTheHostsIdentity(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, engine string) {
		p := newPerson(t, engine)
		mine := t.TempDir()
		config := "[user]\n\tname = Ada Lovelace\n\temail = ada@example.org\n"
		must.Do(t, os.WriteFile(filepath.Join(mine, ".gitconfig"), []byte(config), 0o600))
		main := filepath.Join(filepath.Dir(p.project), "main")
		for _, args := range [][]string{{"init", "-q", main}, {"-C", main, "commit", "-q", "--allow-empty", "-m", "first"},
			{"-C", main, "worktree", "add", "-q", "-b", "topic", p.project}} {
			git(t, filepath.Dir(p.project), args...)
		}
		hook := filepath.Join(main, ".git", "hooks")
		r := p.box(recipes.Toolbox().Ref, nil, []string{"bash", "-euc", `
			echo work >file; git add file; git commit -qm second; git log -1 --format='%an <%ae>'
			git config user.name Own; git commit -q --amend --reset-author --no-edit; git log -1 --format='%an <%ae>'
			git config --unset user.name; git worktree prune; git status --short
			touch ` + hook + `/x 2>/dev/null || echo hooks are kept`}, "GIT_CONFIG_GLOBAL="+filepath.Join(mine, ".gitconfig"))
		if want := "Ada Lovelace <ada@example.org>\nOwn <ada@example.org>\nhooks are kept\n"; r.code != 0 || r.out != want {
			t.Errorf("exit %d, %q, want %q\n%s", r.code, r.out, want, r.err)
		}
		if !strings.Contains(r.err, "the repository "+main+"/.git is in the sandbox too") {
			t.Errorf("it is not told: %s", r.err)
		}
		if got := git(t, p.project, "log", "--format=%s %an"); got != "second Own\nfirst host" {
			t.Errorf("the host sees %q", got)
		}
		if got := git(t, main, "worktree", "list"); strings.Contains(got, "prunable") || !strings.Contains(got, p.project) {
			t.Errorf("the worktree is lost: %s", got)
		}
	})
}

// fileSums returns a line for each file below a directory.
func fileSums(t *testing.T, dir string) string {
	t.Helper()
	cmd := exec.Command("sh", "-euc", "find . -type f -exec sha256sum {} + | sort -k 2")
	cmd.Dir = dir
	return string(must.Get(cmd.Output())(t))
}

// An agent follows git's own advice, or is hostile: what the host's other worktrees have staged stays. One that it
// makes, as Claude Code does, is one on the host.
func TestNothingThatGitHasOfAnotherWorktreeIsLost(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, engine string) {
		p := newPerson(t, engine)
		other := filepath.Join(filepath.Dir(p.project), "other")
		git(t, p.project, "init", "-q", "-b", "main", ".")
		git(t, p.project, "commit", "-q", "--allow-empty", "-m", "first")
		git(t, p.project, "worktree", "add", "-q", "-b", "other", other)
		must.Do(t, os.WriteFile(filepath.Join(other, "staged"), []byte("work\n"), 0o600))
		git(t, other, "add", "staged")
		before := fileSums(t, filepath.Join(p.project, ".git", "worktrees", "other"))
		r := p.box(recipes.Toolbox().Ref, nil, []string{"bash", "-uc", `pwd
			git worktree prune -v; git worktree remove --force --force ` + other + ` 2>/dev/null
			rm -rf .git/worktrees/other 2>/dev/null; mv .git/worktrees .git/away 2>/dev/null
			cd /home/agent/workspace && rm -rf .git/worktrees/other 2>/dev/null; mv .git away 2>/dev/null; cd "$OLDPWD"
			git gc --quiet --prune=now && echo collected
			git worktree add -q -b fix .claude/worktrees/fix && cd .claude/worktrees/fix &&
				git commit -q --allow-empty -m work`})
		if r.code != 0 || r.out != p.project+"\ncollected\n" {
			t.Errorf("exit %d, %q\n%s", r.code, r.out, r.err)
		}
		if after := fileSums(t, filepath.Join(p.project, ".git", "worktrees", "other")); after != before {
			t.Errorf("of the other worktree git has now\n%s, and had\n%s", after, before)
		}
		if got := git(t, other, "status", "--short"); got != "A  staged" {
			t.Errorf("the other worktree: %q", got)
		}
		git(t, p.project, "fsck", "--no-progress")
		if got := git(t, filepath.Join(p.project, ".claude/worktrees/fix"), "log", "--format=%s"); got != "work\nfirst" {
			t.Errorf("the sandbox's worktree on the host: %q", got)
		}
		rows := p.must("audit", "list", "--json", "--event", "session.ended").out
		if !strings.Contains(rows, ".git/worktrees/fix/gitdir") || strings.Contains(rows, ".git/worktrees/other") {
			t.Errorf("of the worktrees, the log has %s", rows)
		}
	})
}

// In a directory of a repository git does not work, and the start names the project in which it does.
func TestGitWorksInASubmoduleAndNamesTheProjectInWhichItDoes(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, engine string) {
		p := newPerson(t, engine)
		root := filepath.Dir(p.project)
		git(t, root, "init", "-q", "-b", "main", "lib")
		git(t, root, "-C", "lib", "commit", "-q", "--allow-empty", "-m", "first")
		git(t, root, "init", "-q", "super")
		super := filepath.Join(root, "super")
		git(t, super, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "../lib", "lib")
		p.project = filepath.Join(super, "lib")
		r := p.box(recipes.Toolbox().Ref, nil, []string{"bash", "-euc", "git -c user.name=x -c user.email=y commit -q " +
			"--allow-empty -m second; git log --format=%s; touch ../.git/modules/lib/hooks/x 2>/dev/null || echo kept"})
		if r.code != 0 || r.out != "second\nfirst\nkept\n" {
			t.Errorf("exit %d, %q\n%s", r.code, r.out, r.err)
		}
		p.project = filepath.Join(super, "packages")
		must.Do(t, os.Mkdir(p.project, 0o755))
		r = p.box(recipes.Toolbox().Ref, nil, []string{"git", "status"})
		if r.code != 128 || !strings.Contains(r.err, "--dir "+super+" gives it the whole repository") {
			t.Errorf("exit %d\n%s", r.code, r.err)
		}
	})
}

// Virtual environments, caches and settings record paths: those of a sandbox are the host's.
func TestAProjectIsAtItsOwnPath(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, engine string) {
		p := newPerson(t, engine)
		p.project = filepath.Join(filepath.Dir(p.project), "-a 'b' \"c\" \\d $(e) ;&|<> ,=%#?*[日本]")
		must.Do(t, os.Mkdir(p.project, 0o755))
		r := p.box(recipes.Toolbox().Ref, nil, []string{"bash", "-euc", `printf '%s|' "$PWD" "$(pwd -P)"
			echo x >/home/agent/workspace/made; cat made`})
		if want := p.project + "|" + p.project + "|x\n"; r.code != 0 || r.out != want {
			t.Errorf("exit %d, %q, want %q\n%s", r.code, r.out, want, r.err)
		}
	})
}
