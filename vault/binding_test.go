package vault_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/vault"
)

// Several connectors are named before one of them is bound.
func TestNamesOfSeveralConnectorsDiffer(t *testing.T) {
	v, _ := newVault(t)
	names := must.Get(v.Names())(t)
	for _, c := range []struct{ connector, identity, want string }{
		{"github://acme/google", "work", "bearer/google/work"},
		{"github://other/google", "work", "bearer/other.google/work"},
		{"github://acme/google", "home", "bearer/google/home"},
		{"hub://other/google", "work", "bearer/hub.other.google/work"},
	} {
		if got, err := names.Of("bearer", c.connector, c.identity); err != nil || got != c.want {
			t.Errorf("the name for %s is %s, want %s: %v", c.connector, got, c.want, err)
		}
	}
}

func TestBindingNames(t *testing.T) {
	v, _ := newVault(t)
	name := func(connector, identity string) string {
		t.Helper()
		return must.Get(v.BindingName("bearer", connector, identity))(t)
	}
	bind := func(connector, identity string) {
		t.Helper()
		b := vault.Binding{Name: name(connector, identity), Kind: "bearer", Connector: connector, Identity: identity}
		must.Do(t, v.Bind(b, secret(t, secretText)))
	}
	for _, c := range []struct{ connector, want string }{
		{"github://acme/google", "bearer/google/work"},
		{"github://other/google", "bearer/other.google/work"},
		{"hub://other/google", "bearer/hub.other.google/work"},
	} {
		bind(c.connector, "work")
		if got := name(c.connector, "home"); got != strings.Replace(c.want, "work", "home", 1) {
			t.Errorf("the name for %s is %s", c.connector, got)
		}
		if _, err := v.Binding(c.want); err != nil {
			t.Errorf("%s is not bound as %s: %v", c.connector, c.want, err)
		}
	}
	must.Do(t, v.Revoke("bearer/google/work"))
	if got := name("github://other/google", "home"); got != "bearer/other.google/home" {
		t.Errorf("a connector's second identity gets another service: %s", got)
	}
	for _, identity := range []string{
		"", "..", ".", "-rf", "a/b", "../../x", "a b", "a\x00b", "é", strings.Repeat("a", 201),
	} {
		if _, err := v.BindingName("bearer", "github://acme/google", identity); !errors.Is(err, vault.ErrBadName) {
			t.Errorf("the identity %q returns %v", identity, err)
		}
	}
	for _, n := range []string{
		"", "bearer", "bearer/x", "bearer/../x", "bearer/x/../../identity", "/bearer/x", "bearer/x/y/z",
	} {
		if err := v.Revoke(n); !errors.Is(err, vault.ErrBadName) {
			t.Errorf("revoking %q returns %v", n, err)
		}
		if _, err := v.Binding(n); !errors.Is(err, vault.ErrBadName) {
			t.Errorf("looking at %q returns %v", n, err)
		}
	}
}

func TestBindingMustAgreeWithItself(t *testing.T) {
	v, _ := newVault(t)
	basic := func(user string) vault.Binding {
		return vault.Binding{
			Name: "basic/tracker/work", Kind: "basic", Connector: "github://acme/tracker",
			Identity: "work", Username: user,
		}
	}
	other := tracker("work")
	other.Kind = "api_key"
	nameless := tracker("work")
	nameless.Connector = ""
	for _, b := range []vault.Binding{basic(""), basic("a:b"), basic("a\r\nb"), basic("é"), other, nameless} {
		if err := v.Bind(b, secret(t, secretText)); err == nil {
			t.Errorf("%+v is bound", b)
		}
	}
	if err := v.Bind(tracker("work"), vault.Secret{}); err == nil {
		t.Error("no secret is bound")
	}
	must.Do(t, v.Bind(basic("ann"), secret(t, secretText)))
	unlock(t, v)
	must.Do(t, v.Rebind("basic/tracker/work", "bob", secret(t, "another-secret")))
	if c, err := v.Credential("basic/tracker/work"); err != nil || c.Username != "bob" ||
		c.Secret.Reveal() != "another-secret" {
		t.Errorf("the credential is %+v, %v", c, err)
	}
	must.Do(t, v.Rebind("basic/tracker/work", "", secret(t, "a-third-secret")))
	if c, err := v.Credential("basic/tracker/work"); err != nil || c.Username != "bob" ||
		c.Secret.Reveal() != "a-third-secret" {
		t.Errorf("a rebind without a user changed more than the secret: %+v, %v", c, err)
	}
}

// Files that were edited, exchanged or broken are refused by name, and can be
// revoked; the others stay usable.
func TestChangedBindingIsRefusedByName(t *testing.T) {
	v, dir := newVault(t)
	unlock(t, v)
	for _, id := range []string{"work", "home", "good"} {
		must.Do(t, v.Bind(tracker(id), secret(t, secretText+id)))
	}
	path := func(id string) string { return filepath.Join(dir, "bindings/bearer/tracker", id+".json") }
	whole := must.Get(os.ReadFile(path("home")))(t)
	replace := func(was, is string) func([]byte) []byte {
		return func(b []byte) []byte { return bytes.Replace(b, []byte(was), []byte(is), 1) }
	}
	for claim, change := range map[string]func([]byte) []byte{
		"its connector was edited":   replace("github://acme", "github://evil"),
		"its username was edited":    replace(`"created"`, `"username":"x","created"`),
		"another's secret is in it":  func([]byte) []byte { return bytes.ReplaceAll(whole, []byte("home"), []byte("work")) },
		"another's file is in place": func([]byte) []byte { return whole },
		"it is cut":                  func(b []byte) []byte { return b[:len(b)/2] },
		"it is empty":                func([]byte) []byte { return nil },
		"its seal is broken":         replace(`"sealed": "Y`, `"sealed": "Z`),
	} {
		original, err := os.ReadFile(path("work"))
		if err != nil {
			t.Fatal(err)
		}
		spoilt := change(bytes.Clone(original))
		if bytes.Equal(spoilt, original) {
			t.Fatalf("%s: the test changes nothing", claim)
		}
		put(t, path("work"), spoilt)
		_, err = v.Credential("bearer/tracker/work")
		if err == nil || !strings.Contains(err.Error(), "bearer/tracker/work") {
			t.Errorf("%s: the credential returns %v", claim, err)
		}
		if all, _ := v.Bindings(); len(all) < 2 {
			t.Errorf("%s: only %d bindings are listed", claim, len(all))
		}
		if _, err := v.Credential("bearer/tracker/good"); err != nil {
			t.Errorf("%s: another binding is not given: %v", claim, err)
		}
		if err := v.Revoke("bearer/tracker/work"); err != nil {
			t.Errorf("%s: it cannot be revoked: %v", claim, err)
		}
		must.Do(t, v.Bind(tracker("work"), secret(t, secretText+"work")))
	}
}

// SECURITY VLT-07: no update is lost, and one name is given once.
func TestConcurrentWritersLoseNothing(t *testing.T) {
	_, dir := newVault(t)
	var done sync.WaitGroup
	var mu sync.Mutex
	won := 0
	for w := range 8 {
		done.Go(func() {
			v := open(dir)
			for i := range 10 {
				if err := v.Bind(tracker(fmt.Sprintf("w%d-%d", w, i)), secret(t, secretText)); err != nil {
					t.Error(err)
				}
			}
			switch err := v.Bind(tracker("same"), secret(t, secretText)); {
			case err == nil:
				mu.Lock()
				won++
				mu.Unlock()
			case !errors.Is(err, vault.ErrExists):
				t.Error(err)
			}
		})
	}
	done.Wait()
	if all, err := open(dir).Bindings(); err != nil || len(all) != 81 || won != 1 {
		t.Errorf("there are %d bindings, %v; the same one was bound %d times", len(all), err, won)
	}
}

// SECURITY VLT-05: a writer killed anywhere leaves the old or the new.
func TestKilledWriterLeavesOldOrNew(t *testing.T) {
	if dir := os.Getenv("TEST_VAULT_WRITER"); dir != "" {
		v := open(dir)
		fmt.Println("writing")
		for i := 0; ; i++ {
			must.Do(t, v.Rebind("bearer/tracker/work", "", secret(t, fmt.Sprintf("secret-%08d", i))))
		}
	}
	v, dir := newVault(t)
	unlock(t, v)
	must.Do(t, v.Bind(tracker("work"), secret(t, "secret-before")))
	for range 6 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestKilledWriterLeavesOldOrNew$")
		cmd.Env = append(os.Environ(), "TEST_VAULT_WRITER="+dir)
		out := must.Get(cmd.StdoutPipe())(t)
		must.Do(t, cmd.Start())
		must.Get(out.Read(make([]byte, 8)))(t)
		for range 300 { // a reader beside the writer sees nothing half written
			if _, err := v.Binding("bearer/tracker/work"); err != nil {
				t.Error(err)
			}
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		c, err := v.Credential("bearer/tracker/work")
		if err != nil || !strings.HasPrefix(c.Secret.Reveal(), "secret-") {
			t.Fatalf("after the kill the credential is gone: %v", err)
		}
	}
	must.Do(t, v.Rebind("bearer/tracker/work", "", secret(t, secretText)))
	if left, _ := filepath.Glob(filepath.Join(dir, "bindings/bearer/tracker/.new-*")); len(left) != 0 {
		t.Errorf("half-written files stay: %v", left)
	}
}
