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
