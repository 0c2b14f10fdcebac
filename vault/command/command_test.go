package command

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/vault"
)

const testSecret = "s3cr3t-0123456789"

func shell(line string) Command { return Command{"/bin/sh", "-c", line} }

func TestWhatAProgramPrintsIsTheSecret(t *testing.T) {
	for line, want := range map[string]time.Duration{
		"printf %s " + testSecret: 0,
		"echo " + testSecret:      0,
		`printf '{"value":"` + testSecret + `","expires_in":600}'`:                                        10 * time.Minute,
		`printf '{"accessToken":"` + testSecret + `","expires_on":4102444800}'`:                           -1,
		`printf '{"kind":"ExecCredential","status":{"token":"` + testSecret + `"}}'`:                      0,
		`printf '{"status":{"token":"` + testSecret + `","expirationTimestamp":"2100-01-01T00:00:00Z"}}'`: -1,
		`echo ` + testSecret + `; echo other-0123456789 >&2`:                                              0,
		`printf '{"value":"` + testSecret + `","expires_at":"2100-01-01T00:00:00+01:00","other":[1]}'`:    -1,
	} {
		v, err := shell(line).Run(t.Context(), nil)
		if err != nil || v.Secret.Reveal() != testSecret {
			t.Errorf("%s: %v, %v", line, v.Secret.Reveal(), err)
			continue
		}
		left := time.Until(v.Expires)
		if want == 0 && !v.Expires.IsZero() || want > 0 && (left > want || left < want-time.Minute) ||
			want < 0 && v.Expires.Year() < 2099 {
			t.Errorf("%s: it expires at %v", line, v.Expires)
		}
	}
}

func TestNothingOfASecretIsInAnError(t *testing.T) {
	for line, want := range map[string]string{
		"echo " + testSecret + "; exit 3":                                             "exit status 3",
		"echo " + testSecret + " >&2; exit 1":                                         "exit status 1",
		"echo short":                                                                  "fewer than 8",
		"printf '" + testSecret + "\\nmore'":                                          "printable ASCII",
		`printf '{"value":"` + testSecret + `"'`:                                      "JSON",
		`printf '{"values":"` + testSecret + `"}'`:                                    `without one "value"`,
		`printf '{"value":"` + testSecret + `","token":"` + testSecret + `"}'`:        `without one "value"`,
		`printf '{"value":"` + testSecret + `","expires_at":"2001-01-01T00:00:00Z"}'`: "expired",
		"yes " + testSecret:                                                           "more than 65536 bytes",
		"kill -9 $$":                                                                  "killed",
		"exec /nonexistent/prog":                                                      "exit status 127",
	} {
		v, err := shell(line).Run(t.Context(), nil)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), testSecret) ||
			!v.Secret.IsZero() {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
	if _, err := (Command{"/nonexistent/prog", testSecret}).Run(t.Context(), nil); err == nil ||
		strings.Contains(err.Error(), testSecret) {
		t.Errorf("without a program: %v", err)
	}
}

// An agent writes to the directory in which a session was started: a program that runs there runs what it wrote.
func TestAProgramDoesNotRunInTheProject(t *testing.T) {
	project := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(project, "helper"), []byte("printf written-by-an-agent"), 0o600))
	t.Chdir(project)
	v, err := shell("if test -e ./helper; then . ./helper; else printf %s "+testSecret+"; fi").Run(t.Context(), nil)
	if err != nil || v.Secret.Reveal() != testSecret {
		t.Errorf("the secret is %q, %v", v.Secret.Reveal(), err)
	}
}

// A program that hangs ends with its session, and so does what it started.
func TestAProgramThatHangsIsEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	began := make(chan struct{})
	go func() {
		<-began
		cancel()
	}()
	start := func(cmd *exec.Cmd) error { defer close(began); return cmd.Start() }
	_, err := shell("sleep 1000 & setsid sleep 2 2>/dev/null & wait").Run(ctx, start)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Run: %v, want that it was cancelled", err)
	}
}

func TestACommandIsSealedAsAGrant(t *testing.T) {
	c := must.Get(shell("op read 'op://x'").Credential())(t)
	back, ok := Of(c)
	if !ok || back[2] != "op read 'op://x'" || c.Secret.IsZero() {
		t.Errorf("Of = %q, %v", back, ok)
	}
	if _, ok := Of(vault.Credential{Secret: c.Secret}); ok {
		t.Error("a credential without a grant has a command")
	}
	if _, err := shell("printf 'ü'").Credential(); err == nil {
		t.Error("a command that cannot be sealed is accepted")
	}
}

// world is a source with a clock and a program that counts its runs.
type world struct {
	*Source
	now                     atomic.Pointer[time.Time]
	fails                   atomic.Bool
	runs, announced, warned atomic.Int32
}

func newWorld(t *testing.T, line string) *world {
	t.Helper()
	w := &world{}
	start := time.Now()
	w.now.Store(&start)
	w.Source = NewSource("id", shell(line), SourceOptions{
		Now:      func() time.Time { return *w.now.Load() },
		Announce: func() { w.announced.Add(1) }, Warn: func(error) { w.warned.Add(1) },
		Record: func() (func(error), error) {
			w.runs.Add(1)
			if w.fails.Load() {
				return nil, errors.New("the log is full")
			}
			return func(error) {}, nil
		},
	})
	t.Cleanup(w.Close)
	return w
}

func (w *world) pass(d time.Duration) {
	later := w.now.Load().Add(d)
	w.now.Store(&later)
}

func (w *world) fresh(t *testing.T, refused vault.Secret) error {
	t.Helper()
	return w.Fresh(t.Context(), refused)
}

func TestASourceRunsItsProgramWhenItMust(t *testing.T) {
	w := newWorld(t, `printf '{"value":"`+testSecret+`","expires_in":600}'`)
	check := func(what string, refused vault.Secret, runs int32) {
		t.Helper()
		if err := w.fresh(t, refused); err != nil || w.runs.Load() != runs || w.announced.Load() != runs {
			t.Errorf("%s: %v after %d runs, want %d", what, err, w.runs.Load(), runs)
		}
	}
	check("first", vault.Secret{}, 1)
	check("in force", vault.Secret{}, 1)
	check("refused at once", w.Secret(), 1)
	w.pass(2 * time.Minute)
	check("refused", w.Secret(), 2)
	check("another was refused", must.Get(vault.NewSecret([]byte("another-secret")))(t), 2)
	w.pass(9*time.Minute + 30*time.Second)
	check("due", vault.Secret{}, 3)
}

// Without a row there is no run; what is in force is used until it expires, and then not.
func TestAFailedRunLeavesTheSecretUntilItExpires(t *testing.T) {
	w := newWorld(t, `printf '{"value":"`+testSecret+`","expires_in":600}'`)
	must.Do(t, w.fresh(t, vault.Secret{}))
	w.fails.Store(true)
	w.pass(9*time.Minute + 30*time.Second)
	must.Do(t, w.fresh(t, vault.Secret{}))
	must.Do(t, w.fresh(t, vault.Secret{})) // within the back-off
	if w.runs.Load() != 2 || w.warned.Load() != 1 {
		t.Errorf("%d runs and %d warnings, want 2 and 1", w.runs.Load(), w.warned.Load())
	}
	w.pass(time.Minute)
	if err := w.fresh(t, vault.Secret{}); err == nil || !strings.Contains(err.Error(), "the log is full") {
		t.Errorf("an expired secret is used: %v", err)
	}
	w.fails.Store(false)
	w.pass(time.Hour)
	must.Do(t, w.fresh(t, vault.Secret{}))
}

func TestASourceThatClosesEndsItsProgram(t *testing.T) {
	w := newWorld(t, "sleep 1000")
	w.Begin()
	w.Close()
	if err := w.fresh(t, vault.Secret{}); err == nil {
		t.Error("a closed source has a secret")
	}
}
