package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/e2e/recipes"
	"github.com/ALRubinger/aileron/e2e/stub"
)

// prompted is a real agent and what makes it take a prompt without a person.
type prompted struct {
	agent, connector, placeholder string
	endpoint                      string // where the model is asked
	args                          []string
	config                        string // a file of the project, if any
}

// The images are built by aileron from its own recipes and stay for the next
// run: they are the product's, not the tests'.
var prompts = map[string]prompted{
	"claude": {"claude", "anthropic", "sk-ant-placeholder-the-real-one-stays-outside", "/v1/messages",
		[]string{"-p", "please run the tool", "--model", "claude-sonnet-4-5", "--allowedTools", "Bash(*)"}, ""},
	"claude with a subscription": {"claude", "anthropic-oauth", "sk-ant-oat01-placeholder-the-real-one-stays-outside",
		"/v1/messages",
		[]string{"-p", "please run the tool", "--model", "claude-sonnet-4-5", "--allowedTools", "Bash(*)"}, ""},
	"codex": {"codex", "openai", "sk-placeholder-the-real-one-stays-outside", "/v1/responses",
		[]string{"exec", "--skip-git-repo-check", "-m", "gpt-5", "please run the tool"}, ""},
	"opencode with anthropic": {"opencode", "anthropic", "sk-ant-placeholder-the-real-one-stays-outside", "/v1/messages",
		[]string{"run", "-m", "anthropic/claude-sonnet-4-5", "--format", "json", "please run the tool"},
		`{"permission":{"bash":"allow","external_directory":"allow"}}`},
	"pi with anthropic": {"pi", "anthropic", "sk-ant-placeholder-the-real-one-stays-outside", "/v1/messages",
		[]string{"--provider", "anthropic", "--model", "claude-sonnet-4-5", "-p", "please run the tool"}, ""},
	"opencode with openai": {"opencode", "openai", "sk-placeholder-the-real-one-stays-outside", "/v1/responses",
		[]string{"run", "-m", "openai/gpt-5", "--format", "json", "please run the tool"},
		`{"permission":{"bash":"allow","external_directory":"allow"}}`},
}

// One prompt, one tool call, one request to GitHub with a credential, and a
// look into the box while the model thinks about the result.
func TestAgentsFinishAPromptWithKeysThatTheyNeverSee(t *testing.T) {
	for name, a := range prompts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name != "claude" {
				harness.Turn(t)
			}
			finishesAPrompt(t, "podman", a)
		})
	}
	// Two at once would load their images at once.
	for _, name := range []string{"claude", "codex", "opencode with anthropic"} {
		t.Run(name+" on docker", func(t *testing.T) {
			if name != "claude" {
				harness.PodmanIsEnough(t, "docker")
			}
			finishesAPrompt(t, "docker", prompts[name])
		})
	}
}

func finishesAPrompt(t *testing.T, engine string, a prompted) {
	harness.NeedEngine(t, engine)
	fetch := "curl -sS https://api.github.com/user"
	if a.agent == "opencode" {
		fetch = "github user.get"
	}
	u := newUser(t, stub.Script{
		Command: fetch + " | tee out.txt; cat /proc/1/environ >/tmp/found; echo TOOL-RAN",
		Hold:    true, Subscription: a.connector == "anthropic-oauth",
	}, a.connector, "github")
	u.engine = engine
	if a.config != "" {
		must.Do(t, os.WriteFile(filepath.Join(u.project, a.agent+".json"), []byte(a.config), 0o644))
	}
	image := recipes.Agent(a.agent)
	recipes.Need(t, engine, image)
	if got := strings.TrimSpace(u.must("sandbox", "build", "--sandbox="+engine, "--if-missing", "--agent",
		a.agent).out); got != image.Ref {
		t.Fatalf("aileron's image of %s is %s, and the suites prepare %s", a.agent, got, image.Ref)
	}
	flags := append([]string{"launch", "--sandbox=" + engine, "--keep=false", "--dir", u.project}, u.reach()...)
	cmd := u.command(append(append(flags, a.agent, "--"), a.args...)...)
	u.finishesItsPrompt(a, cmd, func() { u.searchBoxes(a.placeholder) })
	if left := u.leftovers(); left != "" {
		t.Errorf("containers are left: %s", left)
	}
}

// finishesItsPrompt runs an agent until it ends, and calls meanwhile when its tool has run and the agent waits for the
// model. What the agent said and did, and what arrived and was recorded, is checked.
func (u *user) finishesItsPrompt(a prompted, cmd *exec.Cmd, meanwhile func()) {
	t := u.t
	t.Helper()
	ended := make(chan struct{})
	var r result
	go func() { defer close(ended); r = finish(t, cmd) }()
	release := sync.OnceFunc(func() { close(u.origin.Release) })
	t.Cleanup(func() { release(); <-ended })
	if !u.modelIsTold("TOOL-RAN", ended) {
		<-ended
		t.Fatalf("exit %d before the model was told what the tool said\n%s\n%s", r.code, r.out, r.err)
	}
	meanwhile()
	release()
	<-ended
	if r.code != 0 {
		t.Fatalf("exit %d\n%s\n%s", r.code, r.out, r.err)
	}
	contains(t, "what the agent said", r.out, "All done, says the stub.")
	if strings.Contains(r.out+r.err, secret[:16]) || strings.Contains(r.out+r.err, modelKey[:16]) {
		t.Error("a secret is in the output")
	}
	if out, err := os.ReadFile(filepath.Join(u.project, "out.txt")); err != nil ||
		!strings.Contains(string(out), "octo-stand-in") {
		t.Errorf("the tool's output: %q, %v", out, err)
	}
	u.checkWhatArrived(a)
	u.checkRows(a)
}

// modelIsTold waits until a request to a model holds text; false when the
// agent ends before.
func (u *user) modelIsTold(text string, ended chan struct{}) bool {
	u.t.Helper()
	for {
		for _, s := range u.origin.Seen() {
			// The command holds it too; its result does without the word before.
			if s.Host != stub.GitHub && strings.Contains(strings.ReplaceAll(s.Body, "echo "+text, ""), text) {
				return true
			}
		}
		select {
		case <-ended:
			return false
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// checkWhatArrived asks the stub: the real keys where they belong, the
// tool ran once, and no key stands in what was said.
func (u *user) checkWhatArrived(a prompted) {
	u.t.Helper()
	prompts, tools := 0, 0
	for _, s := range u.origin.Seen() {
		switch {
		case s.Path == a.endpoint:
			prompts++
			if s.APIKey() != modelKey && s.Auth() != "Bearer "+modelKey {
				u.t.Errorf("the provider saw %v", s.Header)
			}
		case s.Host == stub.GitHub && s.Path == "/user":
			tools++
			if s.Auth() != "Bearer "+secret {
				u.t.Errorf("GitHub saw %q", s.Auth())
			}
		}
		if strings.Contains(s.Body, modelKey) || strings.Contains(s.Body, secret) {
			u.t.Errorf("a key is in the body of %s %s", s.Host, s.Path)
		}
	}
	if prompts < 2 || tools != 1 {
		u.t.Errorf("the model was asked %d times, want at least 2; the tool ran %d times, want 1", prompts, tools)
	}
}

// checkRows asks the audit log for the same.
func (u *user) checkRows(a prompted) {
	u.t.Helper()
	done := map[string]int{}
	for _, r := range u.rows() {
		switch r["decision"] {
		case "proxied":
			done[fmt.Sprint(r["connector_fqn"], " ", r["operation"])]++
		case "rejected":
			u.t.Logf("%s was refused %v %v%v: %v", a.agent, r["method"], r["host"], r["path"], r["reason"])
		}
	}
	if n := done[connectors["github"].FQN+" user.get"]; n != 1 {
		u.t.Errorf("%d rows for the tool's request, want 1", n)
	}
	asked := " messages.create"
	if a.connector == "openai" {
		asked = " responses.create"
	}
	model := connectors[a.connector].FQN + asked
	if done[model] < 2 {
		u.t.Errorf("the rows are %v, want at least 2 of %s", done, model)
	}
	u.dropsOnly()
	u.must("audit", "verify")
}

// gh is the host's own: scripts/prepare installs it.
func TestGhInABoxWorksWithItsPlaceholder(t *testing.T) {
	t.Parallel()
	needPodman(t)
	gh, err := exec.LookPath("gh")
	if err != nil {
		t.Fatal("there is no gh; scripts/prepare installs it")
	}
	u := newUser(t, stub.Script{}, "github")
	// A box sees nothing of the host but the project.
	if out, err := exec.Command("cp", gh, filepath.Join(u.project, "gh")).CombinedOutput(); err != nil {
		t.Fatalf("copy gh: %v\n%s", err, out)
	}
	r := u.box("PATH=$PWD:$PATH; gh api user; gh api repos/o/r; gh api repos/o/r/issues; gh api repos/o/r/issues -f " +
		"title=New; " +
		"for c in 'issue list -R o/r' 'repo view o/r' 'auth status'; do gh $c && echo UNEXPECTED; done 2>&1; env | grep " +
		"GH_TOKEN")
	contains(t, "gh", r.out, "octo-stand-in", `"full_name":"o/r"`, `"title":"An issue of the stub"`, `"number":8`,
		"GH_TOKEN=placeholder", "HTTP 403", "api.github.com/graphql")
	if strings.Contains(r.out, "UNEXPECTED") {
		t.Errorf("a command that needs GraphQL succeeded\n%s", r.out)
	}
	for _, s := range u.origin.Seen() {
		if s.Auth() != "Bearer "+secret || s.Path == "/graphql" {
			t.Errorf("the stub saw %q at %s", s.Auth(), s.Path)
		}
	}
	u.dropsOnly()
}

// dropsOnly fails the test unless the operations take every field that their
// client sends, but for those named.
func (u *user) dropsOnly(names ...string) {
	u.t.Helper()
	for _, r := range u.rows() {
		fields, _ := r["fields"].(map[string]any)
		dropped, _ := fields["dropped_headers"].([]any)
		for _, name := range dropped {
			if !slices.Contains(names, fmt.Sprint(name)) {
				u.t.Errorf("the operation %v drops the field %v", r["operation"], name)
			}
		}
	}
}
