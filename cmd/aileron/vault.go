package main

import (
	"context"

	"github.com/spf13/cobra"
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
