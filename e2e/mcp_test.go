package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/e2e/stub"
)

// mcpCommand is aileron mcp of a user, whose messages are kept.
func (u *user) mcpCommand() *exec.Cmd {
	cmd := u.command(append([]string{"mcp"}, u.reach()...)...)
	cmd.Dir = u.project
	return cmd
}

// running returns the id of the user's one running session.
func (u *user) running() string {
	u.t.Helper()
	for line := range strings.Lines(u.must("session", "list").out) {
		if strings.Contains(line, "running") {
			return strings.Fields(line)[0]
		}
	}
	u.t.Fatal("no session is running")
	return ""
}

// mcpClient connects the SDK's client to a command, and records what the command writes on both streams.
func mcpClient(t *testing.T, cmd *exec.Cmd) (*mcp.ClientSession, *must.Output) {
	t.Helper()
	var said must.Output
	cmd.Stderr = &said
	client := mcp.NewClient(&mcp.Implementation{Name: "e2e"}, nil)
	transport := &mcp.LoggingTransport{Transport: &mcp.CommandTransport{Command: cmd}, Writer: &said}
	cs, err := client.Connect(t.Context(), transport, nil)
	if err != nil {
		t.Fatalf("connect: %v\n%s", err, said.String())
	}
	return cs, &said
}

// callTool calls a tool, and returns its texts.
func callTool(t *testing.T, cs *mcp.ClientSession, name, args string) (text string, isError bool) {
	t.Helper()
	r := must.Get(cs.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: json.RawMessage(args)}))(t)
	for _, c := range r.Content {
		if c, ok := c.(*mcp.TextContent); ok {
			text += c.Text + "\n"
		}
	}
	return text, r.IsError
}

// Outside of a session the server has one of its own. Each call is one of it: matched, given its credential, redacted
// and recorded.
func TestAnMCPClientCallsOperations(t *testing.T) {
	t.Parallel()
	u := newUser(t, stub.Script{}, "github", "echo")
	cmd := u.mcpCommand()
	cs, said := mcpClient(t, cmd)
	var names []string
	for tool := range cs.Tools(t.Context(), nil) {
		names = append(names, tool.Name)
	}
	if len(names) != 38 || !slices.Contains(names, "github.issues.create") || slices.Contains(names, "echoer.echo") {
		t.Errorf("%d tools: %q", len(names), names) // 35, 2 and the rest; echoer.echo names no method
	}
	for _, c := range []struct {
		tool, args, want string
		isError          bool
	}{
		{"github.user.get", `{}`, "octo-stand-in", false},
		{"github.repos.get", `{"owner":"acme","repo":"tracker"}`, "acme/tracker", false},
		{"github.issues.create", `{"owner":"a","repo":"b","title":"New"}`, `"number":8`, false},
		{"github.issues.create", `{"owner":"a","repo":"b"}`, "args.title: it is missing", true},
		{"github.issues.create", `{"owner":"a","repo":"b","title":3}`, "args.title: it is not a string", true},
		{"github.issues.create", `{"owner":"a","repo":"b","title":"x","token":"y"}`, "args.token: the operation", true},
		{"github.issues.create", `{"owner":"a","repo":"b","title":"x","title":"y"}`, "args.title: duplicate key", true},
		{"github.repos.get", `{"owner":"..","repo":"b"}`, "args.owner", true},
		{"github.repos.get", `{"owner":"a/b","repo":"c"}`, "args.owner", true},
		{"github.users.get", `{"username":"unknown"}`, "responded with status 404", true},
		{"echoer.echo.chunks", `{}`, "cut at 5", false},
	} {
		text, isError := callTool(t, cs, c.tool, c.args)
		if isError != c.isError || !strings.Contains(text, c.want) {
			t.Errorf("%s %s: error %v, %s; want %v, %q", c.tool, c.args, isError, text, c.isError, c.want)
		}
	}
	if text, _ := callTool(t, cs, "echoer.echo.chunks", "{}"); strings.Contains(text, secret) {
		t.Error("the credential is in a result")
	}
	for _, seen := range u.origin.Seen() {
		if !strings.Contains(seen.Auth(), secret) {
			t.Errorf("%s %s came without the credential", seen.Method, seen.Path)
		}
	}
	must.Do(t, cs.Close())
	for _, canary := range []string{secret, secret[4:20], passphrase} {
		if strings.Contains(said.String(), canary) {
			t.Errorf("a message has %q", canary)
		}
	}
	var proxied, rejected int
	for _, r := range u.rows() {
		if r["source"] != "generated_connector_shim" {
			continue
		}
		if fields, _ := r["fields"].(map[string]any); fields["surface"] != "mcp" {
			t.Errorf("the row does not have its surface: %v", r)
		}
		switch r["decision"] {
		case "proxied":
			proxied++
		case "rejected":
			rejected++
		}
	}
	if proxied != 6 || rejected != 6 {
		t.Errorf("%d rows of calls that were sent and %d of others, want 6 and 6", proxied, rejected)
	}
	contains(t, "session list", u.must("session", "list").out, "mcp", "ended")
}

// Behind a session it is the session's: there is no second one, and the session's own flags count.
func TestBehindASessionItIsThatOfTheSession(t *testing.T) {
	t.Parallel()
	u := newUser(t, stub.Script{}, "github", "echo")
	args := append([]string{"run", "--connector", "github"}, u.reach()...)
	cs, _ := mcpClient(t, u.command(append(args, "--", binary, "mcp")...))
	names := map[string]bool{}
	for tool := range cs.Tools(t.Context(), nil) {
		names[tool.Name] = true
	}
	if !names["github.user.get"] || names["echoer.stall"] {
		t.Errorf("tools %v", names)
	}
	text, _ := callTool(t, cs, "github.user.get", "{}")
	contains(t, "the result", text, "octo-stand-in")
	must.Do(t, cs.Close())
	if list := u.must("session", "list").out; strings.Count(list, "ended") != 1 {
		t.Errorf("sessions:\n%s", list)
	}
}

// A client that is killed leaves neither a process nor a session, and a signal ends the server cleanly.
func TestTheEndOfAnMCPClientEndsTheSession(t *testing.T) {
	t.Parallel()
	u := newUser(t, stub.Script{}, "echo")
	for name, end := range map[string]func(cmd *exec.Cmd, in io.Closer, out io.Closer){
		"its stdin ends":       func(_ *exec.Cmd, in, _ io.Closer) { _ = in.Close() },
		"both its ends close":  func(_ *exec.Cmd, in, out io.Closer) { _, _ = out.Close(), in.Close() },
		"SIGTERM with a call":  func(cmd *exec.Cmd, _, _ io.Closer) { _ = cmd.Process.Signal(syscall.SIGTERM) },
		"aileron session stop": func(*exec.Cmd, io.Closer, io.Closer) { u.must("session", "stop", u.running()) },
	} {
		cmd := u.mcpCommand()
		cmd.Stderr = os.Stderr
		in := must.Get(cmd.StdinPipe())(t)
		out := must.Get(cmd.StdoutPipe())(t)
		must.Do(t, cmd.Start())
		before := len(u.origin.Seen())
		_, err := fmt.Fprintln(in, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",`+
			`"capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`+"\n"+
			`{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n"+
			`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echoer.stall"}}`)
		must.Do(t, err)
		waitFor(t, func() bool { return len(u.origin.Seen()) > before })
		end(cmd, in, out)
		err = cmd.Wait()
		code := cmd.ProcessState.ExitCode()
		if want := map[string]int{"SIGTERM with a call": 130, "aileron session stop": 143}[name]; code != want {
			t.Errorf("%s: exit %d (%v), want %d", name, code, err, want)
		}
		if list := u.must("session", "list").out; strings.Contains(list, "running") || strings.Contains(list, "unclean") {
			t.Errorf("%s: sessions\n%s", name, list)
		}
	}
}

func TestManyMCPCallsAtOnceAreAllServed(t *testing.T) {
	t.Parallel()
	u := newUser(t, stub.Script{}, "github")
	cs, _ := mcpClient(t, u.mcpCommand())
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			text, isError := callTool(t, cs, "github.repos.get", fmt.Sprintf(`{"owner":"acme","repo":"r%d"}`, i))
			if isError || !strings.Contains(text, fmt.Sprintf(`"acme/r%d"`, i)) {
				t.Errorf("call %d: %v %s", i, isError, text)
			}
		})
	}
	wg.Wait()
	must.Do(t, cs.Close())
}

// A revocation takes effect on the next call, and the client learns of operations that are gone.
func TestAnMCPServerFollowsTheSession(t *testing.T) {
	t.Parallel()
	u := newUser(t, stub.Script{}, "github")
	cs, _ := mcpClient(t, u.mcpCommand())
	defer cs.Close()
	name := strings.TrimSpace(strings.Fields(u.must("binding", "list").out)[0])
	u.must("binding", "revoke", name)
	waitFor(t, func() bool {
		text, isError := callTool(t, cs, "github.user.get", "{}")
		return isError && strings.Contains(text, "credential_not_bound")
	})
	list := must.Get(cs.ListTools(t.Context(), nil))(t)
	contains(t, "the description", list.Tools[0].Description, "It is denied until the user binds a credential")
	u.must("connector", "remove", connectors["github"].FQN)
	waitFor(t, func() bool {
		list := must.Get(cs.ListTools(context.WithoutCancel(t.Context()), nil))(t)
		return len(list.Tools) == 1
	})
}
