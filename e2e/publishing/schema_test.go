package publishing

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
)

// The schema that GitHub publishes, of 1.2 MB, becomes a connector in which every mutation asks, in SDL and in the JSON
// of introspection, and every operation of it arrives as declared.
func TestGitHubsSchemaBecomesAConnector(t *testing.T) {
	if _, err := exec.LookPath("npm"); err != nil {
		harness.Need(t, "npm: docs/testing.md names what to install")
	}
	dir := filepath.Join(must.Get(harness.NodeModules("schemas", "testdata/schemas"))(t), "node_modules",
		"@octokit", "graphql-schema")
	type operation struct {
		Name     string
		Approval string
		GraphQL  struct {
			Type   string
			Fields []string
		}
	}
	for _, file := range []string{"schema.graphql", "schema.json"} {
		made := filepath.Join(t.TempDir(), "github")
		run := func(args ...string) {
			t.Helper()
			cmd := exec.Command(program, args...)
			cmd.Env = append(os.Environ(), "AILERON_HOME="+t.TempDir())
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%s: aileron %v: %v\n%s", file, args, err, out)
			}
		}
		run("connector", "new", made, "--name", "github://acme/github", "--from", filepath.Join(dir, file),
			"--host", "api.github.com")
		run("connector", "check", made)
		run("connector", "test", made)
		var c struct {
			Tools []struct{ Operations []operation }
		}
		must.Do(t, json.Unmarshal(must.Get(os.ReadFile(filepath.Join(made, "aileron.connector.v1.json")))(t), &c))
		placed := map[string]string{}
		fields := 0
		for _, op := range c.Tools[0].Operations {
			if asks := op.Approval == "required"; asks != (op.GraphQL.Type == "mutation") {
				t.Errorf("%s: the approval of %s is %q", file, op.Name, op.Approval)
			}
			for _, field := range op.GraphQL.Fields {
				placed[op.GraphQL.Type+" "+field] = op.Name
				fields++
			}
		}
		if fields != len(placed) || len(placed) < 250 || len(c.Tools[0].Operations) > 60 {
			t.Errorf("%s: %d operations, and %d fields, of which %d differ", file, len(c.Tools[0].Operations), fields,
				len(placed))
		}
		for field, want := range map[string]string{"query repository": "query", "query __schema": "query",
			"mutation createIssue": "mutation.create", "mutation mergePullRequest": "mutation.merge",
			"mutation deleteRef": "mutation.delete", "mutation removeStar": "mutation.delete",
			"mutation lockLockable": "mutation.lockLockable", "mutation enqueuePullRequest": "mutation.other"} {
			if placed[field] != want {
				t.Errorf("%s: %s is of %q, want %q", file, field, placed[field], want)
			}
		}
	}
}
