package hostfiles

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

// write writes files into dir; a name that ends with * is executable.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		mode := os.FileMode(0o644)
		if rest, ok := strings.CutSuffix(name, "*"); ok {
			name, mode = rest, 0o755
		}
		at := filepath.Join(dir, name)
		must.Do(t, os.MkdirAll(filepath.Dir(at), 0o755))
		must.Do(t, os.WriteFile(at, []byte(text), mode))
		must.Do(t, os.Chmod(at, mode))
	}
}

const plainConfig = `[core]
	repositoryformatversion = 0
	filemode = true
	bare = false
	logallrefupdates = true
[remote "origin"]
	url = https://github.com/acme/tracker.git
	fetch = +refs/heads/*:refs/remotes/origin/*
[branch "main"]
	remote = origin
	merge = refs/heads/main
[user]
	name = Ada Example
	email = ada@example.org
`

// project makes a repository without anything that the host would run but a Makefile and a package.json.
func project(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, map[string]string{
		".git/config": plainConfig, ".git/HEAD": "ref: refs/heads/main\n", ".git/objects/x": "", ".git/refs/x": "",
		".git/hooks/pre-commit.sample*": "#!/bin/sh\n", "Makefile": "all:\n\tgo build ./...\n",
		"package.json": `{"name": "x", "scripts": {"test": "node test.js"}}`, "src/main.go": "package main\n",
	})
	return dir
}

func TestWhatTheHostWouldRunIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		files  map[string]string
		remove string
		path   string
		when   string
		keys   string
	}{
		"project's file": {files: map[string]string{".aileron.toml": "x"}, path: ".aileron.toml", when: whenSandbox},
		"hook": {files: map[string]string{".git/hooks/post-checkout*": "x"}, path: ".git/hooks/post-checkout",
			when: whenGit},
		"hooks elsewhere": {files: config("[core]\n\thooksPath = tools\n"), path: ".git/config", when: whenGit,
			keys: "core.hookspath"},
		"file watcher": {files: config("[Core]\nFSMonitor = ./x\n"), path: ".git/config", when: whenGit,
			keys: "core.fsmonitor"},
		"ssh": {files: config("[core] sshCommand = ./x\n"), path: ".git/config", when: whenGit,
			keys: "user ([core] sshCommand = ./x)"},
		"filter": {files: config("[filter \"x\"]\n\tclean = ./x\n"), path: ".git/config", when: whenGit,
			keys: "filter.x.clean"},
		"alias": {files: config("[alias]\nst = !./x\n"), path: ".git/config", when: whenGit, keys: "alias.st"},
		"include": {files: config("[include]\npath = ../x\n"), path: ".git/config", when: whenGit,
			keys: "include.path"},
		"transport": {files: config("[remote \"o\"]\nurl = ext::sh -c x\n"), path: ".git/config", when: whenGit,
			keys: "remote.o.url"},
		"a repository of this host": {files: config("[remote \"o\"]\nurl = .git/evil\n"), path: ".git/config",
			when: whenGit, keys: "remote.o.url"},
		"a branch whose remote is a path": {files: config("[branch \"x\"]\nremote = .git/evil\n"), path: ".git/config",
			when: whenGit, keys: "branch.x.remote"},
		"a branch whose remote is a path by name": {files: config("[branch \"x\"]\nremote = evil\n"), path: ".git/config",
			when: whenGit, keys: "branch.x.remote"},
		"hook behind a HEAD above": {files: map[string]string{".git/modules/HEAD": "x", ".git/modules/a/HEAD": "x",
			".git/modules/a/hooks/pre-push*": "x"}, path: ".git/modules/a/hooks/pre-push", when: whenGit},
		"machine's tasks": {files: map[string]string{".zed/tasks.json": "[]"}, path: ".zed/tasks.json", when: whenEditor},
		"linter":          {files: map[string]string{"eslint.config.js": "x"}, path: "eslint.config.js", when: whenEditor},
		"instructions":    {files: map[string]string{"sub/AGENTS.md": "x"}, path: "sub/AGENTS.md", when: whenAgent},
		"cached shell":    {files: map[string]string{".direnv/p.rc": "x"}, path: ".direnv/p.rc", when: whenShell},
		"workflow": {files: map[string]string{".github/workflows/x.yml": "x"}, path: ".github/workflows/x.yml",
			when: whenPush},
		"services": {files: map[string]string{"compose.yaml": "x"}, path: "compose.yaml", when: whenCompose},
		"wrapper": {files: map[string]string{"gradle/wrapper/gradle-wrapper.properties": "x"},
			path: "gradle/wrapper/gradle-wrapper.properties", when: whenBuild},
		"start of Python": {files: map[string]string{"sitecustomize.py": "x"}, path: "sitecustomize.py", when: whenPython},
		"toolchain": {files: map[string]string{"rust-toolchain.toml": "x"}, path: "rust-toolchain.toml",
			when: whenCargo},
		"start of R": {files: map[string]string{".Rprofile": "x"}, path: ".Rprofile", when: whenREPL},
		"option as host": {files: config("[remote \"o\"]\nurl = ssh://-oProxyCommand=x/y\n"), path: ".git/config",
			when: whenGit, keys: "remote.o.url"},
		"quoted": {files: config("[core]\nfsmonitor = \"a b\"\n"), path: ".git/config", when: whenGit,
			keys: `core (fsmonitor = "a b")`},
		"harmless, quoted": {files: config("[user]\nname = \"a\\\n[core]\nfsmonitor=x\n"), path: ".git/config",
			when: whenGit, keys: `core.fsmonitor,user (name = "a\)`},
		"worktree's config": {files: map[string]string{
			".git/worktrees/w/HEAD":            "x",
			".git/worktrees/w/config.worktree": "[core]\npager=x\n"}, path: ".git/worktrees/w/config.worktree", when: whenGit,
			keys: "core.pager"},
		"another repository's settings for a worktree": {files: map[string]string{".git/worktrees/w/HEAD": "x",
			".git/worktrees/w/commondir": "../../../evil\n"}, path: ".git/worktrees/w/commondir", when: whenGit},
		"a worktree": {files: map[string]string{".git/worktrees/w/HEAD": "x", ".git/worktrees/w/commondir": "../..\n"},
			path: ".git/worktrees/w/commondir", when: whenWorktree},
		"a rebase that runs commands": {files: map[string]string{
			".git/rebase-merge/git-rebase-todo": "pick 1 exec x\n \tx ./evil\n"},
			path: ".git/rebase-merge/git-rebase-todo", when: whenRebase},
		"submodule's hook": {files: map[string]string{".git/modules/a/b/HEAD": "x", ".git/modules/a/b/hooks/pre-push*": "x"},
			path: ".git/modules/a/b/hooks/pre-push", when: whenGit},
		"nested repository": {files: map[string]string{"sub/.git/config": "[core]\nfsmonitor=x\n"}, path: "sub/.git/config",
			when: whenGit, keys: "core.fsmonitor"},
		"bare repository": {files: map[string]string{"doc/HEAD": "x", "doc/objects/x": "", "doc/refs/x": "",
			"doc/config": "[core]\nfsmonitor=x\n"}, path: "doc/config", when: whenGit, keys: "core.fsmonitor"},
		"moved repository": {files: map[string]string{"sub/.git": "gitdir: ../evil\n"}, path: "sub/.git", when: whenGit},
		"shell":            {files: map[string]string{".envrc": "./x"}, path: ".envrc", when: whenShell},
		"task": {files: map[string]string{".vscode/tasks.json": "{}"}, path: ".vscode/tasks.json",
			when: whenCode},
		"jetbrains": {files: map[string]string{".idea/runConfigurations/x.xml": "<x/>"},
			path: ".idea/runConfigurations/x.xml", when: whenJetBrains},
		"husky": {files: map[string]string{".husky/pre-commit*": "x"}, path: ".husky/pre-commit",
			when: whenCommit},
		"agent's settings": {files: map[string]string{".claude/settings.json": "{}"}, path: ".claude/settings.json",
			when: whenClaude},
		"agent's servers": {files: map[string]string{".mcp.json": "{}"}, path: ".mcp.json", when: whenClaude},
		"scripts": {files: map[string]string{"package.json": `{"scripts": {"test": "node test.js", "postinstall": "./x"}}`},
			path: "package.json", when: whenNPM},
		"scripts, hidden by others": {files: map[string]string{
			"package.json": `{"scripts": {"test": "./x"}, "Scripts": {"test": "node test.js"}}`},
			path: "package.json", when: whenNPM},
		"scripts, hidden by none": {files: map[string]string{
			"sub/package.json": `{"scripts": {"install": "./x"}, "Scripts": null}`}, path: "sub/package.json", when: whenNPM},
		"scripts of another type": {files: map[string]string{"sub/package.json": `{"scripts": "x"}`},
			path: "sub/package.json", when: whenNPM},
		"addon":     {files: map[string]string{"binding.gyp": "{}"}, path: "binding.gyp", when: whenNPM},
		"container": {files: map[string]string{".devcontainer.json": "{}"}, path: ".devcontainer.json", when: whenContainer},
		"mercurial": {files: map[string]string{".hg/hgrc": "[hooks]\n"}, path: ".hg/hgrc", when: whenMercurial},
		"jujutsu":   {files: map[string]string{".jj/repo/config.toml": "x"}, path: ".jj/repo/config.toml", when: whenJujutsu},
		"another repository of jujutsu": {files: map[string]string{"sub/.jj/repo": "../../evil"}, path: "sub/.jj/repo",
			when: whenJujutsu},
		"bare repository with its parts elsewhere": {files: map[string]string{"doc/HEAD": "ref: refs/heads/x\n",
			"doc/commondir": "../other\n"}, path: "doc/commondir", when: whenGit},
		"no JSON":    {files: map[string]string{"package.json": `{"scripts": `}, path: "package.json", when: whenNPM},
		"makefile":   {files: map[string]string{"Makefile": "all:\n\t./x\n"}, path: "Makefile", when: whenMake},
		"removed":    {remove: "Makefile", path: "Makefile", when: whenMake},
		"executable": {files: map[string]string{"tools/lint*": "x"}, path: "tools/lint", when: whenExecuted},
	} {
		t.Run(name, func(t *testing.T) {
			dir := project(t)
			before := Take(t.Context(), dir)
			write(t, dir, c.files)
			if c.remove != "" {
				must.Do(t, os.Remove(filepath.Join(dir, c.remove)))
			}
			changes := before.Changes(Take(t.Context(), dir))
			if len(changes) != 1 {
				t.Fatalf("the changes: %+v", changes)
			}
			got := changes[0]
			if got.Path != c.path || got.When != c.when || strings.Join(got.Keys, ",") != c.keys {
				t.Errorf("got %+v, want %s, when you %s, keys %s", got, c.path, c.when, c.keys)
			}
			if got.Before == got.After {
				t.Errorf("the hashes do not differ: %+v", got)
			}
		})
	}
}

func config(text string) map[string]string {
	return map[string]string{".git/config": plainConfig + text}
}

func TestADaysWorkIsNotReported(t *testing.T) {
	dir := project(t)
	before := Take(t.Context(), dir)
	write(t, dir, map[string]string{
		".git/config": plainConfig + "[branch \"fix/a-b\"]\n\tremote = origin\n\tmerge = refs/heads/fix/a-b\n" +
			"[remote \"fork\"]\n\turl = git@github.com:ada/tracker.git\n\tfetch = +refs/heads/*:refs/remotes/fork/*\n",
		".git/objects/y": "", ".git/index": "x", ".git/rebase-merge/git-rebase-todo": "pick 1 exec x\n# x, exec\nbreak\n",
		"src/main.go": "package main // changed\n", "src/new.py": "x",
		"package.json":           `{"scripts":{"test":"node test.js"},"name":"x","dependencies":{"left-pad":"1"}}`,
		"node_modules/.bin/tsc*": "x", "node_modules/a/package.json": `{"scripts": {"install": "x"}}`, ".venv/bin/pip*": "x",
	})
	if changes := before.Changes(Take(t.Context(), dir)); len(changes) != 0 {
		t.Errorf("the changes: %+v", changes)
	}
}

// A link in the place of what git has for a worktree or a submodule leads it to other settings.
func TestALinkToAnotherDirectoryOfGitIsFound(t *testing.T) {
	for _, at := range []string{".git/worktrees/w", ".git/modules/m", ".git/modules/a/b", ".git/rebase-merge"} {
		dir := project(t)
		before := Take(t.Context(), dir)
		write(t, dir, map[string]string{filepath.Dir(at) + "/HEAD": "x"})
		must.Do(t, os.Symlink("../../evil", filepath.Join(dir, at)))
		changes := before.Changes(Take(t.Context(), dir))
		if len(changes) != 1 || changes[0].Path != at || changes[0].IsWorktree() {
			t.Errorf("%s: %+v", at, changes)
		}
	}
}

// What git itself writes is read, whatever its release.
func TestARepositoryThatGitMadeHasNothingToReport(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("there is no git on this machine")
	}
	dir := t.TempDir()
	run := func(args ...string) {
		t.Helper()
		cmd := exec.Command(git, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "HOME="+dir)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	run("init", "-q")
	before := Take(t.Context(), dir)
	run("remote", "add", "origin", "https://github.com/acme/tracker.git")
	run("config", "user.email", "ada@example.org")
	run("checkout", "-q", "-b", "work")
	run("commit", "-q", "--allow-empty", "-m", "x", "--author", "a <a@example.org>")
	run("config", "branch.work.remote", "origin")
	if changes := before.Changes(Take(t.Context(), dir)); len(changes) != 0 {
		t.Errorf("the changes: %+v", changes)
	}
	run("config", "core.fsmonitor", "./x")
	if changes := before.Changes(Take(t.Context(), dir)); len(changes) != 1 || changes[0].Keys[0] != "core.fsmonitor" {
		t.Errorf("the changes: %+v", changes)
	}
}

// A sandbox writes the project: no link leads out of it, no pipe holds the reader, and no number of files is too many.
func TestAHostileProjectIsReadWithinBounds(t *testing.T) {
	dir, outside := project(t), t.TempDir()
	write(t, outside, map[string]string{"tasks.json": "secret", ".envrc": "secret"})
	for name, target := range map[string]string{
		".vscode": outside, ".envrc": filepath.Join(outside, ".envrc"), ".husky": "../../../../etc", "loop": ".",
	} {
		must.Do(t, os.Symlink(target, filepath.Join(dir, name)))
	}
	must.Do(t, syscall.Mkfifo(filepath.Join(dir, ".mcp.json"), 0o644))
	before := Take(t.Context(), dir)
	write(t, outside, map[string]string{"tasks.json": "other", ".envrc": "other"})
	if changes := before.Changes(Take(t.Context(), dir)); len(changes) != 0 {
		t.Errorf("a link was followed: %+v", changes)
	}
	deep := dir
	for range 2 * maxDepth {
		deep = filepath.Join(deep, "d")
	}
	must.Do(t, os.MkdirAll(deep, 0o755))
	if s := Take(t.Context(), dir); !s.Incomplete {
		t.Error("a tree that is too deep reads as complete")
	}
	covers, err := Copy(dir, []string{".vscode", ".envrc", ".mcp.json", "Makefile", ".git/hooks"},
		filepath.Join(t.TempDir(), "c"))
	if err != nil || fmt.Sprint(len(covers)) != "2" {
		t.Errorf("copied %+v, %v: want the Makefile and the hooks only", covers, err)
	}
}

// A cover that lacks what is there would take it away from the sandbox, and directories fill a disk, too.
func TestACopyOfTooManyFilesIsRefused(t *testing.T) {
	for name, fill := range map[string]func(at string) error{
		"files":       func(at string) error { return os.WriteFile(at, nil, 0o600) },
		"directories": func(at string) error { return os.Mkdir(at, 0o700) },
	} {
		dir := t.TempDir()
		for i := range maxCoverFiles + 1 {
			must.Do(t, os.MkdirAll(filepath.Join(dir, ".husky"), 0o700))
			must.Do(t, fill(filepath.Join(dir, ".husky", fmt.Sprint(i))))
		}
		covers, err := Copy(dir, []string{".husky"}, filepath.Join(t.TempDir(), "c"))
		if err == nil || !strings.Contains(err.Error(), "there are more than 2000 files") {
			t.Errorf("%s: %v, %v", name, covers, err)
		}
	}
}

func TestAnEndedContextMakesASnapshotIncomplete(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if !Take(ctx, project(t)).Incomplete {
		t.Error("it reads as complete")
	}
}

func TestACopyIsReadableAndExecutableAsItsSource(t *testing.T) {
	dir := project(t)
	write(t, dir, map[string]string{".git/hooks/pre-commit*": "#!/bin/sh\n"})
	to := filepath.Join(t.TempDir(), "c")
	covers, err := Copy(dir, HookDirs(dir), to)
	if err != nil || len(covers) != 1 || covers[0].Path != ".git/hooks" {
		t.Fatalf("%+v, %v", covers, err)
	}
	info, err := os.Stat(filepath.Join(covers[0].Source, "pre-commit"))
	if err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("%v, %v", info, err)
	}
	if places := strings.Join(Take(t.Context(), dir).Paths(),
		" "); places != ".git/config .git/hooks Makefile package.json" {
		t.Errorf("the places to protect: %s", places)
	}
}

// What a configuration of git names is followed: a person had it before, and an agent changes what it leads to.
func TestWhatGitsSettingsNameIsWatched(t *testing.T) {
	dir := project(t)
	write(t, dir, map[string]string{
		".git/config": plainConfig +
			"[include]\n\tpath = ../shared/git\n\tpath = /etc/none\n\tpath = ../../outside\n",
		"shared/git": "[core]\n\thooksPath = \"tools/hooks\"\n\thooksPath = none\n[include]\npath = " +
			"../shared/git\n",
		"tools/hooks/pre-commit": "x",
	})
	before := Take(t.Context(), dir)
	if before.Incomplete {
		t.Error("it reads as incomplete")
	}
	// shared/git is two directories from the top as .git/config is, so its hooks are found, too.
	write(t, dir, map[string]string{"shared/git": "[core]\n\thooksPath = \"tools/hooks\"\n\tfsmonitor = ./x\n",
		"tools/hooks/pre-commit": "y"})
	var got []string
	for _, c := range before.Changes(Take(t.Context(), dir)) {
		got = append(got, c.Path+" "+strings.Join(c.Keys, ","))
	}
	want := "shared/git core.fsmonitor,core.hookspath,include.path; tools/hooks/pre-commit "
	if strings.Join(got, "; ") != want {
		t.Errorf("got %q, want %q", strings.Join(got, "; "), want)
	}
}

// A sandbox can make any number of files and settings: they cost no memory, and hide nothing that lies above them.
func TestAFloodHidesNothingThatMattersMore(t *testing.T) {
	dir := project(t)
	before := Take(t.Context(), dir)
	flood := map[string]string{".git/hooks/pre-push*": "x", ".envrc": "x"}
	for i := range maxPrograms + 10 {
		flood[fmt.Sprintf("a%d*", i)] = "x"
	}
	for i := range maxWhole + 10 {
		flood[fmt.Sprintf(".claude/a%d", i)], flood[fmt.Sprintf(".git/hooks/a%d", i)] = "x", "x"
	}
	var settings strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&settings, "%x\n", i)
	}
	flood[".git/config"] = plainConfig + settings.String()
	write(t, dir, flood)
	after := Take(t.Context(), dir)
	programs := 0
	for _, e := range after.entries {
		if e.when == whenExecuted {
			programs++
		}
	}
	if !after.Incomplete || programs > maxPrograms {
		t.Errorf("incomplete %v, %d programs", after.Incomplete, programs)
	}
	if n := len(after.entries[".git/config"].keys); n > maxKeys+1 {
		t.Errorf("%d settings are kept", n)
	}
	found := map[string]bool{}
	for _, c := range before.Changes(after) {
		found[c.Path] = true
	}
	if !found[".git/config"] || !found[".envrc"] {
		t.Error("the flood hides .git/config or .envrc")
	}
}

// A sandbox sets the time of a file, and no file is so large that it is not compared.
func TestAFileWithItsOldTimeAndSizeIsChanged(t *testing.T) {
	dir := project(t)
	write(t, dir, map[string]string{"tools/lint*": "good"})
	at := filepath.Join(dir, "tools/lint")
	info := must.Get(os.Stat(at))(t)
	before := Take(t.Context(), dir)
	write(t, dir, map[string]string{"tools/lint*": "evil"})
	must.Do(t, os.Chtimes(at, info.ModTime(), info.ModTime()))
	if changes := before.Changes(Take(t.Context(), dir)); len(changes) != 1 || changes[0].Path != "tools/lint" {
		t.Errorf("the changes: %+v", changes)
	}
}

// What is protected is not only what runs something now.
func TestPlacesInWhichNothingMattersYetAreProtected(t *testing.T) {
	dir, other := t.TempDir(), filepath.Join(t.TempDir(), "hooks", "repo")
	write(t, dir, map[string]string{"package.json": "{}", "src/hooks/Makefile": "x", "src/hooks/use.ts": "x"})
	write(t, other, map[string]string{"config": plainConfig, "hooks/pre-push*": "x"})
	want := fmt.Sprintf("%[1]s/config %[1]s/hooks package.json src/hooks/Makefile", other)
	if places := strings.Join(Take(t.Context(), dir, other).Paths(), " "); places != want {
		t.Errorf("the places to protect: %s, want %s", places, want)
	}
}
