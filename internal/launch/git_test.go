package launch

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

// worktree returns a directory with a repository and a worktree of it, as git worktree add makes them.
func worktree(t *testing.T) (project, common string) {
	t.Helper()
	root := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	project, common = filepath.Join(root, "wt"), filepath.Join(root, "main", ".git")
	own := filepath.Join(common, "worktrees", "wt")
	for _, dir := range []string{project, own, filepath.Join(common, "objects"), filepath.Join(common, "refs")} {
		must.Do(t, os.MkdirAll(dir, 0o700))
	}
	write(t, filepath.Join(common, "HEAD"), "ref: refs/heads/main\n")
	write(t, filepath.Join(project, ".git"), "gitdir: "+own+"\n")
	write(t, filepath.Join(own, "gitdir"), filepath.Join(project, ".git")+"\n")
	return project, common
}

func write(t *testing.T, path, text string) {
	t.Helper()
	must.Do(t, os.WriteFile(path, []byte(text), 0o600))
}

func TestTheRepositoryOfAWorktreeIsFound(t *testing.T) {
	project, common := worktree(t)
	if got, err := commonGitDir(project); got != common || err != nil {
		t.Errorf("commonGitDir = %q, %v, want %s", got, err, common)
	}
	write(t, filepath.Join(project, ".git"), "gitdir: ../main/.git/worktrees/wt\n")
	write(t, filepath.Join(common, "worktrees", "wt", "gitdir"), "../../../../wt/.git\n")
	if got, err := commonGitDir(project); got != common || err != nil {
		t.Errorf("with relative paths, commonGitDir = %q, %v, want %s", got, err, common)
	}
}

// The .git file of a hostile project names a directory that is not its own.
func TestAProjectCannotNameAnotherRepository(t *testing.T) {
	for name, spoil := range map[string]func(project, common string){
		"no worktree": func(project, _ string) { write(t, filepath.Join(project, ".git"), "gitdir: /etc\n") },
		"another's": func(_, common string) {
			other := filepath.Join(filepath.Dir(filepath.Dir(common)), "other")
			write(t, other, "gitdir: x\n")
			write(t, filepath.Join(common, "worktrees", "wt", "gitdir"), other+"\n")
		},
		"no back link":     func(_, common string) { _ = os.Remove(filepath.Join(common, "worktrees", "wt", "gitdir")) },
		"not a repository": func(_, common string) { _ = os.Remove(filepath.Join(common, "HEAD")) },
		"a link as file": func(project, common string) {
			file := filepath.Join(project, ".git")
			_ = os.Rename(file, filepath.Join(project, "real"))
			_ = os.Symlink("real", file)
		},
		"a repository in the project": func(project, common string) { // where a sandbox could put a link instead
			_ = os.Rename(common, filepath.Join(project, "own"))
			write(t, filepath.Join(project, ".git"), "gitdir: own/worktrees/wt\n")
		},
		"a link in the repository": func(_, common string) {
			back := filepath.Join(common, "worktrees", "wt", "gitdir")
			_ = os.Rename(back, back+".real")
			_ = os.Symlink(back+".real", back)
		},
	} {
		t.Run(name, func(t *testing.T) {
			project, common := worktree(t)
			spoil(project, common)
			if got, _ := commonGitDir(project); got != "" {
				t.Errorf("commonGitDir = %q", got)
			}
		})
	}
	if got, err := commonGitDir(t.TempDir()); got != "" || err != nil {
		t.Errorf("commonGitDir without git = %q, %v", got, err)
	}
}

func TestAnIdentityIsReadByGitAsItIs(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("there is no git: ", err)
	}
	for _, name := range []string{"Ada", `A "quoted" \ name; # no comment`, "  spaces  ", "é ü", "[core] x = y"} {
		file := filepath.Join(t.TempDir(), "config")
		write(t, file, string(gitFile(name+"\x1b\n[core]\n", "a@example.org").Data))
		out, err := exec.Command(git, "config", "--file", file, "--get", "user.name").CombinedOutput()
		if got := strings.TrimSuffix(string(out), "\n"); err != nil || got != name+"[core]" {
			t.Errorf("git reads %q, %v, want %q", got, err, name+"[core]")
		}
	}
	if text := string(gitFile("", "").Data); strings.Contains(text, "[user]") {
		t.Errorf("without an identity: %s", text)
	}
}

// Of the host's settings those of the user alone are asked.
func TestTheHostsIdentityIsTheUsers(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git: ", err)
	}
	home, project := t.TempDir(), t.TempDir()
	write(t, filepath.Join(home, ".gitconfig"), "[user]\nname = Ada\nemail = ada@example.org\n")
	for _, dir := range []string{"objects", "refs"} {
		must.Do(t, os.MkdirAll(filepath.Join(project, ".git", dir), 0o700))
	}
	write(t, filepath.Join(project, ".git", "HEAD"), "ref: refs/heads/main\n")
	write(t, filepath.Join(project, ".git", "config"), "[user]\nname = Mallory\n")
	l := &Launcher{Environ: []string{"HOME=" + home, "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=user.name",
		"GIT_CONFIG_VALUE_0=Mallory", "PATH=" + os.Getenv("PATH")}}
	if name, email := l.gitIdentity(t.Context(), project); name != "Ada" || email != "ada@example.org" {
		t.Errorf("gitIdentity = %q, %q", name, email)
	}
	l.Environ = []string{"HOME=" + t.TempDir()}
	if name, email := l.gitIdentity(t.Context(), project); name != "" || email != "" {
		t.Errorf("gitIdentity of a user without one = %q, %q", name, email)
	}
}

// A mount of the file would be resolved by the engine, when another sandbox may have put a link in its place.
func TestTheGitFileOfAWorktreeIsCopied(t *testing.T) {
	project, common := worktree(t)
	b := &sandboxed{Launcher: &Launcher{Home: t.TempDir(), Infof: t.Logf}, dir: project}
	b.mountWorktree()
	file := filepath.Join(project, ".git")
	if len(b.mounts) != 1 || b.mounts[0].Source != common {
		t.Errorf("the mounts: %+v, want %s alone", b.mounts, common)
	}
	if len(b.files) != 1 || b.files[0].Path != file || string(b.files[0].Data) !=
		"gitdir: "+filepath.Join(common, "worktrees", "wt")+"\n" {
		t.Errorf("the files: %+v", b.files)
	}
}
