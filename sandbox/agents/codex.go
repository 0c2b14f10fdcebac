package agents

import _ "embed"

//go:embed codex.Dockerfile
var codexRecipe string

// codexPrelude trusts the project, because an agent in a sandbox may run what lies
// in it, and passes on the notes on the sandbox. The path is a string of TOML.
const codexPrelude = `program=$1
shift
if [ -r /etc/aileron/notes.md ]; then
	set -- -c "developer_instructions='''$(cat /etc/aileron/notes.md)'''" "$@"
fi
project=$(printf %s "$PWD" | sed 's/[\\"]/\\&/g')
set -- "$program" -c "projects={\"$project\"={trust_level=\"trusted\"}}" "$@"
unset project`

// codex is OpenAI's agent: a static binary and others that it finds beside it.
//
// It reads its settings from files only, so those that it needs in a sandbox are
// in the image, and the user's own override them. With --sandbox=off there are
// none of them, and its own sandbox is as the user has configured it. It does not
// read OPENAI_BASE_URL any more, and a provider in its arguments would replace the
// one that the user has chosen: its requests take the proxy.
func codex() Agent {
	return Agent{
		Name:     "codex",
		Commands: []string{"codex"},
		State:    []string{".codex"},
		Resume:   []string{"resume", "--last"},
		Prelude:  codexPrelude,
		// It also has what the sandbox_mode of its image's config.toml says.
		Unattended: Switch{Arg: "--dangerously-bypass-approvals-and-sandbox"},
		Rights:     []string{"CODEX_HOME"},
		// It passes a server no variables but those that are named.
		MCP: Registration{Args: []string{"-c", `mcp_servers.aileron={command={program},args=["mcp"],` +
			`env_vars=["AILERON_API_URL","AILERON_TOKEN","AILERON_SESSION_ID"]}`}},
		Recipe: []byte(codexRecipe),
		// The programs are static.
		Layer: Layer{Files: []Copied{{"/opt/codex/", "/opt/codex/"}, {"/etc/codex/", "/etc/codex/"},
			{"/usr/local/bin/codex", "/usr/local/bin/codex"}}},
		// A notice, in the terminal interface.
		Optional:   []Request{{"GET", "raw.githubusercontent.com", "/openai/codex/main/announcement_tip.toml"}},
		Connectors: []string{"openai"},
	}
}
