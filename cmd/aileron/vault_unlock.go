package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/ALRubinger/aileron/audit"
)

// vaultUnlock removes the lock and gives the passphrase to every running
// session, which had forgotten what opens the vault.
func vaultUnlock(ctx context.Context, a *app, file string, keyring bool) error {
	v, p, err := a.openVaultWith(ctx, file)
	if err != nil {
		return err
	}
	if err := a.enact(ctx, change{what: audit.ChangeVaultUnlock}, func() error { return v.SetLocked(false) }); err != nil {
		return err
	}
	if keyring {
		if err := a.remember(p); err != nil {
			return err
		}
	}
	a.sayf("aileron: the vault is unlocked")
	home, err := a.Home()
	if err != nil {
		return err
	}
	body, err := json.Marshal(map[string]string{"passphrase": string(p)})
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(filepath.Join(home, "sessions"))
	if err != nil {
		return nil //nolint:nilerr // no session has ever run
	}
	for _, e := range entries {
		if !alive(home, e.Name()) {
			continue
		}
		if _, err := callControl(ctx, home, e.Name(), "POST", "/v1/vault/unlock", bytes.NewReader(body)); err != nil {
			a.sayf("aileron: warning: the session %s did not unlock: %v", e.Name(), err)
		}
	}
	return nil
}
