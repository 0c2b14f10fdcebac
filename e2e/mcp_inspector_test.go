package e2e

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/e2e/stub"
)

// The official Inspector's client is the judge of the protocol: its SDK is another than the server's.
func TestTheOfficialInspectorListsAndCallsTools(t *testing.T) {
	t.Parallel()
	harness.NeedNPM(t)
	dir, err := harness.NodeModules("mcp-inspector", "testdata/inspector")
	if err != nil {
		harness.Need(t, "the packages of testdata/inspector, which cannot be installed: "+err.Error())
	}
	u := newUser(t, stub.Script{}, "github", "echo")
	inspect := func(args ...string) string {
		t.Helper()
		server := u.mcpCommand()
		cli := filepath.Join(dir, "node_modules", ".bin", "mcp-inspector-cli")
		// The server gets no environment but what is named, as from a desktop app.
		env := []string{"--cli", "-e", "AILERON_HOME=" + u.home, "-e", "AILERON_VAULT_PASSPHRASE=" + passphrase}
		cmd := exec.Command(cli, slices.Concat(env, server.Args, args)...)
		cmd.Dir = u.project
		r := finish(t, cmd)
		if r.code != 0 || strings.Contains(r.out+r.err, secret) {
			t.Fatalf("exit %d\n%s%s", r.code, r.out, r.err)
		}
		return r.out
	}
	var list struct {
		Tools []struct {
			Name        string
			InputSchema struct{ Required []string }
			Annotations map[string]bool
		}
	}
	must.Do(t, json.Unmarshal([]byte(inspect("--method", "tools/list")), &list))
	found := map[string]bool{}
	for _, tool := range list.Tools {
		found[tool.Name] = true
		if tool.Name == "github.issues.create" && (!slices.Contains(tool.InputSchema.Required, "title") ||
			tool.Annotations["readOnlyHint"] || !tool.Annotations["openWorldHint"]) {
			t.Errorf("the tool is %+v", tool)
		}
	}
	if !found["github.issues.create"] || !found["echoer.echo.chunks"] {
		t.Errorf("tools %v", found)
	}
	contains(t, "a call", inspect("--method", "tools/call", "--tool-name", "github.issues.create",
		"--tool-arg", "owner=a", "repo=b", "title=New"), `\"number\":8`)
	contains(t, "a call without a title", inspect("--method", "tools/call", "--tool-name", "github.issues.create",
		"--tool-arg", "owner=a", "repo=b"), "args.title: it is missing", `"isError": true`)
	contains(t, "an echo", inspect("--method", "tools/call", "--tool-name", "echoer.echo.chunks"), "cut at 5")
}
