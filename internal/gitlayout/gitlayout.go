// Package gitlayout finds out how a project is linked to its git repository, so that a sandbox which has the project
// has what git needs, and loses nothing of what it does not have.
//
// A project is a repository with all of it in .git; a worktree, whose .git is a file that names a directory in the
// repository's; a submodule, whose .git names one among the modules of the repository above; a directory somewhere in
// a repository; or it is linked to objects and references elsewhere (git clone --shared, git init --separate-git-dir,
// Android's repo). Start with [Of].
//
// The .git of a project may be a stranger's, who names any directory of this host in it. So only what names the
// project in return, in a file of the repository, belongs to it.
package gitlayout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/regular"
)

// Layout is how a project is linked to its repository. The zero value is that of a project without one.
type Layout struct {
	Kind string // of a project whose repository is elsewhere, for people: "worktree", "submodule"
	// Git is the repository's directory of git: that of its references and objects. "" is none.
	Git string
	// Own is the directory in Git that belongs to a worktree alone; "" for a project of another kind.
	Own string
	// Others are the worktrees of the repository that the sandbox does not have.
	Others []Worktree
}

// Worktree is a worktree of a repository.
type Worktree struct {
	Admin string // its directory below worktrees in the directory of git
	Path  string // where it is, or was, on this host
	Link  []byte // what its .git file says
}

// Outside reports whether git needs a directory that does not lie in the project.
func (l Layout) Outside() bool { return l.Kind != "" }

// Worktrees returns the directory in which git has a directory for each worktree.
func (l Layout) Worktrees() string { return filepath.Join(l.Git, "worktrees") }

// Of returns the layout of a project, an absolute path without links. seen reports whether the sandbox has a path of
// this host, at the same path, besides the project. The error is why git will not work with what the sandbox has, and
// its hint what to do about it.
func Of(ctx context.Context, project string, seen func(string) bool) (Layout, error) {
	file := filepath.Join(project, ".git")
	info, err := os.Lstat(file)
	var l Layout
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return l, checkAbove(project, seen)
	case err != nil:
		return l, fmt.Errorf("look at the project's repository: %w", err)
	case info.Mode()&fs.ModeSymlink != 0:
		return l, checkLink(project, file, seen)
	case info.IsDir():
		l.Git = file
	default:
		if l, err = linked(ctx, project, file, seen); err != nil || l.Git == "" {
			return l, err
		}
	}
	l.Others = others(l, func(path string) bool { return within(path, project) || seen(path) })
	return l, checkParts(l.Git, project, seen)
}

// linked returns the layout of a project whose .git is a file.
func linked(ctx context.Context, project, file string, seen func(string) bool) (l Layout, err error) {
	text, err := readSmall(file)
	to, isLink := strings.CutPrefix(strings.TrimSpace(text), "gitdir: ")
	if err != nil || !isLink {
		return l, nil //nolint:nilerr // no repository
	}
	fail := func(err error) (Layout, error) {
		return Layout{}, fmt.Errorf("find the repository of the project: %w", err)
	}
	own, err := filepath.EvalSymlinks(absolute(to, project))
	if err != nil {
		return fail(err)
	}
	l = Layout{Kind: "submodule", Git: own}
	if filepath.Base(filepath.Dir(own)) == "worktrees" {
		l = Layout{Kind: "worktree", Git: filepath.Dir(filepath.Dir(own)), Own: own}
	}
	// Another sandbox of this project could put a link in its place after this look at it, and the engine would mount
	// what that leads to.
	if within(l.Git, project) {
		return fail(fmt.Errorf("%s lies in the project itself", l.Git))
	}
	names, err := l.names(ctx)
	if err != nil {
		return fail(err)
	}
	switch {
	case names == "" && seen(own):
		l.Kind = "repository with its directory of git elsewhere"
	case names == "":
		return fail(hint.New(fmt.Errorf("the project's .git names %s, which does not name this project in return", own),
			"if it is yours, add --mount %s", own))
	case names != project:
		return fail(fmt.Errorf("%s names the %s %s, and not this project", own, l.Kind, names))
	}
	for _, part := range []string{"HEAD", "objects", "refs"} {
		if _, err := os.Lstat(filepath.Join(l.Git, part)); err != nil {
			return fail(fmt.Errorf("%s is none: %w", l.Git, err))
		}
	}
	return l, nil
}

// names returns the project that the repository names, without links: in the file gitdir of a worktree, or in the
// setting core.worktree (git-config(1)). "" is none.
func (l Layout) names(ctx context.Context) (string, error) {
	if l.Own != "" {
		back, err := readSmall(filepath.Join(l.Own, "gitdir"))
		if err != nil {
			return "", err
		}
		return resolved(filepath.Dir(absolute(strings.TrimSpace(back), l.Own))), nil
	}
	if value := l.Settings(ctx).Last("core.worktree"); value != "" {
		return resolved(absolute(value, l.Git)), nil
	}
	return "", nil
}

// Settings are settings of git by name: their values in order.
type Settings map[string][]string

// Last returns the value that applies of a name with one; "" is none.
func (s Settings) Last(name string) string {
	if values := s[name]; len(values) > 0 {
		return values[len(values)-1]
	}
	return ""
}

// Settings returns what the repository's own configuration sets, by name, with the section and the key in lower case.
// What it includes is left out: it may name any file.
func (l Layout) Settings(ctx context.Context) Settings {
	all := Settings{}
	if l.Git == "" {
		return all
	}
	files := []string{filepath.Join(l.Git, "config")}
	if own := filepath.Join(cmp.Or(l.Own, l.Git), "config.worktree"); exists(own, "") {
		files = append(files, own)
	}
	for _, file := range files {
		for entry := range strings.SplitSeq(list(ctx, file), "\x00") {
			name, value, has := strings.Cut(entry, "\n")
			if !has { // a name alone is true
				value = "true"
			}
			if name != "" {
				all[name] = append(all[name], value)
			}
		}
	}
	return all
}

// gitTime bounds a command of git.
const gitTime = 5 * time.Second

// maxConfig bounds a configuration that is read.
const maxConfig = 1 << 20

// list returns the settings of a file of git's as git config --null --list prints them; "" where there is none.
func list(ctx context.Context, file string) string {
	if info, err := os.Lstat(file); err != nil || !info.Mode().IsRegular() || info.Size() > maxConfig {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, gitTime)
	defer cancel()
	//nolint:gosec // of a file, git reads the settings and runs nothing
	cmd := exec.CommandContext(ctx, "git", "config", "--file", file, "--no-includes", "--null", "--list")
	cmd.Dir, cmd.Env = "/", []string{"PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null"}
	out, err := cmd.Output()
	if err != nil {
		return ""
	}
	return string(out)
}

// checkAbove returns an error for a project that is a directory of a repository. A person's home is not looked at: its
// repository holds settings, and is not the project's.
func checkAbove(project string, seen func(string) bool) error {
	home, _ := os.UserHomeDir() // "": there is none
	for dir := filepath.Dir(project); dir != home && dir != "/"; dir = filepath.Dir(dir) {
		git := filepath.Join(dir, ".git")
		info, err := os.Lstat(git)
		if err != nil || seen(git) {
			continue
		}
		if text, err := readSmall(git); info.IsDir() && exists(git, "HEAD") || err == nil && strings.HasPrefix(text,
			"gitdir: ") {
			return hint.New(fmt.Errorf("the project is a directory of the repository %s, which the sandbox does not have", dir),
				"--dir %s gives it the whole repository", dir)
		}
	}
	return nil
}

// checkLink returns an error for a project whose .git is a link to what the sandbox does not have.
func checkLink(project, file string, seen func(string) bool) error {
	to, err := filepath.EvalSymlinks(file)
	if err != nil {
		return fmt.Errorf("find the repository of the project: %w", err)
	}
	if within(to, project) || seen(to) {
		return nil
	}
	return missing(file, to)
}

func missing(what, to string) error {
	return hint.New(fmt.Errorf("%s leads to %s, which the sandbox does not have", what, to),
		"if it is yours, add --mount %s",
		to)
}

// checkParts returns an error for a directory of git of which a part is elsewhere, where the sandbox does not have it:
// links, as repo and git-new-workdir make them, or the objects of another repository (gitrepository-layout(5)).
func checkParts(git, project string, seen func(string) bool) error {
	has := func(path string) bool { return within(path, project) || within(path, git) || seen(path) }
	entries, _ := os.ReadDir(git)
	for _, e := range entries {
		if e.Type()&fs.ModeSymlink == 0 || e.Name() == "hooks" {
			continue
		}
		at := filepath.Join(git, e.Name())
		if to, err := filepath.EvalSymlinks(at); err == nil && !has(to) {
			return missing(at, to)
		}
	}
	objects := filepath.Join(git, "objects")
	alternates := filepath.Join(objects, "info", "alternates")
	text, _ := readSmall(alternates)
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if to, err := filepath.EvalSymlinks(absolute(line, objects)); err == nil && !has(to) {
			return missing(alternates, to)
		}
	}
	return nil
}

// maxWorktrees bounds the worktrees of a repository that are looked at.
const maxWorktrees = 1000

// others returns the worktrees of a repository that the sandbox does not have.
func others(l Layout, has func(string) bool) []Worktree {
	dir, err := os.Open(l.Worktrees())
	if err != nil {
		return nil // the repository has none
	}
	defer dir.Close()
	entries, _ := dir.ReadDir(maxWorktrees)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	var found []Worktree
	for _, e := range entries {
		admin := filepath.Join(l.Worktrees(), e.Name())
		if !e.IsDir() || admin == l.Own {
			continue
		}
		w := Worktree{Admin: admin, Link: []byte("gitdir: " + admin + "\n")}
		if back, err := readSmall(filepath.Join(admin, "gitdir")); err == nil {
			link := absolute(strings.TrimSpace(back), admin)
			w.Path = filepath.Dir(link)
			if text, err := readSmall(link); err == nil && strings.HasPrefix(text, "gitdir: ") {
				w.Link = []byte(text)
			}
		}
		if w.Path == "" || !has(w.Path) {
			found = append(found, w)
		}
	}
	return found
}

func absolute(path, dir string) string {
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	return filepath.Clean(path)
}

// resolved returns a path without links, or the path itself if it leads to nothing.
func resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

func exists(dir, name string) bool {
	_, err := os.Lstat(filepath.Join(dir, name))
	return err == nil
}

// readSmall reads a regular file of a few bytes.
func readSmall(path string) (string, error) {
	data, err := regular.Read(path, 8<<10)
	return string(data), err
}

func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}
