package vault_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/vault"
)

func TestAGrantIsSealedBesideItsSecret(t *testing.T) {
	v, dir := newVault(t)
	unlock(t, v)
	const name = "oauth2/google/work"
	b := vault.Binding{Name: name, Kind: "oauth2", Connector: "github://acme/google", Identity: "work"}
	first := vault.Credential{Secret: must.Get(vault.NewSecret([]byte("access-one")))(t),
		Grant: must.Get(vault.NewSecret([]byte(`{"refresh_token":"refresh-one"}`)))(t)}
	must.Do(t, v.BindLogin(b, first))
	seen := must.Get(v.Digest(name))(t)
	second := vault.Credential{Secret: must.Get(vault.NewSecret([]byte("access-two")))(t), Grant: first.Grant}
	must.Do(t, v.Renew(name, seen, second))
	c := must.Get(v.Credential(name))(t)
	if c.Secret.Reveal() != "access-two" || c.Grant.Reveal() != first.Grant.Reveal() {
		t.Errorf("after a renewal: %q, %q", c.Secret.Reveal(), c.Grant.Reveal())
	}
	if err := v.Renew(name, seen, first); !errors.Is(err, vault.ErrChanged) {
		t.Errorf("a renewal of what was replaced: %v", err)
	}
	must.Do(t, v.Rebind(name, "", first.Secret))
	if c := must.Get(v.Credential(name))(t); !c.Grant.IsZero() {
		t.Error("the grant of the secret before is still there")
	}
	must.Do(t, v.Revoke(name))
	if err := v.Renew(name, must.Get(v.Digest(name))(t), second); !errors.Is(err, vault.ErrNotBound) {
		t.Errorf("a renewal of what was revoked: %v", err)
	}
	if all := must.Get(filepath.Glob(filepath.Join(dir, "bindings/oauth2/google/*")))(t); len(all) != 0 {
		t.Errorf("left: %v", all)
	}
}

func TestTheLockOfABindingIsForOneAndIsNoBinding(t *testing.T) {
	v, _ := newVault(t)
	const name = "bearer/github/work"
	if _, err := v.LockBinding(t.Context(), name); !errors.Is(err, vault.ErrNotBound) {
		t.Errorf("the lock of what is not bound: %v", err)
	}
	must.Do(t, v.Bind(vault.Binding{Name: name, Kind: "bearer", Connector: "github://acme/github", Identity: "work"},
		must.Get(vault.NewSecret([]byte(secretText)))(t)))
	before := must.Get(v.Fingerprint())(t)
	release := must.Get(v.LockBinding(t.Context(), name))(t)
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := v.LockBinding(short, name); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a second lock: %v", err)
	}
	release()
	must.Get(v.LockBinding(t.Context(), name))(t)()
	if must.Get(v.Fingerprint())(t) != before || len(must.Get(v.Bindings())(t)) != 1 {
		t.Error("the lock counts as a change of the vault, or as a binding")
	}
}
