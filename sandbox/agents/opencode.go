package agents

import _ "embed"

//go:embed opencode.Dockerfile
var opencodeRecipe string

// opencodePrelude names the notes on the sandbox as further instructions.
const opencodePrelude = `if [ -r /etc/aileron/notes.md ] && [ -z "${OPENCODE_CONFIG_CONTENT-}" ]; then
	export OPENCODE_CONFIG_CONTENT='{"instructions":["/etc/aileron/notes.md"]}'
fi`

// opencode is sst's agent for the terminal: one self-contained binary.
//
// It keeps its state below HOME, which has to be writable, and starts with any
// value in its provider's key variable: a connector's placeholder is enough. Two
// more calls cannot be switched off, and are denied without harm: for its plugin
// from the package registry and, in the terminal interface, for its latest
// release.
func opencode() Agent {
	return Agent{
		Name:     "opencode",
		Commands: []string{"opencode"},
		Env: map[string]string{
			// The image pins the version; an update would be lost with the sandbox.
			"OPENCODE_DISABLE_AUTOUPDATE": "1",
			// The catalogue of models is in the binary as well. Fetching it is
			// three denied requests at every start.
			"OPENCODE_DISABLE_MODELS_FETCH": "1",
		},
		// What its configuration denies stays denied, and its plan mode too: OPENCODE_PERMISSION would overrule both.
		Unattended: Switch{Arg: "--auto", Behind: []string{"run"}},
		Rights:     []string{"OPENCODE_PERMISSION", "OPENCODE_CONFIG", "OPENCODE_CONFIG_CONTENT", "OPENCODE_CONFIG_DIR"},
		Models:     []Endpoint{anthropicAISDK, openaiAISDK},
		MCP: Registration{Variable: "OPENCODE_CONFIG_CONTENT",
			Config: `{"mcp":{"aileron":{"type":"local","command":[{program},"mcp"],"enabled":true}}}`},
		State:      []string{".local/share/opencode", ".local/state/opencode"},
		Resume:     []string{"--continue"},
		Prelude:    opencodePrelude,
		Recipe:     []byte(opencodeRecipe),
		Layer:      Layer{Files: []Copied{{"/usr/local/bin/opencode", "/usr/local/bin/opencode"}}, Glibc: true},
		Connectors: []string{"anthropic", "openai", "gemini", "openrouter", "local-openai"},
	}
}
