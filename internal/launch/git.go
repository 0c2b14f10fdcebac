package launch

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/ALRubinger/aileron/internal/gitlayout"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/hostfiles"
	"github.com/ALRubinger/aileron/internal/regular"
	"github.com/ALRubinger/aileron/sandbox"
	"github.com/ALRubinger/aileron/sandbox/engine"
)

// gitConfigFile is a sandbox's settings of git for all users and repositories. An identity of a user or of a repository
// comes after this one and wins, which it would not do against GIT_AUTHOR_NAME or GIT_CONFIG_COUNT. Of rules for URLs
// with the same beginning, git takes the first: those here win (insteadOfSSH), and those of gitHTTPSFile do not.
const gitConfigFile = "/etc/aileron/gitconfig"

// gitFile returns the settings with an identity that may be empty, and rules for URLs. The project may belong to
// another user than the command's, which git refuses to use unless it is named safe.
func gitFile(name, email, rules string) sandbox.File {
	text := rules + "[include]\n\tpath = /etc/gitconfig\n[safe]\n\tdirectory = *\n"
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

// keepReflogs adds to the settings what lets git gc work where worktrees are read-only: it would rewrite their reflogs,
// fail, and leave that in .git/gc.log, which stops the host's own.
func keepReflogs(f sandbox.File) sandbox.File {
	f.Data = append(f.Data, "[gc]\n\treflogExpire = never\n\treflogExpireUnreachable = never\n"...)
	return f
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

// gitFacts are what the host's settings say about git in a sandbox.
type gitFacts struct {
	name, email string             // the user's identity
	own         gitlayout.Settings // settings of the repository itself
}

// beginGitFacts begins to ask for the host's settings, and returns what waits for them.
func (b *sandboxed) beginGitFacts(ctx context.Context) func() gitFacts {
	known := make(chan struct{})
	var facts gitFacts
	go func() {
		defer close(known)
		facts.name, facts.email = b.gitIdentity(ctx, b.dir)
		facts.own = b.layout.Settings(ctx)
	}()
	return func() gitFacts { <-known; return facts }
}

// reportGit prints what of the host's git is different in the sandbox.
func (b *sandboxed) reportGit(facts gitFacts) {
	for _, note := range b.gitNotes {
		b.Infof("%s", note)
	}
	name, email, whose := facts.name, facts.email, "as on this host"
	if facts.own.Last("user.name")+facts.own.Last("user.email") != "" {
		name, email = cmp.Or(facts.own.Last("user.name"), name), cmp.Or(facts.own.Last("user.email"), email)
		whose = "as the project's own configuration says"
	}
	if name != "" || email != "" {
		b.Infof("aileron: git in the sandbox knows you as %s <%s>, %s", name, email, whose)
	}
	if isTrue(facts.own.Last("commit.gpgsign")) {
		b.Infof("aileron: commits in the sandbox are not signed, although commit.gpgsign is set; sign them on this host: " +
			"git rebase --exec 'git commit --amend --no-edit --gpg-sign' BASE")
	}
	if hooks := facts.own.Last("core.hookspath"); strings.HasPrefix(hooks, "~") || filepath.IsAbs(hooks) &&
		!sandbox.Within(hooks, b.dir) && !b.sees(hooks) {
		b.Infof("aileron: core.hooksPath is %s, which the sandbox does not have: those hooks do not run in it", hooks)
	}
}

// isTrue reports whether a setting of git is switched on (git-config(1), Values).
func isTrue(value string) bool {
	switch strings.ToLower(value) {
	case "true", "yes", "on", "1":
		return true
	}
	return false
}

// proxySetting is a setting of git that leads past HTTPS_PROXY.
var proxySetting = regexp.MustCompile(`^(http\.(.*\.)?|remote\..*\.)proxy$`)

// gitVariables returns settings of git that come after those of a repository (git-config(1), ENVIRONMENT): the sandbox
// has no key to sign with, and only the session's proxy leads out of it, by HTTPS. proxy is its URL; "" is none.
func gitVariables(facts gitFacts, proxy string) []string {
	settings := [][2]string{{"commit.gpgSign", "false"}, {"tag.gpgSign", "false"}, {"push.gpgSign", "false"}}
	if proxy != "" {
		settings = append(settings, [2]string{"include.path", gitHTTPSFile}, [2]string{"http.proxy", proxy})
		for _, name := range slices.Sorted(maps.Keys(facts.own)) {
			if name != "http.proxy" && proxySetting.MatchString(name) && len(settings) < maxGitVariables {
				settings = append(settings, [2]string{name, proxy})
			}
		}
	}
	env := []string{fmt.Sprintf("GIT_CONFIG_COUNT=%d", len(settings))}
	for i, s := range settings {
		env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, s[0]), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, s[1]))
	}
	return env
}

// maxGitVariables bounds the settings that are variables: a repository may be a stranger's.
const maxGitVariables = 64

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

// sees reports whether the sandbox has a path of this host, at the same path, by one of its mounts.
func (b *sandboxed) sees(path string) bool {
	return slices.ContainsFunc(b.mounts, func(m engine.Mount) bool {
		return m.Source == m.Target && sandbox.Within(path, m.Source)
	})
}

// linkRepository adds what git needs of the project's repository that is not in the project: its directory of git, at
// its own path. What a person should know of it is said when the sandbox is there: a start that fails says why, alone.
func (b *sandboxed) linkRepository(ctx context.Context) {
	layout, err := gitlayout.Of(ctx, b.dir, b.sees)
	if layout.Outside() && !b.sees(layout.Git) {
		m := engine.Mount{Source: layout.Git, Target: layout.Git}
		if refused := checkMount(m, b.Home); refused != nil {
			layout, err = gitlayout.Layout{}, refused
		} else {
			b.mounts = append(b.mounts, m)
			b.gitNotes = append(b.gitNotes,
				fmt.Sprintf("aileron: the project is a %s: the repository %s is in the sandbox too, "+
					"at its own path", layout.Kind, layout.Git))
		}
	}
	if err != nil {
		b.gitNotes = append(b.gitNotes, "aileron: warning: git will not work in the sandbox: "+err.Error())
		if help := hint.Of(err); help != "" {
			b.gitNotes = append(b.gitNotes, "  hint: "+help)
		}
	}
	if layout.Outside() && !b.seesReadOnly(layout.Git) {
		b.gitDirs = append(b.gitDirs, layout.Git)
	}
	b.layout = layout
}

// seesReadOnly reports whether a mount of the sandbox's keeps it from changing a path.
func (b *sandboxed) seesReadOnly(path string) bool {
	return slices.ContainsFunc(b.mounts, func(m engine.Mount) bool { return m.ReadOnly && sandbox.Within(path, m.Target) })
}

// maxWorktreeMounts bounds the worktrees of which each has a mount of its own.
const maxWorktreeMounts = 64

// held returns the directories of the project and its repository that the sandbox cannot replace, the outer ones
// first. With .git, it would replace the read-only hooks. What git has of worktrees that it does not see is read-only:
// git worktree prune takes them for removed ones, and what is staged in them would be lost.
func (b *sandboxed) held() []sandbox.Cover {
	var covers []sandbox.Cover
	add := func(dir string, held bool) {
		at := dir
		if rel, err := filepath.Rel(b.dir, dir); err == nil && filepath.IsLocal(rel) {
			at = rel
		}
		covers = append(covers, sandbox.Cover{Source: dir, Path: at, Held: held, Own: !held})
	}
	for _, name := range hostfiles.Held(b.dir) {
		add(filepath.Join(b.dir, name), true)
	}
	others := b.layout.Others
	if len(others) == 0 || b.seesReadOnly(b.layout.Git) {
		return covers
	}
	if len(others) > maxWorktreeMounts {
		b.Infof("aileron: the repository has %d other worktrees: the sandbox cannot add one", len(others))
		add(b.layout.Worktrees(), false)
		if b.layout.Own != "" {
			add(b.layout.Own, true)
		}
		return covers
	}
	add(b.layout.Worktrees(), true)
	for _, w := range others {
		add(w.Admin, false)
	}
	return covers
}

// worktreeLinks returns a .git file for each worktree that the sandbox does not see, at its path: git takes one without
// for a removed one. The project's own is among them where the sandbox does not have the project there: a copy, because
// a mount would be resolved by the engine, and another sandbox of the project could put a link there meanwhile.
func (b *sandboxed) worktreeLinks() []sandbox.File {
	var files []sandbox.File
	worktrees := b.layout.Others
	if b.layout.Own != "" && b.prepared.Place == "" {
		if text, err := readSmall(filepath.Join(b.dir, ".git")); err == nil {
			worktrees = append(slices.Clone(worktrees), gitlayout.Worktree{Path: b.dir, Link: []byte(text)})
		}
	}
	for _, w := range worktrees {
		link := filepath.Join(w.Path, ".git")
		taken := func(m engine.Mount) bool { return sandbox.Within(link, m.Target) }
		if w.Path == "" || sandbox.CheckPlace(w.Path) != nil || sandbox.Within(link, sandbox.Workspace) ||
			b.prepared.Place != "" && sandbox.Within(link, b.prepared.Place) || slices.ContainsFunc(b.mounts, taken) {
			continue
		}
		files = append(files, sandbox.File{Path: link, Mode: 0o644, Data: w.Link})
		if b.ReadOnly && len(files) == maxWorktreeMounts { // each is a mount
			break
		}
	}
	return files
}

// readSmall reads a regular file of a few bytes.
func readSmall(path string) (string, error) {
	data, err := regular.Read(path, 8<<10)
	return string(data), err
}
