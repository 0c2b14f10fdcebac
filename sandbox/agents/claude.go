package agents

import _ "embed"

//go:embed claude.Dockerfile
var claudeRecipe string

// claude is Claude Code, Anthropic's agent: one self-contained binary.
//
// It keeps its state below HOME, which has to be writable, and takes a
// placeholder in ANTHROPIC_API_KEY for a key. Two calls to its provider's own
// host cannot be switched off: its organisation's settings and limits. They
// are refused and do no harm, because a refusal is a 403: a 502 would be asked
// again for many seconds.
func claude() Agent {
	return Agent{
		Name:     "claude",
		Commands: []string{"claude"},
		Env: map[string]string{
			// Settings, statistics, experiments: a dozen refused requests at
			// every start.
			"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
			// The image pins the version; an update would be lost with the box.
			"DISABLE_AUTOUPDATER": "1",
		},
		Recipe:     []byte(claudeRecipe),
		Connectors: []string{"anthropic"},
	}
}
