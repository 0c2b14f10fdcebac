package session

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/catalog"
	"github.com/ALRubinger/aileron/spec/store"
)

// What is installed is read while the watch over the store replaces it; the
// race detector reports a read without the lock.
func TestConnectorsAreReadWhileTheyAreReloaded(t *testing.T) {
	o := newOptions(t)
	install(t, o.Home)
	s := open(t, o)
	var reloading sync.WaitGroup
	reloading.Go(func() {
		for range 20 {
			s.loader.reload(t.Context())
		}
	})
	for range 20 {
		if len(s.Placeholders()) == 0 {
			t.Error("a reload shows no connector for a moment")
		}
	}
	reloading.Wait()
}

// Of several bindings of a connector the session uses the one that is chosen;
// it does not choose for its user.
func TestABindingIsChosenByItsIdentity(t *testing.T) {
	o := newOptions(t)
	install(t, o.Home)
	bind(t, o, "work", "home")
	for _, c := range []struct {
		bindings   map[spec.FQN]string
		want, hint string
	}{
		{nil, "it has the identities", "--bind " + string(githubFQN) + "="},
		{map[spec.FQN]string{githubFQN: "play"}, `with the identity "play": it is not bound`, "aileron binding list"},
	} {
		o.Bindings = c.bindings
		_, err := Open(t.Context(), o)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(hint.Of(err), c.hint) {
			t.Errorf("%v: %v (%s); want %q (%s)", c.bindings, err, hint.Of(err), c.want, c.hint)
		}
	}
	o.Bindings = map[spec.FQN]string{githubFQN: "home"}
	s := open(t, o)
	chosen, err := s.loader.choose(s.Connectors())
	fatal(t, err)
	grants, err := s.loader.grants(s.Connectors(), chosen)
	fatal(t, err)
	got := grants.Bound[githubFQN]
	if !strings.HasSuffix(got.Binding, "/home") || got.Credential.Secret.Reveal() != testToken {
		t.Errorf("the credential is that of %q", got.Binding)
	}
}

// The user learns that operations will be refused for want of a credential.
func TestAConnectorWithoutACredentialIsNamed(t *testing.T) {
	o := newOptions(t)
	install(t, o.Home)
	var lines []string
	o.Infof = func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	open(t, o)
	if len(lines) != 1 || !strings.Contains(lines[0], string(githubFQN)+" has no credential bound") {
		t.Errorf("the lines are %q", lines)
	}
}

// What a session records beside its requests waits for a log that cannot be
// written now.
func TestWhatASessionRecordsByTheWayWaitsForItsLog(t *testing.T) {
	o := newOptions(t)
	s := open(t, o)
	fatal(t, s.Serve(t.Context(), false))
	path, away := filepath.Join(o.Home, "audit.db"), filepath.Join(o.Home, "away.db")
	fatal(t, os.Rename(path, away))
	fatal(t, os.Mkdir(path, 0o700)) // nothing can be written here
	s.loader.recordFaults(t.Context(), []error{errors.New("verify: its hash differs")})
	s.RecordDisabled(t.Context(), "preflight_failed", "the image has no shell")
	fatal(t, os.Remove(path))
	fatal(t, os.Rename(away, path))
	fatal(t, s.Close(t.Context(), 0, "the command ended"))
	checkEvents(t, o.Home,
		audit.EventSessionStarted, audit.EventConnectorVerifyFailed, audit.EventSandboxDisabled, audit.EventSessionEnded)
}

// A vault whose format cannot be read is not one whose bindings changed. What
// fails at every load is logged once, and again when it fails anew.
func TestWhatFailsAtEveryLoadIsLoggedOnce(t *testing.T) {
	o := newOptions(t)
	install(t, o.Home)
	bind(t, o, "default")
	fatal(t, o.Vault.SetLocked(true)) // the session needs no passphrase
	var out bytes.Buffer
	o.logTo(&out)
	s := open(t, o)
	for _, dir := range []string{"vault", "store"} {
		blocked := filepath.Join(o.Home, dir, "format")
		for round := range 2 {
			fatal(t, os.Mkdir(blocked, 0o700)) // reading a directory fails
			for range 5 {
				s.loader.reload(t.Context())
			}
			fatal(t, os.Remove(blocked))
			s.loader.reload(t.Context())
			logged := out.String()
			out.Reset()
			const want = "could not be read; requests that need it are refused until it can"
			if strings.Count(logged, "\n") != 1 || !strings.Contains(logged, want) {
				t.Errorf("%s, time %d: %q, want one line about what could not be read", dir, round+1, logged)
			}
		}
	}
	for _, dir := range []string{"vault", "store"} {
		fatal(t, os.Mkdir(filepath.Join(o.Home, dir, "format"), 0o700))
	}
	for range 5 {
		s.loader.reload(t.Context())
		s.loader.warnOnce("another thing", errors.New("of every load"))
	}
	if logged := out.String(); strings.Count(logged, "\n") != 2 {
		t.Errorf("two faults, five loads: %q, want two lines", logged)
	}
}

// A service that repeats Basic credentials repeats the token behind a username
// that the connector declares: its Base64 begins in the middle of three bytes.
func TestADeclaredUsernameIsRedactedWithTheSecret(t *testing.T) {
	o := newOptions(t)
	s, err := store.Open(filepath.Join(o.Home, "store"))
	fatal(t, err)
	entry, _ := catalog.Find("github")
	_, err = s.InstallAll(t.Context(), []store.Source{{Src: "github", Files: entry.Files}}, nil)
	fatal(t, err)
	bind(t, o, "work")
	l := open(t, o).loader
	for _, username := range []string{"", "x-access-token"} {
		if _, ok := l.secrets[username+"\x00"+testToken]; !ok {
			t.Errorf("the secret behind %q is not redacted", username)
		}
	}
}

// A connector that the session does not use is as if it were not installed, at its start and after a change on disk.
func TestOnlyTheChosenConnectorsAreUsed(t *testing.T) {
	o := newOptions(t)
	install(t, o.Home)
	npm, _ := catalog.Find("npm")
	st, err := store.Open(filepath.Join(o.Home, "store"))
	fatal(t, err)
	_, err = st.InstallAll(t.Context(), []store.Source{{Src: npm.Name, Files: npm.Files}}, nil)
	fatal(t, err)

	o.Connectors = []spec.FQN{catalog.FQN("pypi")}
	if _, err := Open(t.Context(), o); err == nil || !strings.Contains(err.Error(), "it is not installed") {
		t.Fatalf("a connector that is not installed: %v", err)
	}
	o.Connectors = []spec.FQN{catalog.FQN("npm")}
	s := open(t, o)
	for _, when := range []string{"at the start", "after a change"} {
		if all := s.Connectors(); len(all) != 1 || all[0].FQN != catalog.FQN("npm") {
			t.Errorf("%s the session uses %d connectors", when, len(all))
		}
		s.loader.reload(t.Context())
	}
	o.Connectors = []spec.FQN{}
	if all := open(t, o).Connectors(); len(all) != 0 {
		t.Errorf("a session without connectors uses %d", len(all))
	}
}

// A connector that was read before the session opens is not used if it was changed or removed since.
func TestWhatWasReadBeforeIsReadAgainIfItChanged(t *testing.T) {
	o := newOptions(t)
	install(t, o.Home)
	var err error
	o.Store, err = store.Open(filepath.Join(o.Home, "store"))
	fatal(t, err)
	ahead, err := store.Open(filepath.Join(o.Home, "store")) // which parses for itself
	fatal(t, err)
	o.Reading = ahead.Begin()
	first := open(t, o)
	list := first.Connectors()
	if len(list) != 1 || list[0].FQN != githubFQN {
		t.Fatalf("the session has %v", list)
	}
	known, ok := o.Reading.All(mustFingerprint(t, o.Store))
	if !ok || known[0] != list[0] {
		t.Error("the session has read again what was read")
	}
	first.Abandon(t.Context())
	dir := filepath.Join(o.Home, "store", "connectors", "sha256", strings.TrimPrefix(list[0].Hash, "sha256:"))

	file := filepath.Join(dir, spec.ManifestFile)
	data, err := os.ReadFile(file)
	fatal(t, err)
	fatal(t, os.WriteFile(file, append(data, '\n'), 0o600))
	var tampered *store.TamperedError
	if _, err := Open(t.Context(), o); !errors.As(err, &tampered) {
		t.Errorf("with a connector that was changed since: %v", err)
	}
	fatal(t, os.RemoveAll(dir))
	if s := open(t, o); len(s.Connectors()) != 0 {
		t.Errorf("a connector that was removed since is used: %v", s.Connectors())
	}
}

func mustFingerprint(t *testing.T, s *store.Store) string {
	t.Helper()
	f, err := s.Fingerprint()
	fatal(t, err)
	return f
}
