package agents

import _ "embed"

//go:embed goose.sh
var goosePrelude string

// goose is Block's agent: one binary, of which there is no recipe.
//
// Its releases are archives that only a hash can verify, and no hash of one is known here: the image that has Goose is
// the user's own. What is here is from its documentation and its source, and not tried.
//
// Its configuration is $XDG_CONFIG_HOME/goose/config.yaml, on macOS too. It is not changed: session and run take a
// server as an argument.
func goose() Agent {
	return Agent{
		Name:     "goose",
		Commands: []string{"goose"},
		Env: map[string]string{
			// It asks at its first start whether it may send statistics.
			"GOOSE_TELEMETRY_OFF": "1",
		},
		Unattended: Switch{Env: map[string]string{"GOOSE_MODE": "auto"}},
		MCP:        Registration{Args: []string{"--with-extension", "{words} mcp"}, Behind: []string{"session", "run"}},
		State:      []string{".config/goose", ".local/share/goose", ".local/state/goose"},
		Resume:     []string{"session", "--resume"},
		Prelude:    goosePrelude,
		Connectors: []string{"anthropic", "openai", "gemini", "openrouter"},
	}
}
