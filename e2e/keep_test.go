package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/e2e/recipes"
	"github.com/ALRubinger/aileron/e2e/stub"
)

// conversation is how an agent says something, and goes on in its next session:
// with the last conversation, or with the one that it names by an ID.
type conversation struct {
	connector       string
	first, last, by []string
	id              *regexp.Regexp
}

var conversations = map[string]conversation{
	"claude": {"anthropic",
		[]string{"-p", "the word is xyzzy", "--model", "claude-sonnet-4-5", "--output-format", "json",
			"--allowedTools", "Bash(*)"},
		[]string{"--continue", "-p", "--model", "claude-sonnet-4-5", "which word was it"},
		[]string{"--resume", "ID", "-p", "--model", "claude-sonnet-4-5", "which word was it"},
		regexp.MustCompile(`"session_id":"([^"]+)"`)},
	"codex": {"openai",
		[]string{"exec", "--skip-git-repo-check", "-m", "gpt-5", "the word is xyzzy"},
		[]string{"exec", "--skip-git-repo-check", "-m", "gpt-5", "resume", "--last", "which word was it"},
		[]string{"exec", "--skip-git-repo-check", "-m", "gpt-5", "resume", "ID", "which word was it"},
		regexp.MustCompile(`session id: (\S+)`)},
	"opencode": {"anthropic",
		[]string{"run", "-m", "anthropic/claude-sonnet-4-5", "--format", "json", "the word is xyzzy"},
		[]string{"run", "--continue", "-m", "anthropic/claude-sonnet-4-5", "which word was it"},
		[]string{"run", "-s", "ID", "-m", "anthropic/claude-sonnet-4-5", "which word was it"},
		regexp.MustCompile(`"sessionID":"(ses_[^"]+)"`)},
	"pi": {"anthropic",
		[]string{"--provider", "anthropic", "--model", "claude-sonnet-4-5", "--mode", "json", "-p", "the word is xyzzy"},
		[]string{"--continue", "--provider", "anthropic", "--model", "claude-sonnet-4-5", "-p", "which word was it"},
		[]string{"--session", "ID", "--provider", "anthropic", "--model", "claude-sonnet-4-5", "-p", "which word was it"},
		regexp.MustCompile(`"type":"session"[^{}]*"id":"([^"]+)"`)},
}

// uses makes every credential of the session travel, and brings into the
// conversation what comes back, and all that the sandbox has.
const uses = "curl -sSi https://api.github.com/user; curl -sSi https://api.echo.example/echo; " +
	"curl -sS https://api.echo.example/echo-chunks; env; git -c credential.helper= ls-remote " +
	"https://x:$GH_TOKEN@api.echo.example/echo; cat /etc/aileron/* /proc/1/environ"

// What an agent knows survives its sandbox, without a secret in it, until it is
// removed.
func TestAnAgentGoesOnWhereItWas(t *testing.T) {
	for name, c := range conversations {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			goesOn(t, "podman", name, c)
		})
	}
	for name, c := range conversations {
		t.Run(name+" on docker", func(t *testing.T) { goesOn(t, "docker", name, c) })
	}
}

func goesOn(t *testing.T, engine, name string, c conversation) {
	harness.PodmanIsEnough(t, engine)
	if name != "claude" {
		harness.Turn(t)
	}
	harness.NeedEngine(t, engine)
	recipes.Need(t, engine, recipes.Agent(name))
	u := newUser(t, stub.Script{Command: uses}, c.connector, "github", "echo")
	u.engine = engine
	if name == "opencode" {
		u.write("opencode.json", `{"permission":{"bash":"allow","external_directory":"allow"}}`)
	}
	t.Cleanup(func() { u.must("sandbox", "prune", "--sandbox="+engine, "--state", "--yes") })
	launch := func(args []string, flags ...string) result {
		flags = append(append([]string{"launch", "--sandbox=" + engine, "--dir", u.project}, u.reach()...), flags...)
		return u.run(append(append(flags, name, "--"), args...)...)
	}
	first := launch(c.first)
	if first.code != 0 || len(u.rows("--host", stub.Echo, "--decision", "proxied")) == 0 {
		t.Fatalf("exit %d\n%s\n%s", first.code, first.out, first.err)
	}
	contains(t, "the report", first.err, "aileron launch "+name+" -- ")
	id := c.id.FindStringSubmatch(first.out + first.err)
	if id == nil {
		t.Fatalf("it names no conversation\n%s\n%s", first.out, first.err)
	}
	byID := slices.Clone(c.by)
	byID[slices.Index(byID, "ID")] = id[1]
	for _, args := range [][]string{c.last, byID} {
		seen := len(u.origin.Seen())
		if r := launch(args); r.code != 0 || !u.toldAgain(seen) {
			t.Errorf("%q: exit %d, and the model was not told again what it was told before\n%s\n%s", args, r.code,
				r.out, r.err)
		}
	}
	states := harness.States(t, engine, u.home)
	if len(states) != 1 {
		t.Fatalf("the states are %q, want one", states)
	}
	harness.SearchState(t, engine, states[0], "xyzzy", modelKey, secret, passphrase)
	u.refusesForeign(states[0], func() result { return launch(c.first) })
}

// toldAgain reports whether a model was told both prompts at once, after it has
// seen some requests.
func (u *user) toldAgain(seen int) bool {
	for _, s := range u.origin.Seen()[seen:] {
		if strings.Contains(s.Body, "the word is xyzzy") && strings.Contains(s.Body, "which word was it") {
			return true
		}
	}
	return false
}

// refusesForeign replaces the volume of a state by those that others have made
// under its name. One of them leads to a directory of the host.
func (u *user) refusesForeign(volume string, launch func() result) {
	u.t.Helper()
	var labels []string
	for line := range strings.Lines(u.ask("volume", "inspect", "-f",
		`{{range $k, $v := .Labels}}{{$k}}={{$v}}{{"\n"}}{{end}}`, volume)) {
		if line = strings.TrimSpace(line); line != "" {
			labels = append(labels, "--label", line)
		}
	}
	elsewhere := filepath.Join(filepath.Dir(u.home), "elsewhere")
	must.Do(u.t, os.Mkdir(elsewhere, 0o777))
	u.must("sandbox", "prune", "--sandbox="+u.engine, "--state", "--yes", "--dir", u.project)
	if left := harness.States(u.t, u.engine, u.home); len(left) > 0 {
		u.t.Errorf("the states are %q after prune", left)
	}
	for _, flags := range [][]string{
		nil,
		append([]string{"--label", "aileron.state=another"}, labels[2:]...),
		append([]string{"-o", "type=none", "-o", "o=bind", "-o", "device=" + elsewhere}, labels...),
	} {
		u.ask(append(append([]string{"volume", "create"}, flags...), volume)...)
		if r := launch(); r.code == 0 || !strings.Contains(r.err, "it was not made by this aileron") ||
			!strings.Contains(r.err, "volume rm "+volume) {
			u.t.Errorf("with the volume of %q: exit %d, %s", flags, r.code, r.err)
		}
		u.ask("volume", "rm", volume)
	}
	if left, err := os.ReadDir(elsewhere); err != nil || len(left) > 0 {
		u.t.Errorf("the sandbox wrote %v elsewhere, %v", left, err)
	}
}
