package day

import (
	"encoding/base64"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/e2e/services"
	"github.com/ALRubinger/aileron/e2e/stub"
)

// judgeWork checks what the agent made: the steps' output in the project, and the commit at the code host.
func (p *person) judgeWork(r result) {
	p.t.Helper()
	data, _ := os.ReadFile(filepath.Join(p.project, "work.log"))
	log := string(data)
	if r.code != 0 || !strings.Contains(r.out, "All done, says the stub.") || !strings.Contains(log, "telemetry") {
		p.t.Fatalf("the agent ends with %d\n%s%s\n%s", r.code, r.out, r.err, log)
	}
	for _, want := range []string{"added 1 package", "go: downloading golang.org/acme/tool", "ok 1 - a sum",
		"host_not_allowed"} {
		contains(p.t, "the work", log, want)
	}
	p.judgePush(filepath.Join(p.project, "tool"))
	if found := p.strangers(); found != "" {
		p.t.Errorf("files that are not those of user %d:\n%s", p.owner, found)
	}
}

// judgePush checks that a commit of the person's, made in a clone, is at the code host.
func (p *person) judgePush(at string) {
	p.t.Helper()
	got := p.git("-C", at, "log", "-1", "--format=%an <%ae> %cn: %s")
	if got != "Ada Person <ada@example.com> Ada Person: Say what is summed\n" {
		p.t.Errorf("the commit is by %q", got)
	}
	pushed := p.git("-C", p.origin.Repository("acme/tool.git"), "rev-parse", "better-comment")
	if head := p.git("-C", at, "rev-parse", "HEAD"); pushed != head {
		p.t.Errorf("the code host has %q, and the agent committed %q", pushed, head)
	}
	if got := p.git("-C", p.origin.Repository("acme/tool.git"), "show", "better-comment:main.go"); !strings.Contains(got,
		"prints the sum of two numbers") {
		p.t.Errorf("the code host has the file\n%s", got)
	}
}

// judgeReport checks the report on standard error.
func (p *person) judgeReport(r result) {
	p.t.Helper()
	contains(p.t, "the report", r.err, "exit code 0", "credentials", "github git.push",
		p.agent.provider+" "+p.agent.asks, "refused", "telemetry.acme.example: host_not_allowed",
		"aileron allow telemetry.acme.example", "aileron audit list --session ")
}

// judgeRows checks what is in the log: what was done, in which session and with which credential, and what was refused.
func (p *person) judgeRows() {
	p.t.Helper()
	type row struct {
		Event, Operation, Binding, Host, Decision, Reason string
		Connector                                         string `json:"connector_fqn"`
		Session                                           string `json:"session_id"`
		Status                                            int
	}
	var session string
	refused, done := 0, map[string]int{}
	for _, r := range harness.Rows[row](p.t, p.must("audit", "list", "--json", "--limit", "0").out) {
		if session == "" {
			session = r.Session
		}
		if r.Session != session && r.Session != "" {
			p.t.Errorf("%s is of session %q, others of %q", r.Event, r.Session, session)
		}
		name := r.Connector[strings.LastIndexByte(r.Connector, '-')+1:]
		switch {
		case r.Decision == "proxied" && r.Status < 300:
			done[name+" "+r.Operation]++
			if wants := name == "github" || name == "graphql" || name == p.agent.provider; wants != (r.Binding != "") {
				p.t.Errorf("%s %s used %q", r.Connector, r.Operation, r.Binding)
			}
		case r.Decision == "rejected" && r.Host == "telemetry.acme.example" && r.Reason == "host_not_allowed":
			refused++
		}
	}
	for _, operation := range []string{p.agent.provider + " " + p.agent.asks, "graphql graphql", "github git.fetch",
		"npm packages.download", "pypi simple.get", "pypi files.download", "go modules.download", "go storage.download",
		"go sumdb.lookup", "github git.push"} {
		if done[operation] == 0 {
			p.t.Errorf("the log has no row of %s: %v", operation, done)
		}
	}
	if done["github git.push"] != 1 {
		p.t.Errorf("the log has %d pushes", done["github git.push"])
	}
	if refused != 1 {
		p.t.Errorf("the log has %d refusals of the telemetry, want 1", refused)
	}
	p.must("audit", "verify")
}

// judgeArrivals checks that the services got the credential that belongs to each. They check that no other got one.
func (p *person) judgeArrivals() {
	p.t.Helper()
	token := "Basic " + base64.StdEncoding.EncodeToString([]byte("x-access-token:"+services.Token))
	asked, pushed := 0, 0
	for _, s := range p.origin.Seen() {
		switch {
		case s.Host == "github.com" && strings.HasSuffix(s.Path, "/git-receive-pack"):
			pushed++
			if s.Auth() != token {
				p.t.Errorf("the push arrived with %q", s.Auth())
			}
		case slices.Contains([]string{stub.Anthropic, stub.OpenAI, stub.Router}, s.Host) && s.Method == "POST":
			asked++
			if s.Auth() != "Bearer "+services.Key && s.APIKey() != services.Key {
				p.t.Errorf("the model was asked with %v", s.Header)
			}
		}
	}
	if asked < 2 || pushed == 0 {
		p.t.Errorf("the model was asked %d times, and %d pushes arrived", asked, pushed)
	}
}

// judgeSecrets searches all that a person or an agent could read for the secrets.
func (p *person) judgeSecrets(r result) {
	p.t.Helper()
	inside := readFile(p.t, filepath.Join(p.project, "inside"))
	contains(p.t, "what the agent could read", inside, "GH_TOKEN=placeholder")
	for _, secret := range []string{services.Token, services.Key} {
		if strings.Contains(r.out+r.err, secret[:16]) {
			p.t.Error("a secret is in the output")
		}
		found, err := exec.Command("grep", "-rlaF", secret, p.project, p.home).CombinedOutput()
		if code := exitCode(err); code != 1 || len(found) > 0 {
			p.t.Errorf("grep ends with %d: a secret is in %s", code, found)
		}
	}
	for _, s := range p.origin.Seen() {
		if strings.Contains(s.Body, services.Token) || strings.Contains(s.Body, services.Key) {
			p.t.Errorf("a secret is in the body of %s %s", s.Host, s.Path)
		}
	}
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	data := must.Get(os.ReadFile(name))(t)
	return string(data)
}

func contains(t *testing.T, what, text string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("%s lacks %q:\n%s", what, want, text)
		}
	}
}

func exitCode(err error) int {
	if exit, ok := err.(*exec.ExitError); ok {
		return exit.ExitCode()
	}
	if err != nil {
		return -1
	}
	return 0
}
