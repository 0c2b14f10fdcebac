package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"

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

// passphraseFlag adds the two flags that name a file with the vault's passphrase.
func passphraseFlag(cmd *cobra.Command, file *string) {
	f := cmd.Flags()
	f.StringVar(file, "passphrase-file", "", "file that holds the vault's passphrase")
	f.Var((*descriptorFile)(file), "passphrase-fd", "number of an open descriptor with the vault's passphrase")
}

// descriptorFile is a flag that names a file by a descriptor that the process has inherited.
type descriptorFile string

// String returns "": there is no default to show.
func (d *descriptorFile) String() string { return "" }

// Type returns the word for the value in help.
func (d *descriptorFile) Type() string { return "N" }

// Set takes the number of a descriptor.
func (d *descriptorFile) Set(text string) error {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return errors.New("it is not the number of a descriptor")
	}
	*d = descriptorFile("/dev/fd/" + strconv.FormatUint(n, 10))
	return nil
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
			"unlock it, and store the passphrase with: aileron vault unlock --keyring; or do without: "+
				"AILERON_VAULT_PASSPHRASE, --passphrase-file")
	}
	return nil
}
