package agents_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/sandbox/agents"
)

// awkward is a program whose path has what JSON and TOML escape.
const awkward = "/opt/my \"aileron\"\\bin <&> é/aileron"

func none(string) string { return "" }

// server is an entry of an agent's configuration, by the names of all agents.
type server struct {
	Command any
	Args    []string
	EnvVars []string `toml:"env_vars"`
	Type    string
	Enabled *bool
}

// Each value is read by a parser that is not ours, as the agent reads it.
func TestAnAgentIsToldOfAServer(t *testing.T) {
	claude, _ := agents.Find("claude")
	with, env, ok := claude.MCP.Register(awkward, []string{"-p", "hello"}, none)
	value, is := strings.CutPrefix(with[0], "--mcp-config=")
	var c struct{ MCPServers map[string]server }
	must.Do(t, json.Unmarshal([]byte(value), &c))
	if !ok || !is || env != "" || !slices.Equal(with[1:], []string{"-p", "hello"}) ||
		c.MCPServers["aileron"].Command != awkward || !slices.Equal(c.MCPServers["aileron"].Args, []string{"mcp"}) {
		t.Errorf("claude: %q, %q, %v", with, env, ok)
	}

	codex, _ := agents.Find("codex")
	with, env, ok = codex.MCP.Register(awkward, []string{"exec", "hello"}, none)
	var x struct {
		Servers map[string]server `toml:"mcp_servers"`
	}
	must.Get(toml.Decode(with[1], &x))(t)
	got := x.Servers["aileron"]
	if !ok || env != "" || with[0] != "-c" || !slices.Equal(with[2:], []string{"exec", "hello"}) ||
		got.Command != awkward || !slices.Equal(got.Args, []string{"mcp"}) ||
		!slices.Equal(got.EnvVars, []string{"AILERON_API_URL", "AILERON_TOKEN", "AILERON_SESSION_ID"}) {
		t.Errorf("codex: %q, %q, %v", with, env, ok)
	}

	opencode, _ := agents.Find("opencode")
	with, env, ok = opencode.MCP.Register(awkward, []string{"run", "hello"}, none)
	var o struct{ MCP map[string]server }
	must.Do(t, json.Unmarshal([]byte(strings.TrimPrefix(env, "OPENCODE_CONFIG_CONTENT=")), &o))
	got = o.MCP["aileron"]
	if command, _ := got.Command.([]any); !ok || !slices.Equal(with, []string{"run", "hello"}) || len(command) != 2 ||
		command[0] != awkward || command[1] != "mcp" || got.Type != "local" || !*got.Enabled {
		t.Errorf("opencode: %q, %q, %v", with, env, ok)
	}
}

// Goose splits the value as a shell does, and earlier versions at spaces alone.
func TestGooseIsToldOfAServer(t *testing.T) {
	goose, _ := agents.Find("goose")
	for _, c := range []struct{ program, args, want string }{
		{"/usr/local/bin/aileron", "", "session --with-extension /usr/local/bin/aileron mcp"},
		{"/usr/local/bin/aileron", "run -t hello", "run --with-extension /usr/local/bin/aileron mcp -t hello"},
		{"/opt/my it's/aileron", "session --resume",
			`session --with-extension '/opt/my it'\''s/aileron' mcp --resume`},
		{"/usr/local/bin/aileron", "configure", ""},
	} {
		with, env, ok := goose.MCP.Register(c.program, strings.Fields(c.args), none)
		if got := strings.Join(with, " "); ok != (c.want != "") || ok && got != c.want || env != "" {
			t.Errorf("goose %s: %q, %q, %v; want %q", c.args, got, env, ok, c.want)
		}
	}
	if with, _, _ := goose.MCP.Register("/a", []string{"run"}, none); len(with) != 3 || with[2] != "/a mcp" {
		t.Errorf("the command is %q, and not one argument", with)
	}
}

// What the user has set stays, and what cannot be read is left alone.
func TestAVariableOfTheUsersIsMerged(t *testing.T) {
	r := agents.Registration{Variable: "V", Config: `{"mcp":{"aileron":{"command":[{program}]}}}`}
	for _, c := range []struct {
		has, want string
		ok        bool
	}{
		{"", `{"mcp":{"aileron":{"command":["/a"]}}}`, true},
		{" \n", `{"mcp":{"aileron":{"command":["/a"]}}}`, true},
		{`{"model":"x<y","mcp":{"other":{"command":["b"]},"aileron":{"enabled":false,"command":["old","args"]}}}`,
			`{"mcp":{"aileron":{"command":["/a"],"enabled":false},"other":{"command":["b"]}},"model":"x<y"}`, true},
		{`{"n":12345678901234567890.10}`, `{"mcp":{"aileron":{"command":["/a"]}},"n":12345678901234567890.10}`, true},
		{"// mine\n{\"model\": \"x//y\", /* the other */ \"mcp\": {\"other\": {},},}\n",
			`{"mcp":{"aileron":{"command":["/a"]},"other":{}},"model":"x//y"}`, true},
		{`{"mcp":null}`, `{"mcp":{"aileron":{"command":["/a"]}}}`, true},
		{`{"model":`, `{"model":`, false}, {`[]`, `[]`, false}, {`null`, `null`, false},
		{"text", "text", false}, {"{} {}", "{} {}", false}, {"{} // } {", `{"mcp":{"aileron":{"command":["/a"]}}}`, true},
		{"/* {}", "/* {}", false},
	} {
		_, env, ok := r.Register("/a", nil, func(name string) string {
			if name != "V" {
				t.Errorf("asked for %s", name)
			}
			return c.has
		})
		if env != "V="+c.want || ok != c.ok {
			t.Errorf("%s: %s, %v; want %s, %v", c.has, env, ok, c.want, c.ok)
		}
	}
}

func TestArgumentsStandBehindASubcommand(t *testing.T) {
	r := agents.Registration{Args: []string{"--with", "{program} mcp"}, Behind: []string{"session", "run"}}
	for args, want := range map[string]string{
		"": `session --with "/a" mcp`, "run -t x": `run --with "/a" mcp -t x`, "configure": "", "-h": "",
	} {
		with, _, ok := r.Register("/a", strings.Fields(args), none)
		if got := strings.Join(with, " "); ok != (want != "") || ok && got != want || !ok && got != args {
			t.Errorf("%q: %q, %v; want %q", args, got, ok, want)
		}
	}
	if with, env, ok := (agents.Registration{}).Register("/a", []string{"x"}, none); ok || env != "" || len(with) != 1 {
		t.Errorf("an agent without a way: %q, %q, %v", with, env, ok)
	}
}

// Pi is told by an extension, which is JavaScript, and not in front of a subcommand of its own.
func TestPiIsToldOfAServer(t *testing.T) {
	pi, _ := agents.Find("pi")
	with, env, ok := pi.MCP.Register(awkward, []string{"-p", "hello"}, none)
	if !ok || env != "" || !slices.Equal(with, []string{"--extension", agents.FilePlace, "-p", "hello"}) {
		t.Errorf("pi: %q, %q, %v", with, env, ok)
	}
	_, after, _ := strings.Cut(pi.MCP.FileFor(awkward), `{ command: `)
	value, _, _ := strings.Cut(after, `, args: ["mcp"]`)
	var command string
	if err := json.Unmarshal([]byte(value), &command); err != nil || command != awkward {
		t.Errorf("the extension starts %s: %v", value, err)
	}
	if with, _, ok := pi.MCP.Register(awkward, []string{"install", "x"}, none); ok || len(with) != 2 {
		t.Errorf("pi install: %q, %v", with, ok)
	}
}
