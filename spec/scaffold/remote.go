package scaffold

import (
	"context"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/ALRubinger/aileron/spec"
)

// NameFromGit returns the FQN of a connector in dir by the remote "origin" of
// the Git repository that dir is in, or will be. It reports false if there is
// none at github.com or gitlab.com, or no Git.
func NameFromGit(ctx context.Context, dir string) (spec.FQN, bool) {
	at, below, ok := existing(dir)
	if !ok {
		return "", false
	}
	remote, ok := git(ctx, at, "config", "--get", "remote.origin.url")
	if !ok {
		return "", false
	}
	prefix, ok := git(ctx, at, "rev-parse", "--show-prefix")
	if !ok {
		return "", false
	}
	return NameOfRemote(remote, path.Join(prefix, below))
}

// PathInRepository returns the path of dir, which need not be there yet, in the Git repository that it is in; "" is the
// top of it. It reports false if there is none.
func PathInRepository(ctx context.Context, dir string) (string, bool) {
	at, below, ok := existing(dir)
	if !ok {
		return "", false
	}
	prefix, ok := git(ctx, at, "rev-parse", "--show-prefix")
	return path.Join(prefix, below), ok
}

// existing returns the innermost directory on the way to dir that is there, and what follows it.
func existing(dir string) (at, below string, ok bool) {
	at, err := filepath.Abs(dir)
	if err != nil {
		return "", "", false
	}
	for {
		if info, err := os.Stat(at); err == nil && info.IsDir() {
			return at, below, true
		}
		at, below = filepath.Dir(at), path.Join(filepath.Base(at), below)
	}
}

// git returns the first line that git prints in dir.
func git(ctx context.Context, dir string, args ...string) (string, bool) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", dir}, args...)...) //nolint:gosec // fixed arguments
	out, err := cmd.Output()
	line, _, _ := strings.Cut(string(out), "\n")
	return line, err == nil
}

// NameOfRemote returns the FQN of a connector in a directory of the repository
// with that remote. The repository is in lower case, as both hosts ignore case
// there; the directory is a part of tags and stays as it is. It reports false
// for a remote elsewhere, and a name that no connector can have.
func NameOfRemote(remote, dir string) (spec.FQN, bool) {
	host, repo := "", ""
	if u, err := url.Parse(remote); err == nil && u.Host != "" {
		host, repo = u.Hostname(), u.Path
	} else if before, after, ok := strings.Cut(remote, ":"); ok { // scp's syntax: [user@]host:path
		host, repo = before[strings.LastIndexByte(before, '@')+1:], after
	}
	scheme, ok := map[string]string{"github.com": "github", "gitlab.com": "gitlab"}[strings.ToLower(host)]
	if !ok {
		return "", false
	}
	repo = strings.ToLower(strings.TrimSuffix(strings.Trim(repo, "/"), ".git"))
	fqn, err := spec.ParseFQN(scheme + "://" + path.Join(repo, dir))
	return fqn, err == nil
}
