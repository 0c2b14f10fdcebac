package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/e2e/recipes"
	"github.com/ALRubinger/aileron/e2e/stub"
)

// An agent gets the session by its environment, and the server by an argument that has no secret. The program in its
// place calls a tool as an agent does.
func TestAnAgentOnTheHostIsToldOfTheServer(t *testing.T) {
	t.Parallel()
	u := newUser(t, stub.Script{}, "github", "anthropic")
	bin := filepath.Join(u.project, "bin")
	must.Do(t, os.Mkdir(bin, 0o755))
	const calls = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",` +
		`"capabilities":{},"clientInfo":{"name":"t","version":"1"}}}` + "\n" +
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"call_operation","arguments":` +
		`{"operation":"github://alrubinger/aileron-connector-github github.user.get"}}}` + "\n"
	u.write("calls", calls)
	script := "#!/bin/sh\nprintf '%s\\n' \"$@\" >args\nexec " + binary + " mcp <calls\n"
	must.Do(t, os.WriteFile(filepath.Join(bin, "claude"), []byte(script), 0o755))
	cmd := u.command(append(append([]string{"launch", "--sandbox=off", "claude"}, u.reach()...), "--", "-p", "x")...)
	cmd.Dir = u.project
	cmd.Env = append(cmd.Env, "PATH="+bin+":"+os.Getenv("PATH"))
	r := finish(t, cmd)
	contains(t, "the agent's output", r.out, "octo-stand-in", `"aileron/status":200`)
	args := string(must.Get(os.ReadFile(filepath.Join(u.project, "args")))(t))
	want := `--mcp-config={"mcpServers":{"aileron":{"command":"` + binary + `","args":["mcp"]}}}` + "\n-p\nx\n"
	if args != want {
		t.Errorf("the arguments are\n%s\nwant\n%s", args, want)
	}
	if list := u.must("session", "list").out; strings.Count(list, "ended") != 1 {
		t.Errorf("sessions:\n%s", list)
	}
}

// Pi is told by a file of the session, which is gone when that has ended; its own subcommands are not.
func TestPiIsToldOfTheServerByAFileOfTheSession(t *testing.T) {
	t.Parallel()
	u := newUser(t, stub.Script{}, "github", "anthropic")
	bin := filepath.Join(u.project, "bin")
	must.Do(t, os.Mkdir(bin, 0o755))
	const script = "#!/bin/sh\nprintf '%s\\n' \"$@\"\n[ \"$1\" != --extension ] || { cat \"$2\"; stat -c %a \"$2\"; }\n"
	must.Do(t, os.WriteFile(filepath.Join(bin, "pi"), []byte(script), 0o755))
	run := func(args ...string) []string {
		cmd := u.command(append([]string{"launch", "--sandbox=off", "pi", "--"}, args...)...)
		cmd.Dir = u.project
		cmd.Env = append(cmd.Env, "PATH="+bin+":"+os.Getenv("PATH"))
		r := finish(t, cmd)
		if r.code != 0 {
			t.Fatalf("exit %d\n%s", r.code, r.err)
		}
		return strings.Split(strings.TrimSpace(r.out), "\n")
	}
	lines := run("-p", "{file}")
	if len(lines) < 8 || lines[0] != "--extension" || lines[2] != "-p" || lines[3] != "{file}" ||
		lines[len(lines)-1] != "600" || !strings.HasPrefix(lines[1], u.home+"/sessions/") {
		t.Fatalf("Pi got %q", lines)
	}
	contains(t, "the extension", strings.Join(lines, "\n"), `registerMcpServer("aileron", { command: "`+binary+
		`", args: ["mcp"]`)
	if _, err := os.Stat(lines[1]); !os.IsNotExist(err) {
		t.Errorf("the file is there after the session: %v", err)
	}
	if lines := run("list"); len(lines) != 1 || lines[0] != "list" {
		t.Errorf("a subcommand got %q", lines)
	}
}

// Without a sandbox the real agents have the operations as tools. Pi's image has a version without MCP.
func TestAnAgentOnTheHostCallsAnOperationAsATool(t *testing.T) {
	dir := recipes.OnHost(t, "claude", "codex", "opencode")
	for _, c := range []struct {
		agent, model string
		args         []string
		env          []string
	}{
		{"claude", "anthropic", []string{"-p", "call the tool", "--allowedTools", "mcp__aileron", "--model", "sonnet"},
			[]string{"ENABLE_TOOL_SEARCH=false"}},
		{"codex", "openai", []string{"exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox",
			"-m", "lab-model", "call the tool"}, nil},
		{"opencode", "anthropic", []string{"run", "-m", "anthropic/claude-sonnet-4-5", "call the tool"},
			[]string{`OPENCODE_CONFIG_CONTENT={"mcp":{"other":{"type":"local","command":["true"],"enabled":false}}}`}},
	} {
		t.Run(c.agent, func(t *testing.T) {
			t.Parallel()
			u := newUser(t, stub.Script{Tool: "echoer_echo_chunks"}, "echo", c.model)
			cmd := u.command(append(append([]string{"launch", "--sandbox=off", c.agent}, u.reach()...),
				append([]string{"--"}, c.args...)...)...)
			cmd.Dir = u.project
			cmd.Env = append(append(cmd.Env, "HOME="+filepath.Dir(u.home), "PATH="+dir+":"+os.Getenv("PATH"),
				"TMPDIR="+must.ShortDir(t)), c.env...)
			r := finish(t, cmd)
			called := 0
			for _, seen := range u.origin.Seen() {
				if seen.Host == stub.Echo && seen.Path == "/echo-chunks" && strings.HasSuffix(seen.Auth(), secret) {
					called++
				}
			}
			rows := 0
			for _, row := range u.rows("--connector", connectors["echo"].FQN) {
				if fields, _ := row["fields"].(map[string]any); fields["surface"] == "mcp" && row["decision"] == "proxied" {
					rows++
				}
			}
			if r.code != 0 || called != 1 || rows != 1 {
				t.Errorf("exit %d, %d calls, %d rows, want 0, 1, 1\n%s%s", r.code, called, rows, r.out, r.err)
			}
			if strings.Contains(r.out+r.err, secret) {
				t.Error("the agent has the credential")
			}
		})
	}
}
