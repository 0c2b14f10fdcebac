package e2e

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/recipes"
	"github.com/ALRubinger/aileron/e2e/stub"
	"github.com/ALRubinger/aileron/sandbox/agents"
)

// interactive is an agent in a terminal.
type interactive struct {
	connector string
	args      []string
	ready     string // is on the screen when it waits for a prompt
	quit      string // the keys that end it
}

var interactives = map[string]interactive{
	"claude":   {"anthropic", []string{"--model", "claude-sonnet-4-5"}, "shortcuts", "\x03"},
	"codex":    {"openai", []string{"-m", "gpt-5"}, "AskCodextodoanything", "\x03"},
	"opencode": {"anthropic", []string{"-m", "anthropic/claude-sonnet-4-5"}, "Askanything", "\x03"},
}

// questions are what agents ask at their first start.
var questions = []string{"Choosethetextstyle", "Doyouwanttousethis", "Doyoutrust", "Securitynotes", "Selectloginmethod",
	"Yes,I", "SigninwithChatGPT", "PressEntertocontinue", "EntertoConfirm"}

// screen is a terminal with what an agent has written to it.
type screen struct {
	t     *testing.T
	file  *os.File
	ended chan struct{}

	mu   sync.Mutex
	text strings.Builder
}

// newScreen starts a command in a terminal of its own.
func newScreen(t *testing.T, cmd *exec.Cmd) *screen {
	t.Helper()
	file, err := pty.StartWithAttrs(cmd, &pty.Winsize{Rows: 40, Cols: 120},
		&syscall.SysProcAttr{Setsid: true, Setctty: true})
	if err != nil {
		t.Fatal(err)
	}
	s := &screen{t: t, file: file, ended: make(chan struct{})}
	go func() { // ends with the terminal
		buf := make([]byte, 64<<10)
		for {
			n, err := file.Read(buf)
			if err != nil {
				return
			}
			s.mu.Lock()
			s.text.Write(buf[:n])
			s.mu.Unlock()
			if strings.Contains(string(buf[:n]), "\x1b[6n") { // where is the cursor?
				_, _ = file.WriteString("\x1b[1;1R")
			}
		}
	}()
	go func() { _ = cmd.Wait(); close(s.ended) }()
	t.Cleanup(func() {
		select {
		case <-s.ended:
		default:
			_ = cmd.Process.Signal(syscall.SIGTERM)
			<-s.ended
		}
		_ = file.Close()
	})
	return s
}

// waitFor waits until text was written, and fails if the agent asks something
// before.
func (s *screen) waitFor(text string) {
	s.t.Helper()
	asked := ""
	here := harness.Poll(harness.Patience, 50*time.Millisecond, func() bool {
		shown := s.shown()
		for _, q := range questions {
			if strings.Contains(shown, q) {
				asked = q
			}
		}
		select {
		case <-s.ended:
			return true
		default:
			return asked != "" || strings.Contains(shown, text)
		}
	})
	if !here || asked != "" || !strings.Contains(s.shown(), text) {
		s.t.Fatalf("it shows no %q, and asks %q:\n%q", text, asked, s.shown())
	}
}

// sequences are control sequences, strings and other escapes of ECMA-48.
var sequences = regexp.MustCompile("\x1b(\\[[0-9:;<=>?]*[ -/]*[@-~]|\\][^\x07\x1b]*(\x07|\x1b\\\\)|" +
	"[PX^_][^\x1b]*\x1b\\\\|[ -/]*[0-~])")

// shown is all that was written, without escape sequences and spaces: agents
// move the cursor instead of writing spaces.
func (s *screen) shown() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(strings.Fields(sequences.ReplaceAllString(s.text.String(), " ")), "")
}

func (s *screen) keys(keys string) {
	s.t.Helper()
	if _, err := s.file.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
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
	harness.NeedEngine(t, engine)
	recipes.Need(t, engine, recipes.Agent(name))
	u := newUser(t, stub.Script{}, a.connector)
	flags := append([]string{"launch", "--sandbox=" + engine, "--keep=false", "--dir", u.project}, u.reach()...)
	s := newScreen(t, u.command(append(append(flags, name, "--"), a.args...)...))
	s.waitFor(a.ready)
	s.keys("say-something")
	s.waitFor("say-something")
	s.keys("\r")
	s.waitFor("Alldone,saysthestub.")
	s.quit(a.quit)
	if left, err := os.ReadDir(u.project); err != nil || len(left) > 0 {
		t.Errorf("the project has %v, %v; want nothing", left, err)
	}
}

// quit presses the keys that end an agent, until it has: some ask for them twice,
// and within a moment.
func (s *screen) quit(keys string) {
	s.t.Helper()
	if !harness.Poll(harness.Patience, 300*time.Millisecond, func() bool {
		select {
		case <-s.ended:
			return true
		default:
			_, _ = s.file.WriteString(keys) // it may end meanwhile
			return false
		}
	}) {
		s.t.Fatalf("it does not end:\n%q", s.shown())
	}
}

// What a box before had written stays, but for the answers.
func TestTheAnswersForClaudeChangeNothingElse(t *testing.T) {
	t.Parallel()
	needPodman(t)
	image := recipes.Agent("claude")
	recipes.Need(t, "podman", image)
	claude, _ := agents.Find("claude")
	const answers = `"hasCompletedOnboarding":true,"theme":"dark","projects":{"/home/agent/workspace":` +
		`{"hasTrustDialogAccepted":true}}`
	script, want := "", ""
	for _, c := range []struct{ before, after string }{
		{":", "{" + answers + "}"},
		{"export ANTHROPIC_API_KEY=sk-0123456789abcdefghij",
			"{" + answers + `,"customApiKeyResponses":{"approved":["0123456789abcdefghij"]}}`},
		{`echo '{"n":1,"theme":"light","projects":{"/x":{"a":2}}}' >$f`, `{"n":1,"theme":"light",` +
			`"projects":{"/x":{"a":2},"/home/agent/workspace":{"hasTrustDialogAccepted":true}},"hasCompletedOnboarding":true}`},
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
	u := newUser(t, stub.Script{})
	if r := u.box(script, "--image", image.Ref); r.out != want || r.code != 0 {
		t.Errorf("exit %d, it is\n%s\nwant\n%s\n%s", r.code, r.out, want, r.err)
	}
}
