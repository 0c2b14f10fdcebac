package vault_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/vault"
)

const loginName = "oauth2/google/work"

// newLogin returns a vault with a binding that comes from a login.
func newLogin(t *testing.T) (v *vault.Vault, dir string) {
	t.Helper()
	v, dir = newVault(t)
	unlock(t, v)
	must.Do(t, v.BindLogin(vault.Binding{Name: loginName, Kind: "oauth2", Connector: "github://acme/google",
		Identity: "work", Login: "login-one", Scopes: "read write"}, login(t, "access-one", "refresh-one")))
	return v, dir
}

func login(t *testing.T, access, refresh string) vault.Credential {
	t.Helper()
	return vault.Credential{Secret: must.Get(vault.NewSecret([]byte(access)))(t),
		Grant: must.Get(vault.NewSecret([]byte(refresh)))(t)}
}

func TestARenewalReplacesTokenAndGrantAtOnce(t *testing.T) {
	v, dir := newLogin(t)
	r := must.Get(v.RenewBinding(t.Context(), loginName))(t)
	if r.Interrupted || r.Credential.Grant.Reveal() != "refresh-one" || r.Binding.Scopes != "read write" {
		t.Errorf("the renewal begins with %+v", r.Binding)
	}
	must.Do(t, r.Begin())
	b := r.Binding
	b.Renewal = "automatic"
	must.Do(t, r.Save(b, login(t, "access-two", "refresh-two")))
	r.End()
	c := must.Get(v.Credential(loginName))(t)
	if c.Secret.Reveal() != "access-two" || c.Grant.Reveal() != "refresh-two" {
		t.Errorf("after it: %q, %q", c.Secret.Reveal(), c.Grant.Reveal())
	}
	if is := must.Get(v.Binding(loginName))(t); is.Renewal != "automatic" || is.Login != "login-one" {
		t.Errorf("after it: %+v", is)
	}

	must.Do(t, v.Rebind(loginName, "", login(t, "access-three", "refresh-three").Secret))
	if c := must.Get(v.Credential(loginName))(t); !c.Grant.IsZero() || must.Get(v.Binding(loginName))(t).Login != "" {
		t.Error("the login before is still there")
	}
	must.Do(t, v.Revoke(loginName))
	if all := must.Get(filepath.Glob(filepath.Join(dir, "bindings/oauth2/google/*")))(t); len(all) != 0 {
		t.Errorf("left: %v", all)
	}
}

// What a person does during a renewal is what holds.
func TestARenewalGivesWayToItsUser(t *testing.T) {
	v, _ := newLogin(t)
	r := must.Get(v.RenewBinding(t.Context(), loginName))(t)
	defer r.End()
	must.Do(t, r.Begin())
	must.Do(t, v.Rebind(loginName, "", login(t, "access-of-the-person", "refresh-three").Secret))
	if err := r.Save(r.Binding, login(t, "access-two", "refresh-two")); !errors.Is(err, vault.ErrChanged) {
		t.Errorf("over what was bound meanwhile: %v", err)
	}
	must.Do(t, v.Revoke(loginName))
	if err := r.Save(r.Binding, login(t, "access-two", "refresh-two")); !errors.Is(err, vault.ErrNotBound) {
		t.Errorf("over what was revoked meanwhile: %v", err)
	}
}

func TestARenewalIsForOneAndItsLockIsNoBinding(t *testing.T) {
	v, _ := newLogin(t)
	if _, err := v.RenewBinding(t.Context(), "bearer/github/work"); !errors.Is(err, vault.ErrNotBound) {
		t.Errorf("the renewal of what is not bound: %v", err)
	}
	before := must.Get(v.Fingerprint())(t)
	r := must.Get(v.RenewBinding(t.Context(), loginName))(t)
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := v.RenewBinding(short, loginName); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a second one: %v", err)
	}
	r.End()
	must.Get(v.RenewBinding(t.Context(), loginName))(t).End()
	if must.Get(v.Fingerprint())(t) != before || len(must.Get(v.Bindings())(t)) != 1 {
		t.Error("the lock counts as a change of the vault, or as a binding")
	}
}

// A process that is killed while the service answers leaves a mark, and none before and after that.
func TestAnInterruptedRenewalIsKnown(t *testing.T) {
	v, dir := newLogin(t)
	lock := filepath.Join(dir, "bindings/oauth2/google/work.lock")
	interrupted := func() bool {
		r := must.Get(v.RenewBinding(t.Context(), loginName))(t)
		defer r.End()
		return r.Interrupted
	}
	// killed leaves the lock file as a process leaves it that ends now.
	killed := func(r *vault.Renewal) {
		left := must.Get(os.ReadFile(lock))(t)
		r.End()
		must.Do(t, os.WriteFile(lock, left, 0o600))
	}
	killed(must.Get(v.RenewBinding(t.Context(), loginName))(t))
	if interrupted() {
		t.Error("before Begin")
	}
	r := must.Get(v.RenewBinding(t.Context(), loginName))(t)
	must.Do(t, r.Begin())
	if info := must.Get(os.Stat(lock))(t); info.Sys().(*syscall.Stat_t).Blocks*512 < 64<<10 {
		t.Errorf("%d bytes are reserved for the result", info.Sys().(*syscall.Stat_t).Blocks*512)
	}
	killed(r)
	for range 2 { // who looks and does nothing leaves it so
		if !interrupted() {
			t.Error("after Begin: the grant may be used up, and that is not known")
		}
	}
	r = must.Get(v.RenewBinding(t.Context(), loginName))(t)
	must.Do(t, r.Begin())
	must.Do(t, r.Save(r.Binding, login(t, "access-two", "refresh-two")))
	killed(r)
	if interrupted() {
		t.Error("after Save")
	}
}

// A result that the disk does not take is kept by its process, and others know that the grant is used up.
func TestAResultThatIsNotSavedIsMarked(t *testing.T) {
	v, dir := newLogin(t)
	r := must.Get(v.RenewBinding(t.Context(), loginName))(t)
	must.Do(t, r.Begin())
	blocked := filepath.Join(dir, "bindings")
	must.Do(t, os.Chmod(blocked, 0o777)) // the vault refuses to write there
	if err := r.Save(r.Binding, login(t, "access-two", "refresh-two")); err == nil {
		t.Fatal("it was saved")
	}
	must.Do(t, os.Chmod(blocked, 0o700))
	r.End()
	again := must.Get(v.RenewBinding(t.Context(), loginName))(t)
	defer again.End()
	if !again.Interrupted {
		t.Error("it is not known that the grant may be used up")
	}
}
