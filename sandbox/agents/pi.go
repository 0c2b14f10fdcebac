package agents

import _ "embed"

//go:embed pi.Dockerfile
var piRecipe string

//go:embed pi.js
var piExtension string

// piPrelude passes on the notes on the sandbox. A subcommand does not take them.
const piPrelude = `case ${2-} in
install|remove|uninstall|update|list|config) ;;
*)
	if [ -r /etc/aileron/notes.md ]; then
		program=$1
		shift
		set -- "$program" --append-system-prompt /etc/aileron/notes.md "$@"
		unset program
	fi ;;
esac`

// pi is Mario Zechner's agent: a program for Node.js, which the toolbox has.
//
// It uses its tools without asking, whatever it is told, so that there is no switch for that. Version 0.87 has no MCP:
// the commands of connectors are what it uses. From 1.0 on it has, and ignores --mcp-config: an extension registers the
// server, so that its ~/.pi/agent/mcp.json need not be changed. It has the URL of each model in its own catalogue, and
// none from the environment.
func pi() Agent {
	return Agent{
		Name:     "pi",
		Commands: []string{"pi"},
		Env: map[string]string{
			// No look for a newer version, and none for fd and ripgrep, which it would download.
			"PI_OFFLINE":   "1",
			"PI_TELEMETRY": "0",
		},
		NeverAsks: true,
		MCP: Registration{Args: []string{"--extension", FilePlace}, File: piExtension,
			Except: []string{"install", "remove", "uninstall", "update", "list", "config", "mcp", "auth"}},
		State:   []string{".pi/agent/sessions"},
		Resume:  []string{"--continue"},
		Prelude: piPrelude,
		Recipe:  []byte(piRecipe),
		// With its Node.js beside it, which the command prefers: the other image may have none, or another.
		Layer: Layer{
			Files: []Copied{{"/opt/pi/", "/opt/pi/"}, {"/usr/local/bin/node", "/opt/pi/node"},
				{"/usr/local/bin/pi", "/usr/local/bin/pi"}},
			Glibc: true, Libraries: []string{"libstdc++.so.6", "libgcc_s.so.1"}},
		Connectors: []string{"anthropic", "openai", "gemini", "openrouter"},
	}
}
