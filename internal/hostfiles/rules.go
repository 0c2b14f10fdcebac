package hostfiles

import (
	"path"
	"strings"
)

// When the host runs a file: the ends of "is run when you …".
const (
	whenGit       = "use git here"
	whenWorktree  = "use git in a worktree of it"
	whenRebase    = "go on with the rebase here"
	whenMercurial = "use Mercurial here"
	whenJujutsu   = "use Jujutsu here"
	whenShell     = "enter the directory with direnv, mise or the like"
	whenCode      = "open the project in VS Code or Cursor"
	whenJetBrains = "open the project in a JetBrains IDE"
	whenEditor    = "open a file here with an editor that reads it"
	whenClaude    = "start Claude Code here"
	whenAgent     = "start a coding agent here"
	whenNPM       = "use npm, yarn or pnpm here"
	whenMake      = "use make or the like here"
	whenCommit    = "commit, with a hook manager"
	whenContainer = "open the project in a development container"
	whenCargo     = "use cargo here"
	whenDebug     = "debug here with gdb"
	whenPython    = "use Python, pip or pytest here"
	whenBuild     = "build here"
	whenCompose   = "use docker compose, Vagrant or the like here"
	whenPush      = "push (on the machines that build the project)"
	whenRuby      = "use Ruby or Bundler here"
	whenREPL      = "start an interpreter here"
	whenAnsible   = "use Ansible here"
	whenSandbox   = "launch a sandbox here"
	whenExecuted  = "run it"
)

// wholeDirs are directories of which every file is watched.
var wholeDirs = map[string]string{
	".vscode": whenCode, ".cursor": whenCode, ".windsurf": whenCode, ".idea": whenJetBrains, ".run": whenJetBrains,
	".zed": whenEditor, ".vs": whenEditor, ".vim": whenEditor, ".nvim": whenEditor,
	".claude": whenClaude, ".codex": whenAgent, ".opencode": whenAgent, ".gemini": whenAgent, ".continue": whenAgent,
	".roo": whenAgent, ".kiro": whenAgent, ".amazonq": whenAgent, ".clinerules": whenAgent, ".agents": whenAgent,
	".husky": whenCommit, ".githooks": whenGit, ".git-hooks": whenGit, ".hooks": whenGit, ".devcontainer": whenContainer,
	".direnv": whenShell, ".mise": whenShell, "mise-tasks": whenShell, ".mvn": whenBuild, ".bundle": whenRuby,
	".github": whenPush, ".gitea": whenPush, ".forgejo": whenPush, ".circleci": whenPush, ".buildkite": whenPush,
}

// files are names that are watched wherever they are: what an editor, a shell, git or an agent runs by itself, and what
// a person runs without a look at it. What people edit every day, as most files of a build, is not here.
var files = invert(map[string][]string{
	whenShell: {".envrc", "mise.toml", ".mise.toml", "mise.local.toml", ".mise.local.toml", ".rtx.toml", ".autoenv",
		".autoenv.zsh", ".env", ".tool-versions", "devbox.json", "devenv.nix", "devenv.yaml", "flake.nix", "shell.nix",
		"default.nix"},
	whenClaude: {".mcp.json", "CLAUDE.md", "CLAUDE.local.md"},
	whenAgent: {"opencode.json", "opencode.jsonc", "AGENTS.md", "AGENTS.override.md", "GEMINI.md", ".cursorrules",
		".windsurfrules", ".clinerules", ".goosehints", ".aider.conf.yml", "copilot-instructions.md"},
	whenGit: {".gitmodules", ".lfsconfig"},
	whenEditor: {".vimrc", ".exrc", ".nvim.lua", ".nvimrc", ".lvimrc", ".lazy.lua", ".dir-locals.el", ".dir-locals-2.el",
		".ycm_extra_conf.py", ".pylintrc", "pylintrc", ".clangd", "Directory.Build.props", "Directory.Build.targets",
		"eslint.config.js", "eslint.config.mjs", "eslint.config.cjs", "eslint.config.ts", ".eslintrc.js", ".eslintrc.cjs",
		".prettierrc.js", ".prettierrc.cjs", ".prettierrc.mjs", "prettier.config.js", "prettier.config.mjs",
		"prettier.config.cjs", "stylelint.config.js", "tailwind.config.js"},
	whenDebug: {".gdbinit", ".lldbinit", ".pdbrc"},
	whenNPM: {"package.json", ".npmrc", ".yarnrc.yml", ".yarnrc", ".pnpmfile.cjs", ".pnpmfile.mjs", "pnpm-workspace.yaml",
		".pnp.cjs", ".pnp.loader.mjs", "bunfig.toml", "deno.json", "deno.jsonc",
		"binding.gyp"}, // npm install builds it, without a script that names it
	whenMake: {"Makefile", "makefile", "GNUmakefile", "justfile", "Justfile", ".justfile", "Taskfile.yml", "Taskfile.yaml",
		"Rakefile", "CMakePresets.json"},
	whenBuild: {"gradle.properties", "gradle-wrapper.properties", "gradle-wrapper.jar", ".bazelrc", ".bazelversion",
		".bazeliskrc"},
	whenCompose: {"compose.yaml", "compose.yml", "docker-compose.yml", "docker-compose.yaml", "compose.override.yaml",
		"compose.override.yml", "docker-compose.override.yml", "Tiltfile", "Vagrantfile", "skaffold.yaml"},
	whenCommit: {".pre-commit-config.yaml", "lefthook.yml", ".lefthook.yml", "lefthook.yaml", "lefthook.toml",
		"lefthook.json", "lefthook-local.yml", ".lefthook-local.yml", ".overcommit.yml", ".huskyrc", ".huskyrc.js",
		".lintstagedrc.js", ".lintstagedrc.mjs", ".lintstagedrc", "lint-staged.config.js", ".simple-git-hooks.json",
		".simple-git-hooks.js"},
	whenPush:      {".gitlab-ci.yml", "azure-pipelines.yml", "bitbucket-pipelines.yml", ".travis.yml", "Jenkinsfile"},
	whenSandbox:   {".aileron.toml", "aileron.Dockerfile"},
	whenCargo:     {"build.rs", "rust-toolchain", "rust-toolchain.toml"},
	whenPython:    {"conftest.py", "sitecustomize.py", "usercustomize.py"},
	whenRuby:      {".irbrc", ".pryrc", ".rspec", ".rubocop.yml"},
	whenREPL:      {".Rprofile", ".ghci", ".ocamlinit", ".iex.exs", ".octaverc"},
	whenAnsible:   {"ansible.cfg"},
	whenContainer: {".devcontainer.json"},
	whenMercurial: {"hgrc"},
})

// invert returns when the host runs each of the names.
func invert(names map[string][]string) map[string]string {
	when := map[string]string{}
	for w, all := range names {
		for _, name := range all {
			when[name] = w
		}
	}
	return when
}

// whenFile returns when the host runs a file of a directory, "" for never.
func whenFile(in, name string) string {
	if when := files[name]; when != "" {
		return when
	}
	switch {
	case strings.HasSuffix(name, ".code-workspace"):
		return whenCode
	case strings.HasPrefix(name, "config") && path.Base(in) == ".cargo":
		return whenCargo
	case strings.HasPrefix(name, ".envrc."):
		return whenShell
	case (strings.HasPrefix(name, "mise") || strings.HasPrefix(name, "lefthook")) && path.Base(in) == ".config":
		return whenShell
	case name == "config.toml" && strings.HasSuffix(in, ".jj/repo"), name == "workspace-config.toml" &&
		strings.HasSuffix(in, ".jj"), name == "repo" && path.Base(in) == ".jj":
		return whenJujutsu
	case strings.HasSuffix(name, ".pth"):
		return whenPython
	}
	return ""
}

// skipped are directories that are not looked into: their files are not written by hand, and a project can have a
// hundred thousand of them.
var skipped = map[string]bool{"node_modules": true, "__pycache__": true}

// builtDirs are directories of which executable files are not watched: builds fill them.
var builtDirs = map[string]bool{".venv": true, "venv": true, ".tox": true, "target": true, "build": true, "dist": true}
