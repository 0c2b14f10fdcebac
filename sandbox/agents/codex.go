package agents

import _ "embed"

//go:embed codex.Dockerfile
var codexRecipe string

// codex is OpenAI's agent: a static binary and others that it finds beside it.
//
// It reads its settings from files alone, so that those it needs in a box
// stand in the image, below the user's own. With --sandbox=off none of them
// holds, and its own sandbox is as the user has set it.
func codex() Agent {
	return Agent{
		Name:       "codex",
		Commands:   []string{"codex"},
		Recipe:     []byte(codexRecipe),
		Hosts:      []string{"raw.githubusercontent.com"}, // a notice, in the terminal interface
		Connectors: []string{"openai"},
	}
}
