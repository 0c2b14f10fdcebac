package e2e

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/e2e/recipes"
	"github.com/ALRubinger/aileron/e2e/stub"
)

// A real agent in a sandbox starts a server of its project, and reaches a remote one: what the first sends is mediated
// as if the agent had sent it, and the calls of the second are judged by the names of tools.
func TestServersOfMCPInASandbox(t *testing.T) {
	for _, c := range []struct {
		name, tool, connector, path string
		told                        []string // by which the model knows the result
		rows                        string   // of mcp_tool and decision
	}{
		{"of the project", "look_up", "echo", "/echo-chunks", []string{"inside the sandbox: 200, 403", "cut at 0: "}, ""},
		{"remote", "get-tiny-image", "everything", "/mcp", []string{"tool_result", "image/png"}, "get-tiny-image proxied"},
		{"remote, another tool", "get-env", "everything", "/mcp", []string{"is not allowed"}, "get-env rejected"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.name != "of the project" {
				harness.Turn(t)
			}
			needPodman(t)
			modules, err := harness.NodeModules("mcp-everything", "testdata/everything")
			if err != nil {
				harness.Need(t, "the packages of testdata/everything, which cannot be installed: "+err.Error())
			}
			services := map[string]http.Handler{everything: serveEverything(t, modules)}
			u := newUser(t, stub.Script{Services: services, Tool: c.tool}, "anthropic", c.connector)
			recipes.Need(t, "podman", recipes.Agent("claude"))
			must.Do(t, exec.Command("cp", "-a", filepath.Join(modules, "node_modules"), u.project).Run())
			server := must.Get(os.ReadFile("testdata/mcpserver/server.mjs"))(t)
			must.Do(t, os.WriteFile(filepath.Join(u.project, "server.mjs"), server, 0o644))
			config := filepath.Join(u.project, "mcp.json")
			must.Do(t, os.WriteFile(config, []byte(`{"mcpServers":{
				"mine":{"command":"node","args":["`+u.project+`/server.mjs"]},
				"remote":{"type":"http","url":"https://`+everything+`/mcp"}}}`), 0o644))
			args := append([]string{"launch", "--sandbox=podman", "--keep=false", "--dir", u.project, "--env",
				"ENABLE_TOOL_SEARCH=false", "--resolve", everything + ":443:" + u.origin.Addr}, u.reach()...)
			r := u.run(append(args, "claude", "--", "-p", "call the tool", "--model", "sonnet", "--strict-mcp-config",
				"--mcp-config", config, "--allowedTools", "mcp__mine,mcp__remote")...)
			if r.code != 0 {
				t.Fatalf("exit %d\n%s%s", r.code, r.out, r.err)
			}
			told, arrived := "", 0
			for _, seen := range u.origin.Seen() {
				switch {
				case seen.Host == stub.Anthropic && strings.Contains(seen.Body, `"tool_result"`):
					told += seen.Body
				case seen.Path == c.path && seen.Auth() == "Bearer "+secret &&
					(c.connector == "echo" || strings.Contains(seen.Body, c.tool)):
					arrived++
				}
			}
			contains(t, "what the model is told", told, c.told...)
			if strings.Contains(told+r.out+r.err, secret) {
				t.Error("the credential is in the sandbox")
			}
			want := 1
			if strings.HasSuffix(c.rows, "rejected") {
				want = 0
			}
			tools, proxied := map[string]int{}, 0
			for _, row := range u.rows("--connector", connectors[c.connector].FQN) {
				decision, _ := row["decision"].(string)
				fields, _ := row["fields"].(map[string]any)
				if tool, ok := fields["mcp_tool"].(string); ok && decision != "" {
					tools[tool+" "+decision]++
				}
				if row["path"] == c.path && decision == "proxied" {
					proxied++
				}
			}
			if arrived != want || proxied == 0 || c.rows != "" && tools[c.rows] != 1 {
				t.Errorf("%d calls arrived, want %d; %d rows; tools %v, want %s", arrived, want, proxied, tools, c.rows)
			}
			if left := u.leftovers(); left != "" {
				t.Errorf("left: %s", left)
			}
		})
	}
}
