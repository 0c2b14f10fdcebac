package session

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/proxy"
	"github.com/ALRubinger/aileron/proxy/api"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/catalog"
	"github.com/ALRubinger/aileron/spec/store"
	"github.com/ALRubinger/aileron/vault"
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
	chosen := must.Get(s.loader.choose(s.Connectors()))(t)
	grants := must.Get(s.loader.grants(s.Connectors(), chosen))(t)
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
	s := open(t, o)
	if len(lines) != 1 || !strings.Contains(lines[0], string(githubFQN)+" has no credential bound") {
		t.Errorf("the lines are %q", lines)
	}
	lines = nil
	s.loader.warnUnbound(slices.Repeat(s.Connectors(), 200), nil)
	if len(lines) != 1 || !strings.Contains(lines[0], "and 198 other connectors have no credential bound") {
		t.Errorf("of 200 connectors, the lines are %q", lines)
	}
}

// What a session records beside its requests waits for a log that cannot be
// written now.
func TestWhatASessionRecordsByTheWayWaitsForItsLog(t *testing.T) {
	o := newOptions(t)
	s := open(t, o)
	must.Do(t, s.Serve(t.Context(), false))
	path, away := filepath.Join(o.Home, "audit.db"), filepath.Join(o.Home, "away.db")
	must.Do(t, os.Rename(path, away))
	must.Do(t, os.Mkdir(path, 0o700)) // nothing can be written here
	s.loader.recordFaults(t.Context(), []error{errors.New("verify: its hash differs")})
	s.RecordDisabled(t.Context(), "preflight_failed", "the image has no shell")
	must.Do(t, os.Remove(path))
	must.Do(t, os.Rename(away, path))
	must.Do(t, s.Close(t.Context(), 0, "the command ended"))
	checkEvents(t, o.Home,
		audit.EventSessionStarted, audit.EventConnectorVerifyFailed, audit.EventSandboxDisabled, audit.EventSessionEnded)
}

// A vault whose format cannot be read is not one whose bindings changed. What
// fails at every load is logged once, and again when it fails anew.
func TestWhatFailsAtEveryLoadIsLoggedOnce(t *testing.T) {
	o := newOptions(t)
	install(t, o.Home)
	bind(t, o, "default")
	must.Do(t, o.Vault.SetLocked(true)) // the session needs no passphrase
	var out bytes.Buffer
	o.logTo(&out)
	s := open(t, o)
	for _, dir := range []string{"vault", "store"} {
		blocked := filepath.Join(o.Home, dir, "format")
		for round := range 2 {
			must.Do(t, os.Mkdir(blocked, 0o700)) // reading a directory fails
			for range 5 {
				s.loader.reload(t.Context())
			}
			must.Do(t, os.Remove(blocked))
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
		must.Do(t, os.Mkdir(filepath.Join(o.Home, dir, "format"), 0o700))
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
	s := must.Get(store.Open(filepath.Join(o.Home, "store")))(t)
	entry, _ := catalog.Find("github")
	must.Get(s.InstallAll(t.Context(), []store.Source{{Src: "github", Files: entry.Files}}, nil))(t)
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
	must.Do(t, err)
	must.Get(st.InstallAll(t.Context(), []store.Source{{Src: npm.Name, Files: npm.Files}}, nil))(t)

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
	must.Do(t, err)
	ahead := must.Get(store.Open(filepath.Join(o.Home, "store")))(t) // which parses for itself
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
	must.Do(t, err)
	must.Do(t, os.WriteFile(file, append(data, '\n'), 0o600))
	var tampered *store.TamperedError
	if _, err := Open(t.Context(), o); !errors.As(err, &tampered) {
		t.Errorf("with a connector that was changed since: %v", err)
	}
	must.Do(t, os.RemoveAll(dir))
	if s := open(t, o); len(s.Connectors()) != 0 {
		t.Errorf("a connector that was removed since is used: %v", s.Connectors())
	}
}

func mustFingerprint(t *testing.T, s *store.Store) string {
	t.Helper()
	f := must.Get(s.Fingerprint())(t)
	return f
}

// installNPM installs the catalogue's connector for npm, and returns its hash.
func installNPM(t *testing.T, home string) string {
	t.Helper()
	npm, _ := catalog.Find("npm")
	s := must.Get(store.Open(filepath.Join(home, "store")))(t)
	installed := must.Get(s.InstallAll(t.Context(), []store.Source{{Src: npm.Name, Files: npm.Files}}, nil))(t)
	return installed[0].Connector.Hash
}

// grantsRows returns the rows of a home's log that are about grants.
func grantsRows(t *testing.T, home string) (list []audit.Row) {
	t.Helper()
	for _, r := range rows(t, home) {
		if r.Event == audit.EventSessionStarted || r.Event == audit.EventSessionGrantsChanged {
			list = append(list, r)
		}
	}
	return list
}

// Each change under a running session has one row with what was added and removed; what does not change the grants
// has none.
func TestEachChangeOfTheGrantsHasARow(t *testing.T) {
	o := newOptions(t)
	install(t, o.Home)
	must.Do(t, o.Vault.Init([]byte(testPassphrase)))
	must.Do(t, o.Vault.Unlock([]byte(testPassphrase)))
	s := openStill(t, o)
	reload := func() { s.loader.reload(t.Context()) }

	name := must.Get(o.Vault.BindingName("bearer", string(githubFQN), "work"))(t)
	secret := must.Get(vault.NewSecret([]byte(testToken)))(t)
	binding := vault.Binding{Name: name, Kind: "bearer", Connector: string(githubFQN), Identity: "work"}
	npm := string(catalog.FQN("npm"))
	var hash string
	for _, change := range []func(){
		func() {}, // nothing
		func() { hash = installNPM(t, o.Home) },
		func() { must.Do(t, o.Vault.Bind(binding, secret)) },
		func() { must.Do(t, o.Vault.SetLocked(true)) }, // a lock is not another grant
		func() { must.Do(t, o.Vault.SetLocked(false)); must.Do(t, o.Vault.Unlock([]byte(testPassphrase))) },
		func() { must.Do(t, o.Vault.Rebind(name, "", secret)) },
		func() { must.Do(t, o.Vault.Revoke(name)) },
		func() {
			st := must.Get(store.Open(filepath.Join(o.Home, "store")))(t)
			must.Get(st.Remove(npm, "", nil))(t)
		},
	} {
		change()
		reload()
		reload() // no second row
	}
	must.Do(t, s.Close(t.Context(), 0, "the command ended"))

	list := grantsRows(t, o.Home)
	var got []string
	for _, r := range list {
		names := func(field string) (text string) {
			entries, _ := r.Fields[field].([]any)
			for _, e := range entries {
				g, _ := e.(map[string]any)
				connector, _ := g["connector"].(string)
				text += " " + field + " " +
					strings.TrimPrefix(connector[strings.LastIndex(connector, "/")+1:], "aileron-connector-")
				if b, ok := g["binding"].(string); ok {
					text += "=" + b
				}
			}
			return text
		}
		got = append(got, fmt.Sprint(r.Fields["changes"], names("grants"), names("removed"), names("added"),
			r.Fields["rebound"], " of ", r.Fields["grants_total"], " ", r.ConnectorFQN, " ", r.Binding))
	}
	const gh = "github"
	full := string(githubFQN)
	want := []string{
		"<nil> grants " + gh + "<nil> of 1  ",
		"[installed] added npm<nil> of 2 " + npm + " ",
		"[bound] removed " + gh + " added " + gh + "=" + name + "<nil> of 2 " + full + " " + name,
		"[rebound][" + name + "] of 2 " + full + " " + name,
		"[unbound] removed " + gh + "=" + name + " added " + gh + "<nil> of 2 " + full + " " + name,
		"[removed] removed npm<nil> of 1 " + npm + " ",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the rows are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	added, _ := list[1].Fields["added"].([]any)[0].(map[string]any)
	if added["hash"] != hash || list[1].ConnectorVersion == "" || added["version"] != list[1].ConnectorVersion {
		t.Errorf("what was added is %v, want the hash %s", added, hash)
	}
	if list[0].Fields["grants_sha256"] != list[5].Fields["grants_sha256"] ||
		list[0].Fields["grants_sha256"] == list[1].Fields["grants_sha256"] {
		t.Error("the hash of all grants does not follow them")
	}
	for _, r := range rows(t, o.Home) {
		if strings.Contains(fmt.Sprint(r), testToken) {
			t.Errorf("%s has the secret", r.Event)
		}
	}
}

// The row of a change is in the log before the plane uses it; where it cannot be recorded, nothing is granted.
func TestNothingIsGrantedThatIsNotRecorded(t *testing.T) {
	o := newOptions(t)
	s := openStill(t, o)
	install(t, o.Home)
	closed := must.Get(audit.Open(filepath.Join(t.TempDir(), "audit.db"), audit.Options{}))(t)
	must.Do(t, closed.Close())
	whole := s.audit
	s.audit = closed // no row can be added
	s.loader.reload(t.Context())
	if hosts := api.Describe(s.plane).Hosts; len(hosts) != 0 {
		t.Errorf("%q are granted without a row", hosts)
	}
	s.audit = whole
	s.loader.refresh(t.Context()) // the next tick
	if hosts := api.Describe(s.plane).Hosts; len(hosts) == 0 {
		t.Error("nothing is granted when the log can be written again")
	}
	must.Do(t, s.Close(t.Context(), 0, "the command ended"))
	if list := grantsRows(t, o.Home); len(list) != 2 || fmt.Sprint(list[1].Fields["changes"]) != "[installed]" {
		t.Errorf("the rows are %+v", list)
	}
}

// What is bound or revoked while a session runs never makes it go on with another account.
func TestASessionKeepsItsIdentity(t *testing.T) {
	o := newOptions(t)
	install(t, o.Home)
	bind(t, o, "work")
	s := open(t, o)
	bound := func() string {
		t.Helper()
		s.loader.reload(t.Context())
		return must.Get(s.loader.certainGrants(s.Connectors(), s.Connectors()))(t).Bound[githubFQN].Binding
	}
	must.Do(t, o.Vault.Unlock([]byte(testPassphrase)))
	bind(t, o, "home")
	must.Do(t, s.vault.Unlock([]byte(testPassphrase)))
	if got := bound(); !strings.HasSuffix(got, "/work") {
		t.Errorf("with a second identity the credential is that of %q", got)
	}
	must.Do(t, o.Vault.Revoke(must.Get(o.Vault.BindingName("bearer", string(githubFQN), "work"))(t)))
	if got := bound(); got != "" {
		t.Errorf("with its own revoked, the credential is that of %q", got)
	}
}

// Bindings that are not clear any more, and connectors that do not fit together, are changes with their reason.
func TestAChangeThatTakesAwayHasItsReason(t *testing.T) {
	o := newOptions(t)
	install(t, o.Home)
	disk := must.Get(store.Open(filepath.Join(o.Home, "store")))(t)
	must.Get(disk.Install(t.Context(), "../../examples/connectors/openai", store.InstallOptions{}))(t)
	bind(t, o)
	b := vault.Binding{Name: "bearer/aileron-connector-openai/default", Kind: "bearer",
		Connector: "github://alrubinger/aileron-connector-openai", Identity: "default"}
	must.Do(t, o.Vault.Bind(b, must.Get(vault.NewSecret([]byte(testToken)))(t)))
	s := openStill(t, o)
	must.Do(t, o.Vault.Unlock([]byte(testPassphrase)))
	bind(t, o, "work", "home") // of the other connector, which the session has not had a credential of
	s.loader.reload(t.Context())
	s.loader.reload(t.Context())
	must.Do(t, s.Close(t.Context(), 0, "the command ended"))
	list := grantsRows(t, o.Home)
	if len(list) != 2 || list[1].Reason != "bindings_unclear" || fmt.Sprint(list[1].Fields["changes"]) != "[unbound]" {
		t.Errorf("the rows are %+v", list)
	}
}

// session.started names what a session may do, without a value of a variable or the password of a proxy.
func TestTheFirstRowNamesWhatIsInForce(t *testing.T) {
	o := newOptions(t)
	install(t, o.Home)
	o.Version, o.UpstreamCA = "1.2.3", "/etc/extra.pem"
	o.Config.Tunnel = []string{"pinned.example:443"}
	o.Upstream.Proxy = &url.URL{Scheme: "http", Host: "proxy.example:8080", User: url.UserPassword("me", "s3cret")}
	o.Shared.Mounts = make([]string, maxNamed+1)
	s := open(t, o)
	s.NoteSandbox(Sandbox{Image: "debian:12", ImageID: "sha256:ab", EngineVersion: "4.3.1", Network: "auto", Keep: true})
	must.Do(t, s.Serve(t.Context(), true))
	must.Do(t, s.Close(t.Context(), 0, "the command ended"))
	r := grantsRows(t, o.Home)[0]
	for name, want := range map[string]any{
		"aileron": "1.2.3", "upstream_proxy": "proxy.example:8080", "upstream_ca": "/etc/extra.pem",
		"tunnel": []any{"pinned.example:443"}, "image": "debian:12",
		"image_id": "sha256:ab", "engine_version": "4.3.1", "sandbox_proxy": "auto", "keep": true, "protect": nil,
		"read_only": nil, "grants_total": 1.0, "mounts_total": maxNamed + 1.0, "connectors": nil,
	} {
		if got := r.Fields[name]; !reflect.DeepEqual(got, want) {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if n := len(r.Fields["mounts"].([]any)); n != maxNamed {
		t.Errorf("%d mounts are named, want %d", n, maxNamed)
	}
}

// A row names a bounded number of grants; its hash is of all.
func TestARowNamesABoundedNumberOfGrants(t *testing.T) {
	var connectors []*spec.Connector
	for i := range 256 {
		connectors = append(connectors,
			&spec.Connector{FQN: spec.FQN(fmt.Sprintf("github://acme/c%03d", i)), Version: "1.0.0",
				Hash: "sha256:" + strings.Repeat("a", 64)})
	}
	l := &loader{unread: newUnreadGrants()}
	all := l.listGranted(connectors, nil)
	fields := map[string]any{}
	addGranted(fields, all)
	if named := fields["grants"].([]granted); len(named) != maxGranted || fields["grants_total"] != 256 {
		t.Errorf("%d of %v grants are named", len(named), fields["grants_total"])
	}
	if sumGranted(all) == sumGranted(all[:255]) {
		t.Error("the hash is not of all grants")
	}
	change := compareGranted(nil, all)
	if f := change.fields(all); len(f["added"].([]granted)) != maxGranted || f["added_total"] != 256 {
		t.Errorf("%v of %v additions are named", len(f["added"].([]granted)), f["added_total"])
	}
}

// A vault that cannot be read has not lost its bindings.
func TestAVaultThatCannotBeReadIsNoChange(t *testing.T) {
	o := newOptions(t)
	install(t, o.Home)
	bind(t, o, "work")
	s := openStill(t, o)
	must.Do(t, os.Mkdir(filepath.Join(o.Home, "vault", "format"), 0o700)) // reading a directory fails
	for range 3 {
		s.loader.reload(t.Context())
	}
	must.Do(t, os.Remove(filepath.Join(o.Home, "vault", "format")))
	s.loader.reload(t.Context())
	must.Do(t, s.Close(t.Context(), 0, "the command ended"))
	if list := grantsRows(t, o.Home); len(list) != 1 {
		t.Errorf("the rows are %+v, want session.started alone", list)
	}
}

// While the home is missing, what its connectors grant is not known, and their operations are denied.
func TestNothingIsGrantedWhileTheHomeIsMissing(t *testing.T) {
	o := newOptions(t)
	install(t, o.Home)
	bind(t, o, "work")
	s := openStill(t, o)
	aside := o.Home + ".aside"
	for _, want := range []proxy.Reason{proxy.ReasonHomeMissing, ""} {
		if want != "" {
			must.Do(t, os.Rename(o.Home, aside))
		} else {
			must.Do(t, os.Rename(aside, o.Home))
		}
		s.loader.reload(t.Context())
		if got := s.plane.Grants().Unreadable[githubFQN]; got != want {
			t.Errorf("the connector is denied for %q, want %q", got, want)
		}
	}
	must.Do(t, s.Close(t.Context(), 0, "the command ended"))
}
