package catalog

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/recipes"
	"github.com/ALRubinger/aileron/e2e/services"
	"github.com/ALRubinger/aileron/e2e/stub"
)

// In a sandbox gh reads, and makes a pull request, without a question. It merges once that is approved, and never
// deletes a repository.
func TestGhInASandboxAsksBeforeItMerges(t *testing.T) {
	t.Parallel()
	needPodman(t)
	image := recipes.Services()
	recipes.Need(t, "podman", image)
	p := newPerson(t)
	o := services.Start(t, "", image.Ref, stub.Script{})
	p.install("github", "github-graphql")
	harness.Copy(t, "testdata/gh.sh", p.project)
	args := []string{"sandbox", "run", "--sandbox=podman", "--image", image.Ref, "--dir", p.project, "--upstream-ca",
		o.Roots}
	for authority, addr := range o.Addresses() {
		args = append(args, "--resolve", authority+":"+addr)
	}
	cmd := exec.CommandContext(t.Context(), binary, append(args, "--", "bash", "gh.sh")...)
	cmd.Env, cmd.WaitDelay = harness.Env(p.home, passphrase), time.Minute
	ended := make(chan result, 1)
	go func() {
		out, err := cmd.CombinedOutput()
		ended <- result{string(out), err}
	}()
	p.approve(t, "graphql.merge", ended)
	r := <-ended
	if r.err != nil || !strings.Contains(r.out, "\nmerged\n") || !strings.Contains(r.out, "\nnot deleted\n") {
		t.Errorf("%v\n%s", r.err, r.out)
	}
	p.judgeGraphQL(t, "graphql query repository", "graphql.write mutation createPullRequest",
		"graphql.merge mutation mergePullRequest", "graphql mutation deleteRepository content_not_allowed")
	out, _, _ := p.run("audit", "list", "--json", "--limit", "0", "--decision", "rejected")
	if !strings.Contains(out, `"DELETE"`) || !strings.Contains(out, `"operation_not_matched"`) {
		t.Errorf("gh repo delete is not denied:\n%s", out)
	}
	if strings.Contains(r.out, token[:16]) {
		t.Error("the token is in the output")
	}
}
