package agents

import _ "embed"

//go:embed codex.Dockerfile
var codexRecipe string

// codex is OpenAI's agent: a static binary and others that it finds beside it.
//
// It reads its settings from files only, so those that it needs in a sandbox are
// in the image, and the user's own override them. With --sandbox=off there are
// none of them, and its own sandbox is as the user has configured it.
func codex() Agent {
	return Agent{
		Name:       "codex",
		Commands:   []string{"codex"},
		Recipe:     []byte(codexRecipe),
		Hosts:      []string{"raw.githubusercontent.com"}, // a notice, in the terminal interface
		Connectors: []string{"openai"},
	}
}
