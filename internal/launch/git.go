package launch

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/ALRubinger/aileron/internal/regular"
	"github.com/ALRubinger/aileron/sandbox"
	"github.com/ALRubinger/aileron/sandbox/engine"
)

// gitConfigFile is a sandbox's settings of git for all users and repositories. Those of a user and of a repository come
// after it and win, which they would not do against GIT_AUTHOR_NAME or GIT_CONFIG_COUNT.
const gitConfigFile = "/etc/aileron/gitconfig"

// gitFile returns the settings with an identity that may be empty. The project may belong to another user than the
// command's, which git refuses to use unless it is named safe.
func gitFile(name, email string) sandbox.File {
	text := "[include]\n\tpath = /etc/gitconfig\n[safe]\n\tdirectory = *\n"
	if name != "" || email != "" {
		text += "[user]\n"
	}
	for _, v := range [][2]string{{"name", name}, {"email", email}} {
		if v[1] != "" {
			text += "\t" + v[0] + " = " + quoteGit(v[1]) + "\n"
		}
	}
	return sandbox.File{Path: gitConfigFile, Mode: 0o644, Data: []byte(text)}
}

// quoteGit returns a value as git reads it from a file (git-config(1), Syntax), without control characters.
func quoteGit(value string) string {
	value = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, value)
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value) + `"`
}

// gitTime bounds a command of the host's git.
const gitTime = 5 * time.Second

// beginGitIdentity begins to ask for the identity that gitIdentity returns, and returns what waits for it.
func (l *Launcher) beginGitIdentity(ctx context.Context, dir string) func() (name, email string) {
	known := make(chan struct{})
	var name, email string
	go func() {
		defer close(known)
		name, email = l.gitIdentity(ctx, dir)
	}()
	return func() (string, string) { <-known; return name, email }
}

// gitIdentity returns user.name and user.email of the host's user, as they are in the project's directory. The
// repository's own settings are not asked: they are in the sandbox, and may be those of a stranger.
func (l *Launcher) gitIdentity(ctx context.Context, dir string) (name, email string) {
	get := func(key string) string {
		ctx, cancel := context.WithTimeout(ctx, gitTime)
		defer cancel()
		//nolint:gosec // key is one of two
		cmd := exec.CommandContext(ctx, "git", "config", "--global", "--includes", "--null", "--get", key)
		cmd.Dir = dir
		for _, pair := range l.Environ {
			// A hook's variables would name another repository.
			if !strings.HasPrefix(pair, "GIT_") || strings.HasPrefix(pair, "GIT_CONFIG_GLOBAL=") {
				cmd.Env = append(cmd.Env, pair)
			}
		}
		out, err := cmd.Output()
		if err != nil {
			return ""
		}
		return strings.TrimSuffix(string(out), "\x00")
	}
	return get("user.name"), get("user.email")
}

// commonGitDir returns the directory that a project shares with the repository of which it is a worktree; "" if it is
// none.
//
// The .git file of a project may be a stranger's, who names any directory of this host in it. So the repository must
// name the worktree too, in a file that only its owner can have written: git worktree add does.
func commonGitDir(dir string) (string, error) {
	file := filepath.Join(dir, ".git")
	text, err := readSmall(file)
	to, isLink := strings.CutPrefix(strings.TrimSpace(text), "gitdir: ")
	if err != nil || !isLink {
		return "", nil //nolint:nilerr // a repository of its own, or none
	}
	if !filepath.IsAbs(to) {
		to = filepath.Join(dir, to)
	}
	own, err := filepath.EvalSymlinks(to)
	if err != nil {
		return "", fmt.Errorf("find the repository of the worktree: %w", err)
	}
	if filepath.Base(filepath.Dir(own)) != "worktrees" {
		return "", nil // a submodule's
	}
	back, err := readSmall(filepath.Join(own, "gitdir"))
	if err != nil {
		return "", fmt.Errorf("find the repository of the worktree: %w", err)
	}
	if back = strings.TrimSpace(back); !filepath.IsAbs(back) {
		back = filepath.Join(own, back)
	}
	if real, err := filepath.EvalSymlinks(back); err != nil || real != file {
		return "", fmt.Errorf("find the repository of the worktree: %s names the worktree %s, and not this project", own,
			back)
	}
	common := filepath.Dir(filepath.Dir(own))
	// Another sandbox of this project could put a link in its place after this look at it, and the engine would mount
	// what that leads to.
	if sandbox.Within(common, dir) {
		return "", fmt.Errorf("find the repository of the worktree: %s lies in the project itself", common)
	}
	for _, part := range []string{"HEAD", "objects", "refs"} {
		if _, err := os.Lstat(filepath.Join(common, part)); err != nil {
			return "", fmt.Errorf("find the repository of the worktree: %s is none: %w", common, err)
		}
	}
	return common, nil
}

// readSmall reads a regular file of a few bytes.
func readSmall(path string) (string, error) {
	data, err := regular.Read(path, 8<<10)
	return string(data), err
}

// mountWorktree adds what git needs of the repository of a worktree: the common directory at its own path and, so that
// git worktree prune does not take the worktree for a removed one, a .git file at the path of the project. That is a
// copy: a mount of the project's own would be resolved by the engine, and another sandbox of the project could put a
// link there meanwhile.
func (b *sandboxed) mountWorktree() {
	common, err := commonGitDir(b.dir)
	if err == nil && common != "" {
		err = checkMount(engine.Mount{Source: common, Target: common}, b.Home)
	}
	var text string
	if err == nil && common != "" {
		text, err = readSmall(filepath.Join(b.dir, ".git"))
	}
	switch {
	case err != nil:
		b.Infof("aileron: warning: git will not work in the sandbox: %v", err)
	case common != "":
		b.mounts = append(b.mounts, engine.Mount{Source: common, Target: common})
		if !sandbox.Within(b.dir, sandbox.Workspace) { // it is there
			b.files = append(b.files, sandbox.File{Path: filepath.Join(b.dir, ".git"), Mode: 0o644, Data: []byte(text)})
		}
		b.gitDirs = append(b.gitDirs, common)
		b.Infof("aileron: the project is a worktree: the repository %s is in the sandbox too, at its own path", common)
	}
}
