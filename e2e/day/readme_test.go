package day

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/e2e/services"
)

// followed is the shell in which the lines of the README are typed: aileron is led to the stand-ins.
const followed = `aileron() {
	local verb=$1; shift
	case $verb in
	launch) command aileron launch %FLAGS% "$@" && echo the-launch-has-ended ;;
	setup) command aileron setup --sandbox=podman "$@" ;;
	*) command aileron "$verb" "$@" ;;
	esac
}
set -e
trap "exit 143" TERM
`

// The lines of the README lead to a pushed commit as they stand, but for those that fetch and build aileron.
func TestTheReadmeLeadsToAPushedCommit(t *testing.T) {
	t.Parallel()
	readme := readFile(t, "../../README.md")
	block := regexp.MustCompile("(?s)## From a clone to a pushed commit\n\n```sh\n(.*?)```").FindStringSubmatch(readme)
	if block == nil {
		t.Fatal("the README has no such block")
	}
	lines := strings.Split(strings.TrimSpace(block[1]), "\n")
	if len(lines) > 10 || !strings.HasPrefix(lines[0], "git clone ") ||
		!strings.Contains(lines[1], "rust-just prepare build") {
		t.Fatalf("it has the lines %q", lines)
	}
	p := newPerson(t, cell{agent: "claude", engine: "podman"}, readFile(t, "testdata/fix.sh"))
	home := filepath.Join(p.dir, "home")
	mine := filepath.Join(home, "my-project")
	must.Do(t, os.MkdirAll(mine, 0o755))
	p.git("clone", "-q", p.origin.Repository("acme/tool.git"), mine)
	p.git("-C", mine, "remote", "set-url", "origin", "https://github.com/acme/tool.git")
	p.project = mine
	flags := strings.Join(slices.DeleteFunc(p.reach(), func(f string) bool { return f == "--dir" || f == mine }), " ")
	script := strings.Replace(followed, "%FLAGS%", flags, 1) + strings.Join(lines[2:], "\n") + "\n"
	cmd := exec.CommandContext(t.Context(), "bash", "--noprofile", "--norc", "-c",
		strings.ReplaceAll(script, "the-branch", "better-comment"))
	cmd.Dir = home
	cmd.Env = append(os.Environ(), "HOME="+home, "PATH="+filepath.Dir(binary)+":"+os.Getenv("PATH"), "TERM=xterm-256color",
		"GIT_PAGER=cat", p.env[0], p.env[2], p.env[3])
	p.forget()
	t.Cleanup(func() {
		lock := exec.Command(binary, "vault", "lock")
		lock.Env = cmd.Env
		if out, err := lock.CombinedOutput(); err != nil {
			t.Errorf("lock the vault: %v\n%s", err, out)
		}
	})
	s := harness.NewScreen(t, cmd)
	at := 0
	for _, a := range []struct{ shown, keys string }{
		{"AnthropicAPIkey", services.Key + "\r"},
		{"GitHubtoken", services.Token + "\r"},
		{"[y/N]", "n\r"},
		{"passphraseofthevault:", passphrase + "\r"},
		{"again:", passphrase + "\r"},
		{"[y/N]", "n\r"}, // agents that do not ask
		{"[y/N]", "n\r"}, // a word before what writes
		{"[Y/n]", "y\r"},
		{"[y/N]", "y\r"}, // the registries
		{"passphraseofthevault:", passphrase + "\r"},
		// Claude Code's first screen.
		{"foragents", "fix-the-failing-test"},
		{"fix-the-failing-test", "\r"},
		{"Doyouwanttoproceed", ""},
	} {
		at = s.WaitFor(a.shown, at)
		s.Keys(a.keys)
	}
	p.choose(s, at)
	s.WaitFor("Alldone,saysthestub.", at)
	p.leave(s)
	harness.WaitFor(t, "the lines end", s.Ended)
	p.judgePush(mine)
	contains(t, "what the lines print", s.Shown(), "[githubgit.push]", "+//Commandtoolprintsthesumoftwonumbers.")
}

// leave ends Claude Code, which takes a second Ctrl-C for one only within a moment of the first: on a busy machine it
// may be the first of another two. One too many would end what comes after.
func (p *person) leave(s *harness.Screen) {
	p.t.Helper()
	const tries = 5
	at := len(s.Shown())
	left := func() bool { return s.Ended() || strings.Contains(s.Shown()[at:], "the-launch-has-ended") }
	for range tries {
		hint := len(s.Shown())
		s.Keys("\x03")
		s.WaitFor("again", hint)
		s.Keys("\x03")
		if harness.Poll(harness.Patience/tries, 50*time.Millisecond, left) {
			return
		}
	}
	p.t.Fatalf("it does not end:\n%s", s.Text())
}

// choice is the line of Claude Code's question that is drawn as the chosen one.
var choice = regexp.MustCompile("❯(?:[12][.])?(Yes|No)")

// keyTime is how long a key is waited for before it is pressed again.
const keyTime = 20 * time.Second

// choose answers with the second choice, a yes, the question that is shown after the first bytes of what is Shown. It
// presses one key at a time: a question that has just appeared takes none, and on a busy machine one that was pressed
// is taken seconds later. One more leads back to No, which Enter would then answer.
func (p *person) choose(s *harness.Screen, at int) {
	p.t.Helper()
	drawn := func() (times int, last string) {
		all := choice.FindAllStringSubmatch(s.Shown()[at:], -1)
		if len(all) > 0 {
			last = all[len(all)-1][1]
		}
		return len(all), last
	}
	yes := func() bool { _, last := drawn(); return last == "Yes" }
	for pressed := 1; !s.Ended() && time.Duration(pressed)*keyTime < harness.Patience; pressed++ {
		s.Keys("\x1b[B")
		if !harness.Poll(keyTime, 50*time.Millisecond, yes) {
			continue
		}
		// Of several, a late one may still arrive.
		if pressed == 1 || !harness.Poll(keyTime, 50*time.Millisecond, func() bool { return !yes() }) {
			before, _ := drawn()
			s.Keys("\r")
			// A question that is drawn anew meanwhile begins with its first choice, and has not got the key.
			if !harness.Poll(keyTime, 50*time.Millisecond, func() bool { now, _ := drawn(); return now > before && !yes() }) {
				return
			}
		}
	}
	p.t.Fatalf("it does not come to a yes:\n%s", s.Text())
}
