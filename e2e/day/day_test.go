// Package day is a day's work from nothing: aileron setup in a fresh home, and a real agent that clones, installs,
// builds, tests, commits and pushes in its sandbox, against stand-ins for the services under their real names; then a
// session that goes on with the conversation.
package day

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/stub"
	"github.com/ALRubinger/aileron/sandbox"
)

var binary string // the built aileron

func TestMain(m *testing.M) {
	os.Exit(harness.Run(m, "day", map[string]string{"aileron": "../../cmd/aileron"}, func(dir string) {
		binary = filepath.Join(dir, "aileron")
		if err := os.Chmod(dir, 0o755); err != nil { // other users run it
			panic(err)
		}
	}))
}

// cells are who has such a day.
var cells = map[string]cell{
	"claude":                         {agent: "claude", engine: "podman"},
	"claude on docker":               {agent: "claude", engine: "docker"},
	"claude for another's project":   {agent: "claude", engine: "podman", owner: ordinary},
	"claude without root":            {agent: "claude", engine: "podman", user: "rootless"},
	"claude of a member of docker":   {agent: "claude", engine: "docker", user: "group"},
	"claude without an engine":       {agent: "claude", engine: sandbox.Native, user: "native"},
	"codex":                          {agent: "codex", engine: "podman"},
	"codex on docker":                {agent: "codex", engine: "docker"},
	"opencode":                       {agent: "opencode", engine: "podman"},
	"opencode with chat completions": {agent: "opencode with openrouter", engine: "docker"},
}

const (
	prompt = "Say in the comment of main.go what is summed, and push it"
	next   = "What did you do?"
)

// One day, from a home that does not exist to a commit that is pushed, a look at it afterwards, and the next session.
func TestADayFromSetupToAPushedCommit(t *testing.T) {
	t.Parallel()
	for name, c := range cells {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name != "claude" && name != "claude on docker" {
				harness.PodmanIsEnough(t, engineOf(c.engine))
				harness.Turn(t)
			}
			p := newPerson(t, c, readFile(t, "testdata/work.sh"))
			p.setUp("--github-graphql")
			p.installRegistries()
			p.forget()
			r := p.launch(p.agent.ask(prompt))
			p.judgeWork(r)
			p.judgeReport(r)
			p.judgeRows()
			p.judgeArrivals()
			p.judgeSecrets(r)
			if name == "claude" {
				p.showDay(prompt, r)
			}
			r = p.goOn(r)
			if name == "claude" {
				p.showNext(r)
				p.record()
			}
			p.judgeState()
		})
	}
}

// goOn checks that the next session, which it returns, goes on with the conversation of the first.
func (p *person) goOn(first result) result {
	p.t.Helper()
	before := len(p.origin.Seen())
	r := p.launch(p.agent.goOn(next, first.out))
	if r.code != 0 {
		p.t.Errorf("the next session ends with %d\n%s%s", r.code, r.out, r.err)
	}
	if !slices.ContainsFunc(p.origin.Seen()[before:], func(s stub.Seen) bool {
		return strings.Contains(s.Body, prompt) && strings.Contains(s.Body, next)
	}) {
		p.t.Errorf("the next session does not go on with the conversation of the first\n%s%s", r.out, r.err)
	}
	p.judgeSecrets(r)
	return r
}
