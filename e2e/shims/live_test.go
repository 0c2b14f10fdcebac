package shims

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
)

// later is a connector without a credential, whose command has a name.
func later(t *testing.T, name, command, version string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	fqn := "github://later/" + name
	write := func(file, text string) { must.Do(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600)) }
	write("manifest.toml", "[connector]\nname = \""+fqn+"\"\nversion = \""+version+"\"\n"+
		"[capabilities.network]\nhosts = [\"api.github.com:443\"]\n[provides]\nintents = [\"read\"]\n")
	write("aileron.connector.v1.json", `{"schema_version":"aileron.connector.v1","connector":{"fqn":"`+fqn+`",
		"version":"`+version+`"},"tools":[{"name":"`+command+`","operations":[{"name":"get","method":"GET",
		"path":"/later/`+name+`","hosts":["api.github.com"]}]}]}`)
	return dir
}

// meanwhile runs steps on the host, each when the sandbox has made the file of its number in the project.
func (p *person) meanwhile(steps ...func()) (done chan struct{}) {
	done = make(chan struct{})
	go func() {
		defer close(done)
		for i, step := range steps {
			at := filepath.Join(p.project, string(rune('1'+i)))
			made := func() bool { _, err := os.Stat(at); return err == nil }
			if !harness.Poll(harness.Patience, 20*time.Millisecond, made) {
				p.t.Errorf("the sandbox did not come to step %d", i+1)
				return
			}
			step()
		}
	}()
	return done
}

// A command appears in a sandbox that runs when its connector is installed, and goes with it; so does its line.
func TestCommandsFollowWhatIsInstalled(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *person, image string, flags ...string) {
		command := func(args ...string) func() {
			return func() {
				if r := p.aileron(args...); r.code != 0 {
					t.Errorf("%q: %s", args, r.err)
				}
			}
		}
		one, two := later(t, "one", "later", "1.0.0"), later(t, "one", "later", "1.1.0")
		rival := later(t, "rival", "Later", "1.0.0")
		done := p.meanwhile(
			command("connector", "install", one, "--yes"),
			command("connector", "install", rival, "--yes"),
			command("connector", "install", two, "--yes"),
			command("connector", "remove", "github://later/one"),
			command("connector", "remove", fqn),
		)
		r := p.box(image, `
session() { wget -q -O - --header "Authorization: Bearer $AILERON_TOKEN" http://aileron.internal/v1/session |
	tr ',' '\n' | grep '"generation"'; }
wait_for() { n=0; until eval "$1"; do n=$((n+1)); [ $n -lt 1200 ] || exit 9; sleep 0.1; done; }
later 2>/tmp/err; echo "before $?"; session; : >1
wait_for 'later get >/tmp/out 2>/tmp/err'
cat /tmp/out; grep '^later  ' /etc/aileron/tools.txt; command -v later; session; : >2
wait_for 'grep -q rival /etc/aileron/tools.txt || [ -d /opt/aileron/manifests/connectors/github/later/rival@1.0.0 ]'
later get; grep -c '^Later  ' /etc/aileron/tools.txt; : >3
wait_for 'later --help | grep -q 1.1.0'
ls /opt/aileron/manifests/connectors/github/later; : >4
wait_for 'later get >/tmp/out 2>/tmp/err; [ $? = 127 ]'
cat /tmp/err; grep -c '^later  ' /etc/aileron/tools.txt; github user.get; echo; : >5
wait_for 'github user.get >/tmp/out 2>/tmp/err; [ $? = 127 ]'
cat /tmp/err; cat /etc/aileron/tools.txt
echo mine >/etc/aileron/tools.txt; echo mine >/etc/aileron/bin/mine; rm /etc/aileron/bin/later
ls -A /etc/aileron/bin`, flags...)
		<-done
		for _, want := range []string{
			"before 127\n\"generation\":1\n",
			"later one\nlater  github://later/one -- Aileron connector operations: get\n/etc/aileron/bin/later\n",
			"\"generation\":2\nlater one\n0\n", "one@1.1.0\n",
			"later: not found: this session has no such connector or action any more\nhint: /etc/aileron/tools.txt lists",
			"{\"login\":\"octo-stand-in\"}\n",
			"github: not found: this session has no such connector or action any more\n",
		} {
			if !strings.Contains(r.out, want) {
				t.Errorf("the output has no %q", want)
			}
		}
		if strings.Contains(r.out, "mine\n") || !strings.HasSuffix(r.out, "\nlater\n") {
			t.Error("the sandbox changed what this host writes")
		}
		if want := "github://later/rival@1.0.0 has no command in the running sandbox of "; !strings.Contains(r.err, want) {
			t.Errorf("the owner is not told %q", want)
		}
		if t.Failed() || r.code != 0 {
			t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
		}
	})
}
