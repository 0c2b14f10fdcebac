package hostfiles

import (
	"path"
	"strings"
)

// When the host runs a file: the ends of "is run when you …".
const (
	whenGit       = "use git here"
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
	whenPython    = "run pytest here"
	whenSandbox   = "launch a sandbox here"
	whenExecuted  = "run it"
)

// wholeDirs are directories of which every file is watched.
var wholeDirs = map[string]string{
	".vscode": whenCode, ".cursor": whenCode, ".idea": whenJetBrains, ".run": whenJetBrains,
	".claude": whenClaude, ".codex": whenAgent, ".opencode": whenAgent, ".gemini": whenAgent,
	".husky": whenCommit, ".githooks": whenGit, ".devcontainer": whenContainer,
}

// files are names that are watched wherever they are.
var files = map[string]string{
	".envrc": whenShell, "mise.toml": whenShell, ".mise.toml": whenShell, ".autoenv": whenShell,
	".tool-versions": whenShell,
	".mcp.json":      whenClaude, "opencode.json": whenAgent, "opencode.jsonc": whenAgent,
	".gitmodules": whenGit,
	".vimrc":      whenEditor, ".exrc": whenEditor, ".nvim.lua": whenEditor, ".nvimrc": whenEditor,
	".dir-locals.el": whenEditor,
	".gdbinit":       whenDebug,
	"package.json":   whenNPM, ".npmrc": whenNPM, ".yarnrc.yml": whenNPM, ".yarnrc": whenNPM, ".pnpmfile.cjs": whenNPM,
	"Makefile": whenMake, "makefile": whenMake, "GNUmakefile": whenMake, "justfile": whenMake, "Justfile": whenMake,
	"Taskfile.yml": whenMake, "Taskfile.yaml": whenMake, "Rakefile": whenMake,
	".pre-commit-config.yaml": whenCommit, "lefthook.yml": whenCommit, ".lefthook.yml": whenCommit,
	".aileron.toml": whenSandbox, "aileron.Dockerfile": whenSandbox,
	"build.rs": whenCargo, "conftest.py": whenPython,
}

// whenFile returns when the host runs a file, "" for never.
func whenFile(at string) string {
	name := path.Base(at)
	if when := files[name]; when != "" {
		return when
	}
	switch dir := path.Base(path.Dir(at)); {
	case strings.HasSuffix(name, ".code-workspace"):
		return whenCode
	case dir == ".cargo" && strings.HasPrefix(name, "config"):
		return whenCargo
	}
	return ""
}

// skipped are directories that are not looked into: their files are not written by hand, and a project can have a
// hundred thousand of them.
var skipped = map[string]bool{"node_modules": true, "__pycache__": true}

// builtDirs are directories of which executable files are not watched: builds fill them.
var builtDirs = map[string]bool{".venv": true, "venv": true, ".tox": true, "target": true, "build": true, "dist": true}
