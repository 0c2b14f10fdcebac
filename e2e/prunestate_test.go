package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/e2e/recipes"
	"github.com/ALRubinger/aileron/e2e/stub"
)

// Only the states that are named are removed, and only if a person says so.
func TestPruneRemovesTheStatesOfAHomeAndNoOthers(t *testing.T) {
	for _, engine := range []string{"podman", "docker"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			harness.PodmanIsEnough(t, engine)
			harness.NeedEngine(t, engine)
			u := newUser(t, stub.Script{})
			u.engine = engine
			second := filepath.Join(filepath.Dir(u.home), "second")
			must.Do(t, os.Mkdir(second, 0o755))
			foreign := u.state("foreign", "/another/home", u.project)
			named := u.volume("test-"+u.name("named"), u.home, u.project) // has the labels, and not the name
			left := []string{u.state("first", u.home, u.project), u.state("second", u.home, second)}
			expect := func(when string, want ...string) {
				t.Helper()
				got := harness.States(t, engine, u.home)
				slices.Sort(got)
				want = append(want, named)
				slices.Sort(want)
				if !slices.Equal(got, want) {
					t.Errorf("%s the states are %q, want %q", when, got, want)
				}
			}
			prune := []string{"sandbox", "prune", "--sandbox=" + engine, "--state"}
			if r := u.run(prune...); r.code != 2 || !strings.Contains(r.err, "--yes") {
				t.Errorf("without a terminal: exit %d, %s; want the hint --yes", r.code, r.err)
			}
			expect("unasked", left...)
			u.answers("\r", prune...)
			u.answers("n\r", prune...)
			expect("after no", left...)
			u.must(append(prune, "--yes", "--dir", u.project)...)
			expect("after that of a project", left[1])
			box := strings.TrimSpace(u.ask("create", "--network=none", "-v", left[1]+":/state", recipes.Agent("codex").Ref,
				"true"))
			r := u.run(append(prune, "--yes")...)
			if r.code != 1 || !strings.Contains(r.err, left[1]) {
				t.Errorf("in use: exit %d, %s; want an error that names %s", r.code, r.err, left[1])
			}
			expect("in use", left[1])
			u.ask("rm", box)
			u.answers("y\r", prune...)
			expect("after yes")
			if !strings.Contains(u.list("volume", "ls", "-q"), foreign) {
				t.Error("the state of another home is gone")
			}
		})
	}
}

// state makes an empty state of an agent in a project of a home.
func (u *user) state(name, home, project string) string {
	u.t.Helper()
	return u.volume("aileron-state-"+u.name(name), home, project)
}

// name is the name of what this test makes, and no other.
func (u *user) name(name string) string { return filepath.Base(filepath.Dir(u.home)) + "-" + name }

func (u *user) volume(name, home, project string) string {
	u.t.Helper()
	digest := sha256.Sum256([]byte(project))
	u.ask("volume", "create", "--label", harness.StateLabel(home), "--label",
		"aileron.state.project="+hex.EncodeToString(digest[:]), "--label", "aileron.state.program=codex", name)
	u.t.Cleanup(func() {
		if slices.Contains(strings.Fields(u.list("volume", "ls", "-q")), name) {
			u.ask("volume", "rm", name)
		}
	})
	return name
}

// answers runs a command in a terminal and answers its question.
func (u *user) answers(keys string, args ...string) {
	u.t.Helper()
	s := newScreen(u.t, u.command(args...))
	s.waitFor("Removethekeptstatesofagentsinallprojects?")
	s.Keys(keys)
	s.Wait()
}
