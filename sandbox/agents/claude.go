package agents

import _ "embed"

//go:embed claude.Dockerfile
var claudeRecipe string

//go:embed claude.sh
var claudePrelude string

// claude is Claude Code, Anthropic's agent: one self-contained binary.
//
// It keeps its state below HOME, which has to be writable, and accepts a
// placeholder in ANTHROPIC_API_KEY as its key. Two calls to its provider's own
// host cannot be switched off: its organisation's settings and limits. They are
// denied without harm, because a denial is a 403: after a 502 it would retry for
// many seconds.
func claude() Agent {
	return Agent{
		Name:     "claude",
		Commands: []string{"claude"},
		Env: map[string]string{
			// Settings, statistics, experiments: a dozen denied requests at every
			// start.
			"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
			// The image pins the version; an update would be lost with the sandbox.
			"DISABLE_AUTOUPDATER": "1",
			// Its own plugins, which are in none of the connectors: four denied requests,
			// two of them by SSH, at each start of the terminal interface.
			"CLAUDE_CODE_DISABLE_OFFICIAL_MARKETPLACE_AUTOINSTALL": "1",
		},
		// For user 0 it wants to be told that this is a sandbox. The prelude accepts its disclaimer then.
		Unattended: Switch{Arg: "--dangerously-skip-permissions", Env: map[string]string{"IS_SANDBOX": "1"}},
		Rights:     []string{"CLAUDE_CONFIG_DIR"},
		NotesAt:    "/etc/claude-code/CLAUDE.md",
		State:      []string{".claude"},
		Resume:     []string{"--continue"},
		Prelude:    claudePrelude,
		Models:     []Endpoint{anthropicLibrary},
		// With "=": the flag takes every argument behind it otherwise.
		MCP: Registration{Args: []string{
			`--mcp-config={"mcpServers":{"aileron":{"command":{program},"args":["mcp"]}}}`}},
		Recipe:     []byte(claudeRecipe),
		Layer:      Layer{Files: []Copied{{"/usr/local/bin/claude", "/usr/local/bin/claude"}}, Glibc: true},
		Connectors: []string{"anthropic", "anthropic-oauth"},
	}
}
