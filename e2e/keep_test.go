package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/recipes"
	"github.com/ALRubinger/aileron/e2e/stub"
)

// conversation is how an agent says something, and goes on in its next session.
type conversation struct {
	connector string
	first, on []string
}

var conversations = map[string]conversation{
	"claude": {"anthropic", []string{"-p", "--model", "claude-sonnet-4-5", "the word is xyzzy"},
		[]string{"-p", "-c", "--model", "claude-sonnet-4-5", "which word was it"}},
	"codex": {"openai", []string{"exec", "--skip-git-repo-check", "-m", "gpt-5", "the word is xyzzy"},
		[]string{"exec", "--skip-git-repo-check", "-m", "gpt-5", "resume", "--last", "which word was it"}},
}

// What an agent knows survives its sandbox, without a secret in it, until it is
// removed.
func TestAnAgentGoesOnWhereItWas(t *testing.T) {
	for name, c := range conversations {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			needPodman(t)
			recipes.Need(t, "podman", recipes.Agent(name))
			u := newUser(t, stub.Script{}, c.connector)
			t.Cleanup(func() { u.must("sandbox", "prune", "--sandbox=podman", "--state", "--yes") })
			launch := func(args []string, flags ...string) result {
				flags = append(append([]string{"launch", "--sandbox=podman", "--dir", u.project}, u.reach()...), flags...)
				return u.run(append(append(flags, name, "--"), args...)...)
			}
			if r := launch(c.first); r.code != 0 {
				t.Fatalf("exit %d\n%s\n%s", r.code, r.out, r.err)
			}
			if r := launch(c.on); r.code != 0 || !u.toldAgain() {
				t.Errorf("exit %d, and the model was not told again what it was told before\n%s\n%s", r.code, r.out, r.err)
			}
			volume := u.searchState()
			u.must("sandbox", "prune", "--sandbox=podman", "--state", "--yes", "--dir", u.project)
			if left := u.states(); strings.Contains(left, volume) {
				t.Errorf("the states are %s after prune", left)
			}
			launch(c.first, "--keep=false")
			if left := u.states(); strings.Contains(left, volume) {
				t.Errorf("--keep=false keeps %s", left)
			}
			u.ask("volume", "create", volume)
			defer u.ask("volume", "rm", volume)
			if r := launch(c.first); r.code == 0 || !strings.Contains(r.err, "it was not made by this aileron") {
				t.Errorf("with another's volume: exit %d, %s", r.code, r.err)
			}
		})
	}
}

// toldAgain reports whether a model was told both prompts at once.
func (u *user) toldAgain() bool {
	for _, s := range u.origin.Seen() {
		if strings.Contains(s.Body, "the word is xyzzy") && strings.Contains(s.Body, "which word was it") {
			return true
		}
	}
	return false
}

// states are the names of the states of this user that the engine has.
func (u *user) states() string {
	u.t.Helper()
	owner := sha256.Sum256([]byte(strconv.Itoa(os.Getuid()) + "\x00" + u.home))
	return strings.TrimSpace(u.ask("volume", "ls", "-q", "--filter", "label=aileron.state="+hex.EncodeToString(owner[:])))
}

// searchState searches the state of this user's agent for the key, and returns
// the name of its volume.
func (u *user) searchState() (volume string) {
	u.t.Helper()
	volume = u.states()
	at := strings.TrimSpace(u.ask("volume", "inspect", "-f", "{{.Mountpoint}}", volume))
	found := false
	err := filepath.WalkDir(at, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		found = found || bytes.Contains(data, []byte("xyzzy"))
		for _, form := range forms(modelKey) {
			if bytes.Contains(data, []byte(form)) {
				u.t.Errorf("%s has the key as %s", path, form)
			}
		}
		return err
	})
	if err != nil || !found {
		u.t.Errorf("the state %s has no conversation: %v", volume, err)
	}
	return volume
}

// forms are encodings of a secret, without what depends on its neighbours.
func forms(secret string) []string {
	quoted, _ := json.Marshal(secret)
	all := []string{secret, url.QueryEscape(secret), url.PathEscape(secret), string(quoted[1 : len(quoted)-1]),
		strings.ReplaceAll(secret, "/", `\/`), hex.EncodeToString([]byte(secret)),
		strings.ToUpper(hex.EncodeToString([]byte(secret)))}
	for shift := range 3 {
		for _, alphabet := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			text := alphabet.EncodeToString([]byte("aa"[:min(shift, 2)] + secret))
			all = append(all, text[4:len(text)-4])
		}
	}
	return all
}
