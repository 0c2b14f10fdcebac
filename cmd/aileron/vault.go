package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/vault"
)

func newVaultCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "vault",
		Short: "Keep credentials encrypted at rest",
		Args:  cobra.ArbitraryArgs,
		RunE:  subcommandNeeded,
	}
	cmd.AddCommand(newVaultInitCommand(a), newVaultStatusCommand(a), newVaultUnlockCommand(a), newVaultLockCommand(a),
		newVaultPasswdCommand(a), newVaultKeepCommand(a))
	return cmd
}

// passphraseFlag adds the flag of the commands that open the vault.
func passphraseFlag(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVar(file, "passphrase-file", "", "file that holds the vault's passphrase")
}

// vaultOf returns the vault of the home, locked. It need not exist.
func (a *app) vaultOf() (*vault.Vault, error) {
	home, err := a.Home()
	if err != nil {
		return nil, err
	}
	return a.vaultAt(home), nil
}

// vaultAt returns the vault of a home, locked. It need not exist.
func (a *app) vaultAt(home string) *vault.Vault {
	return vault.Open(filepath.Join(home, "vault"), a.vaultOptions...)
}

// notInitialised returns the error of an operation that needs a vault.
func notInitialised(operation string) error {
	return hint.New(errors.New(operation+": it is not initialised"), "create it with: aileron vault init")
}

// keepInKeyring stores the passphrase in the keyring of the operating system.
func (a *app) keepInKeyring(passphrase []byte) error {
	home, err := a.Home()
	if err != nil {
		return err
	}
	if err := vault.ToKeyring(home, passphrase); err != nil {
		return hint.New(fmt.Errorf("store the passphrase in the OS keyring: %w", err),
			"this host may have no keyring; use AILERON_VAULT_PASSPHRASE or --passphrase-file")
	}
	return nil
}
