package e2e

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/recipes"
	"github.com/ALRubinger/aileron/e2e/stub"
	"github.com/ALRubinger/aileron/sandbox/agents"
)

// interactive is an agent in a terminal.
type interactive struct {
	connector string
	args      []string
	ready     string   // is on the screen when it waits for a prompt
	quit      string   // the keys that end it
	denied    []string // hosts of requests of its own that are denied
}

var interactives = map[string]interactive{
	"claude": {"anthropic", []string{"--model", "claude-sonnet-4-5"}, "shortcuts", "\x03", nil},
	"codex": {"openai", []string{"-m", "gpt-5"}, "AskCodextodoanything", "\x03",
		[]string{"raw.githubusercontent.com"}},
	"opencode": {"anthropic", []string{"-m", "anthropic/claude-sonnet-4-5"}, "Askanything", "\x03",
		[]string{"registry.npmjs.org"}},
	"pi": {"anthropic", []string{"--provider", "anthropic", "--model", "claude-sonnet-4-5"}, "claude-sonnet-4-5",
		"\x03", nil},
}

// questions are what agents ask at their first start.
var questions = []string{"Choosethetextstyle", "Doyouwanttousethis", "Doyoutrust",
	"Trustthisfolder", "Securitynotes", "Selectloginmethod",
	"Yes,I", "SigninwithChatGPT", "PressEntertocontinue", "EntertoConfirm"}

// screen is the terminal of an agent.
type screen struct {
	*harness.Screen
	t *testing.T
}

// newScreen starts a command in a terminal of its own.
func newScreen(t *testing.T, cmd *exec.Cmd) screen {
	t.Helper()
	return screen{harness.NewScreen(t, cmd), t}
}

// waitFor waits until text was written, and fails if the agent asks something
// before.
func (s screen) waitFor(text string) {
	s.t.Helper()
	asked := ""
	here := harness.Poll(harness.Patience, 50*time.Millisecond, func() bool {
		ended, shown := s.Ended(), s.Shown()
		for _, q := range questions {
			if strings.Contains(shown, q) {
				asked = q
			}
		}
		return ended || asked != "" || strings.Contains(shown, text)
	})
	if !here || asked != "" || !strings.Contains(s.Shown(), text) {
		s.t.Fatalf("it shows no %q, and asks %q:\n%q", text, asked, s.Shown())
	}
}

// types types text until it is shown: some agents drop what was typed while they began, although their prompt was
// there.
func (s screen) types(text string) {
	s.t.Helper()
	const again = 20 * time.Second
	for since := time.Now(); !s.Ended() && time.Since(since) < harness.Patience; {
		s.TryKeys(text)
		if harness.Poll(again, 50*time.Millisecond, func() bool { return strings.Contains(s.Shown(), text) }) {
			break
		}
	}
	s.waitFor(text)
}

// The first screen of each agent is its prompt: it asks nothing before, and its
// first answer is the model's.
func TestAgentsStartAtTheirPrompt(t *testing.T) {
	for name, a := range interactives {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			startsAtItsPrompt(t, "podman", name, a)
		})
	}
	for name, a := range interactives {
		t.Run(name+" on docker", func(t *testing.T) { startsAtItsPrompt(t, "docker", name, a) })
	}
}

func startsAtItsPrompt(t *testing.T, engine, name string, a interactive) {
	harness.PodmanIsEnough(t, engine)
	if name != "claude" {
		harness.Turn(t)
	}
	harness.NeedEngine(t, engine)
	recipes.Need(t, engine, recipes.Agent(name))
	u := newUser(t, stub.Script{}, a.connector)
	// Codex asks for trust in a repository alone.
	if out, err := exec.Command("git", "init", "-q", u.project).CombinedOutput(); err != nil {
		t.Fatalf("git init: %v\n%s", err, out)
	}
	flags := append([]string{"launch", "--sandbox=" + engine, "--keep=false", "--dir", u.project}, u.reach()...)
	s := newScreen(t, u.command(append(append(flags, name, "--"), a.args...)...))
	s.waitFor(a.ready)
	s.types("say-something")
	s.Keys("\r")
	s.waitFor("Alldone,saysthestub.")
	s.quit(a.quit)
	if !u.modelKnowsTheSandbox() {
		t.Error("the model is not told where the agent runs")
	}
	for _, r := range u.rows("--decision", "rejected") {
		if host, _ := r["host"].(string); !slices.Contains(a.denied, host) {
			t.Errorf("its own request is refused: %v %v%v %v", r["method"], host, r["path"], r["reason"])
		}
	}
	if left, err := os.ReadDir(u.project); err != nil || len(left) != 1 {
		t.Errorf("the project has %v, %v; want its repository alone", left, err)
	}
}

// modelKnowsTheSandbox reports whether a model was told where to read what is
// allowed.
func (u *user) modelKnowsTheSandbox() bool {
	return slices.ContainsFunc(u.origin.Seen(), func(s stub.Seen) bool {
		return strings.Contains(s.Body, "This is an Aileron sandbox") && strings.Contains(s.Body, "/etc/aileron/tools.txt")
	})
}

// quit presses the keys that end an agent, until it has: some ask for them twice,
// and within a moment.
func (s screen) quit(keys string) {
	s.t.Helper()
	if !harness.Poll(harness.Patience, 300*time.Millisecond, func() bool {
		ended := s.Ended()
		if !ended {
			s.TryKeys(keys) // it may end meanwhile
		}
		return ended
	}) {
		s.t.Fatalf("it does not end:\n%q", s.Shown())
	}
}

// What a box before had written stays, but for the answers.
func TestTheAnswersForClaudeChangeNothingElse(t *testing.T) {
	t.Parallel()
	needPodman(t)
	image := recipes.Agent("claude")
	recipes.Need(t, "podman", image)
	claude, _ := agents.Find("claude")
	u := newUser(t, stub.Script{})
	trusted := `"` + u.project + `":{"hasTrustDialogAccepted":true}}`
	answers := `"hasCompletedOnboarding":true,"theme":"dark","projects":{` + trusted
	script, want := "", ""
	for _, c := range []struct{ before, after string }{
		{":", "{" + answers + "}"},
		{"export ANTHROPIC_API_KEY=sk-0123456789abcdefghij",
			"{" + answers + `,"customApiKeyResponses":{"approved":["0123456789abcdefghij"]}}`},
		{`echo '{"n":1,"theme":"light","projects":{"/x":{"a":2}}}' >$f`, `{"n":1,"theme":"light",` +
			`"projects":{"/x":{"a":2},` + trusted + `,"hasCompletedOnboarding":true}`},
		{"echo '{torn' >$f", "{torn"},                       // it is no JSON
		{`echo '{"projects":[1]}' >$f`, `{"projects":[1]}`}, // it has another type
		{"mkfifo $f", "fifo"},                               // reading it would wait
		{"mkdir $f", "directory"},                           // it cannot be replaced
	} {
		script += `(export HOME=$(mktemp -d); f=$HOME/.claude/.claude.json; mkdir $HOME/.claude
			` + c.before + "\n" + claude.Prelude + `
			if [ -f $f ]; then jq -c . $f 2>/dev/null || cat $f; else stat -c %F $f; fi; ls -A $HOME/.claude)
		`
		want += c.after + "\n.claude.json\n"
	}
	if r := u.box(script, "--image", image.Ref); r.out != want || r.code != 0 {
		t.Errorf("exit %d, it is\n%s\nwant\n%s\n%s", r.code, r.out, want, r.err)
	}
}
