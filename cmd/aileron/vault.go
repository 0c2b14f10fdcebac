package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/vault"
)

func newVaultCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "vault",
		Short: "Keep credentials sealed at rest",
		Args:  cobra.ArbitraryArgs,
		RunE:  subcommandNeeded,
	}
	var file, newFile string
	var keyring bool
	add := func(use, short string, run func(context.Context) error) *cobra.Command {
		c := &cobra.Command{Use: use, Short: short, Args: usageArgs(cobra.NoArgs),
			Example: "  aileron vault " + use,
			RunE:    func(c *cobra.Command, _ []string) error { return run(c.Context()) }}
		c.Flags().StringVar(&file, "passphrase-file", "", "file that holds the passphrase")
		cmd.AddCommand(c)
		return c
	}
	add("init", "Make the vault, with a passphrase", func(ctx context.Context) error {
		return vaultInit(ctx, a, file, keyring)
	}).Flags().BoolVar(&keyring, "keyring", false, "keep the passphrase in the OS keyring")
	add("status", "Tell whether there is a vault and whether it is locked", func(context.Context) error { return vaultStatus(a) })
	add("unlock", "Unlock the vault for running sessions again", func(ctx context.Context) error {
		return vaultUnlock(ctx, a, file, keyring)
	}).Flags().BoolVar(&keyring, "keyring", false, "keep the passphrase in the OS keyring")
	add("lock", "Lock the vault: running sessions inject nothing within a second", func(ctx context.Context) error {
		return vaultLock(ctx, a, keyring)
	}).Flags().BoolVar(&keyring, "keyring", false, "remove the passphrase from the OS keyring too")
	add("passwd", "Change the passphrase", func(ctx context.Context) error {
		return vaultPasswd(ctx, a, file, newFile)
	}).Flags().StringVar(&newFile, "new-passphrase-file", "", "file that holds the new passphrase (or AILERON_VAULT_NEW_PASSPHRASE)")
	return cmd
}

func vaultInit(ctx context.Context, a *app, file string, keyring bool) error {
	v, err := a.vaultOf()
	if err != nil {
		return err
	}
	if v.Initialised() {
		return hint.New(errors.New("make the vault: it is there already"), "change its passphrase with: aileron vault passwd")
	}
	p, err := a.makeVault(ctx, v, file)
	if err != nil || !keyring {
		return err
	}
	return a.remember(p)
}

func (a *app) remember(passphrase []byte) error {
	home, err := a.Home()
	if err != nil {
		return err
	}
	if err := vault.ToKeyring(home, passphrase); err != nil {
		return hint.New(fmt.Errorf("keep the passphrase in the OS keyring: %w", err), "this host may have none; use AILERON_VAULT_PASSPHRASE or --passphrase-file")
	}
	return nil
}

func vaultStatus(a *app) error {
	v, err := a.vaultOf()
	if err != nil {
		return err
	}
	bindings, err := v.Bindings()
	if errors.Is(err, vault.ErrNotInitialised) {
		err = nil
	}
	if err != nil && len(bindings) == 0 {
		return err
	}
	if a.json {
		status := map[string]any{"initialised": v.Initialised(), "locked": v.LockedForAll(), "bindings": len(bindings)}
		return errors.Join(a.printJSON(status), err)
	}
	state := "ready; its passphrase opens it"
	switch {
	case !v.Initialised():
		state = "not made yet; aileron vault init makes it"
	case v.LockedForAll():
		state = "locked for all sessions; aileron vault unlock opens it"
	}
	fmt.Fprintf(a.stdout, "vault     %s\nbindings  %d\n", state, len(bindings))
	return err
}

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

// vaultLock leaves the mark that every session sees. It asks for nothing:
// whoever is in a hurry must not have to remember a passphrase.
func vaultLock(ctx context.Context, a *app, keyring bool) error {
	v, err := a.vaultOf()
	if err != nil {
		return err
	}
	if !v.Initialised() {
		return hint.New(errors.New("lock the vault: there is none yet"), "make one with: aileron vault init")
	}
	if err := a.enact(ctx, change{what: audit.ChangeVaultLock}, func() error { return v.SetLocked(true) }); err != nil {
		return err
	}
	a.sayf("aileron: the vault is locked; running sessions inject nothing any more; aileron vault unlock opens it")
	if !keyring {
		return nil
	}
	home, err := a.Home()
	if err != nil {
		return err
	}
	if err := vault.ForgetKeyring(home); err != nil {
		return fmt.Errorf("remove the passphrase from the OS keyring: %w", err)
	}
	return nil
}

func vaultPasswd(ctx context.Context, a *app, file, newFile string) error {
	v, err := a.openVault(ctx, file)
	if err != nil {
		return err
	}
	fresh, err := newPassphrase(ctx, a, newFile)
	if err != nil {
		return err
	}
	if err := vault.CheckPassphrase(fresh); err != nil {
		return err
	}
	before, err := v.Digest(vault.Identity)
	if err != nil {
		return err
	}
	c := change{what: audit.ChangeVaultPasswd, before: before}
	if err := a.enact(ctx, c, func() error { return v.ChangePassphrase(fresh) }); err != nil {
		return err
	}
	a.sayf("aileron: the passphrase is changed")
	home, err := a.Home()
	if err != nil {
		return err
	}
	if vault.FromKeyring(home) != nil {
		return a.remember(fresh) // what it holds opens nothing any more
	}
	return nil
}

func newPassphrase(ctx context.Context, a *app, file string) ([]byte, error) {
	p := a.getenv("AILERON_VAULT_NEW_PASSPHRASE")
	switch {
	case file != "":
		return a.readPassphraseFile(file)
	case p != "":
		return []byte(p), nil
	case a.interactive():
		return a.promptPassphrase(ctx, true)
	}
	return nil, hint.New(errors.New("change the passphrase: there is no new one, and nobody to ask"), "pass --new-passphrase-file or set AILERON_VAULT_NEW_PASSPHRASE")
}
