package day

import (
	"encoding/json"
	"strings"
)

// agent is a coding agent, and how it takes a prompt without a person.
type agent struct {
	name     string
	provider string // connector of its model
	asks     string // the operation with which it asks its model
	// ask are its arguments for a prompt; goOn those for one in the conversation of the session that printed out.
	ask      func(prompt string) []string
	goOn     func(prompt, out string) []string
	packages []string // flags that add Go to the image
	env      []string // what a person may set, against time-outs on a machine at load
}

var agents = map[string]agent{
	"claude": {name: "claude", provider: "anthropic", asks: "messages.create",
		packages: []string{"--packages", "golang-go"},
		ask: func(prompt string) []string {
			return []string{"-p", prompt, "--model", "claude-sonnet-4-5", "--allowedTools", "Bash(*)"}
		},
		goOn: func(prompt, _ string) []string {
			return []string{"-p", prompt, "--model", "claude-sonnet-4-5", "--continue"}
		}},
	"codex": {name: "codex", provider: "openai", asks: "responses.create",
		ask: func(prompt string) []string {
			return []string{"exec", "--skip-git-repo-check", "-m", "gpt-5", prompt}
		},
		goOn: func(prompt, _ string) []string {
			return []string{"exec", "--skip-git-repo-check", "-m", "gpt-5", "resume", "--last", prompt}
		}},
	"opencode": opencode("openai", "gpt-5", "responses.create"),
	// The same agent, with a model that speaks chat completions.
	"opencode with openrouter": opencode("openrouter", "anthropic/claude-sonnet-4.5", "chat.completions.create"),
}

func opencode(provider, model, asks string) agent {
	run := []string{"run", "-m", provider + "/" + model, "--format", "json"}
	return agent{name: "opencode", provider: provider, asks: asks,
		env: []string{"OPENCODE_EXPERIMENTAL_BASH_DEFAULT_TIMEOUT_MS=600000"},
		ask: func(prompt string) []string { return append(run[:len(run):len(run)], prompt) },
		goOn: func(prompt, out string) []string {
			return append(run[:len(run):len(run)], "-s", sessionOf(out), prompt)
		}}
}

// sessionOf returns the ID of the session in opencode's output.
func sessionOf(out string) string {
	for line := range strings.Lines(out) {
		var event struct{ SessionID string }
		if json.Unmarshal([]byte(line), &event) == nil && event.SessionID != "" {
			return event.SessionID
		}
	}
	return "none"
}
