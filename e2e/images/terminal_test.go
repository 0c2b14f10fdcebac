package images

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/recipes"
)

// The terminal of a person may be one that the image has no description of. Programs draw all the same, in its colours.
func TestATerminalThatTheImageDoesNotKnowIsOneThatItKnows(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, engine string) {
		p := newPerson(t, engine)
		for term, want := range map[string]string{"xterm-ghostty": "xterm-256color", "screen-256color": "screen-256color",
			"dumb": "dumb", "../../etc/passwd": "xterm-256color"} {
			command := binary + " sandbox run --sandbox=" + engine + " --image " + recipes.Toolbox().Ref + " --dir " +
				p.project + ` -- sh -c 'echo "<$TERM $COLORTERM $(tput cols >/dev/null && echo known)>"'`
			cmd := exec.CommandContext(t.Context(), "script", "-qec", command, "/dev/null")
			cmd.Env = append(os.Environ(), "AILERON_HOME="+p.home, "AILERON_VAULT_PASSPHRASE="+passphrase, "TERM="+term,
				"COLORTERM=truecolor")
			out, err := cmd.CombinedOutput()
			if want = "<" + want + " truecolor known>"; err != nil || !strings.Contains(string(out), want) {
				t.Errorf("%s: %v, want %s in\n%s", term, err, want, harness.WithoutNotices(string(out)))
			}
		}
	})
}
