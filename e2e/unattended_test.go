package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/e2e/recipes"
	"github.com/ALRubinger/aileron/e2e/stub"
)

// asking is an agent in a terminal whose settings make it ask before a command.
type asking struct {
	agent    string
	owner    int    // of the project, and so the user in the sandbox
	file     string // the settings; "": it asks anyway
	settings string
	asks     string // is on the screen when it asks
	ready    string // is on the screen when it does not ask, and waits for a prompt
}

var askings = map[string]asking{
	"claude":                   {agent: "claude", asks: "Doyouwanttoproceed", ready: "bypasspermissionson"},
	"claude for another owner": {agent: "claude", owner: 1000, ready: "bypasspermissionson"},
	"codex": {agent: "codex", file: ".codex/config.toml", settings: "sandbox_mode = \"read-only\"\n",
		ready: "AskCodextodoanything"},
}

// An unattended agent runs the command without asking. It asks otherwise: the test would prove nothing if it did not.
func TestAnUnattendedAgentDoesNotAsk(t *testing.T) {
	for name, a := range askings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a.doesNotAsk(t, "podman")
		})
	}
	for name, a := range askings { // one after the other: two at once would load their images at once
		t.Run(name+" on docker", func(t *testing.T) {
			harness.PodmanIsEnough(t, "docker")
			a.doesNotAsk(t, "docker")
		})
	}
}

func (a asking) doesNotAsk(t *testing.T, engine string) {
	t.Helper()
	harness.NeedEngine(t, engine)
	recipes.Need(t, engine, recipes.Agent(a.agent))
	if a.asks != "" {
		s, ran := a.start(t, engine, "--unattended=false")
		s.waitFor(a.asks)
		if ran() {
			t.Error("it ran the command before it was answered")
		}
	}
	s, ran := a.start(t, engine, "--unattended")
	s.waitFor("Alldone,saysthestub.")
	if !ran() {
		t.Errorf("it did not run the command:\n%q", s.Shown())
	}
	s.quit("\x03")
}

// opencode rejects what it would ask for where there is no terminal. What is denied stays denied.
func TestUnattendedOpencodeRunsWhatItWouldAskFor(t *testing.T) {
	t.Parallel()
	needPodman(t)
	recipes.Need(t, "podman", recipes.Agent("opencode"))
	for _, c := range []struct {
		flag, bash string
		runs       bool
	}{
		{"--unattended", "ask", true}, {"--unattended=false", "ask", false}, {"--unattended", "deny", false},
	} {
		u := newUser(t, stub.Script{Command: "touch ran"}, "anthropic")
		u.write("opencode.json", `{"permission":{"bash":"`+c.bash+`"}}`)
		args := append([]string{"launch", c.flag, "--sandbox=podman", "--keep=false", "--dir", u.project}, u.reach()...)
		r := u.run(append(args, "opencode", "--", "run", "-m", "anthropic/claude-sonnet-4-5", "say something")...)
		if _, err := os.Stat(filepath.Join(u.project, "ran")); (err == nil) != c.runs {
			t.Errorf("%s, and bash is %q: it runs the command: %v, want %v\n%s%s", c.flag, c.bash, err == nil, c.runs, r.out,
				r.err)
		}
		if n := len(u.rows("--event", "session.started")); n != 1 {
			t.Errorf("%d sessions", n)
		}
		if on := u.rows("--event", "session.started")[0]["fields"].(map[string]any)["unattended"] == true; on !=
			(c.flag == "--unattended") {
			t.Errorf("%s: session.started has unattended %v", c.flag, on)
		}
	}
}

// start starts the agent in a terminal and types a prompt, upon which its model asks for a command. ran reports whether
// that has run.
func (a asking) start(t *testing.T, engine, flag string) (s screen, ran func() bool) {
	t.Helper()
	i := interactives[a.agent]
	u := newUser(t, stub.Script{Command: "touch ran"}, i.connector)
	if out, err := exec.Command("git", "init", "-q", u.project).CombinedOutput(); err != nil {
		t.Fatalf("git init: %v\n%s", err, out)
	}
	if a.file != "" {
		must.Do(t, os.MkdirAll(filepath.Join(u.project, filepath.Dir(a.file)), 0o755))
		u.write(a.file, a.settings)
	}
	if a.owner != 0 {
		must.Do(t, os.Chown(u.project, a.owner, a.owner))
	}
	flags := append([]string{"launch", flag, "--sandbox=" + engine, "--keep=false", "--dir", u.project}, u.reach()...)
	s = newScreen(t, u.command(append(append(flags, a.agent, "--"), i.args...)...))
	if flag == "--unattended" {
		i.ready = a.ready
	}
	s.waitFor(i.ready)
	s.types("say-something")
	s.Keys("\r")
	return s, func() bool {
		return harness.Poll(time.Second, 50*time.Millisecond, func() bool {
			_, err := os.Stat(filepath.Join(u.project, "ran"))
			return err == nil
		})
	}
}
