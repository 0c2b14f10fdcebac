package e2e

import (
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/e2e/stub"
)

// everything is the host of a remote server of MCP.
const everything = "mcp.everything.example"

// serveEverything starts the official server of MCP for tests, and returns what stands before it: TLS is the stub's,
// and without the credential nothing is served.
func serveEverything(t *testing.T, dir string) http.Handler {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	_, port, err := net.SplitHostPort(l.Addr().String())
	must.Do(t, err)
	must.Do(t, l.Close())
	cmd := exec.Command(filepath.Join(dir, "node_modules", ".bin", "mcp-server-everything"), "streamableHttp")
	cmd.Env = append(os.Environ(), "PORT="+port)
	must.Do(t, cmd.Start())
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	waitFor(t, func() bool {
		c, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	to := httputil.NewSingleHostReverseProxy(must.Get(url.Parse("http://127.0.0.1:" + port))(t))
	to.FlushInterval = -1
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+secret {
			http.Error(w, "no credential", http.StatusUnauthorized)
			return
		}
		to.ServeHTTP(w, r)
	})
}

// A real server and a real client, neither of them ours: the client lists all tools, may call those that the connector
// names, and is told why it may not call another one.
func TestToolsOfARemoteServerAreAllowedByName(t *testing.T) {
	t.Parallel()
	harness.NeedNPM(t)
	server, err := harness.NodeModules("mcp-everything", "testdata/everything")
	if err != nil {
		harness.Need(t, "the packages of testdata/everything, which cannot be installed: "+err.Error())
	}
	inspector, err := harness.NodeModules("mcp-inspector", "testdata/inspector")
	if err != nil {
		harness.Need(t, "the packages of testdata/inspector, which cannot be installed: "+err.Error())
	}
	services := map[string]http.Handler{everything: serveEverything(t, server)}
	u := newUser(t, stub.Script{Services: services}, "everything")
	inspect := func(args ...string) result {
		t.Helper()
		cli := filepath.Join(inspector, "node_modules", ".bin", "mcp-inspector-cli")
		run := append([]string{"run", "--resolve", everything + ":443:" + u.origin.Addr}, u.reach()...)
		cmd := u.command(append(append(run, "--", cli, "--cli", "https://"+everything+"/mcp"), args...)...)
		cmd.Dir = u.project
		cmd.Env = append(cmd.Env, "NODE_OPTIONS=--require="+filepath.Join(server, "proxy.cjs"))
		r := finish(t, cmd)
		if strings.Contains(r.out+r.err, secret) {
			t.Errorf("the credential is in the output of %q", args)
		}
		return r
	}
	contains(t, "the tools", inspect("--method", "tools/list").out, `"name": "echo"`, `"name": "get-env"`)
	contains(t, "a call", inspect("--method", "tools/call", "--tool-name", "echo", "--tool-arg", "message=hello").out,
		"Echo: hello")
	contains(t, "a prompt", inspect("--method", "prompts/get", "--prompt-name", "simple-prompt").out, `"messages"`)
	denied := inspect("--method", "tools/call", "--tool-name", "get-env")
	if denied.code == 0 {
		t.Errorf("get-env was called: %s", denied.out)
	}
	contains(t, "a call of another tool", denied.out+denied.err, "content_not_allowed",
		`the tool \"get-env\" is not allowed`, "tool:echo", "Do not retry")
	contains(t, "a resource", inspect("--method", "resources/read", "--uri", "demo://resource/static/document/x.md").err,
		"content_not_allowed")
	for _, seen := range u.origin.Seen() {
		if strings.Contains(seen.Body, "get-env") || strings.Contains(seen.Body, "resources/read") {
			t.Errorf("it was sent: %s", seen.Body)
		}
	}
	tools := map[string]int{}
	for _, row := range u.rows("--connector", connectors["everything"].FQN) {
		fields, _ := row["fields"].(map[string]any)
		if tool, ok := fields["mcp_tool"].(string); ok {
			decision, _ := row["decision"].(string)
			tools[tool+" "+decision]++
		}
	}
	if tools["echo proxied"] != 1 || tools["get-env rejected"] != 1 || len(tools) > 3 { // and the intent
		t.Errorf("rows by tool: %v", tools)
	}
}
