package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/vault"
)

func newVaultStatusCommand(a *app) *cobra.Command {
	var passphraseFile string
	cmd := &cobra.Command{
		Use:     "status",
		Short:   "Show whether there is a vault and whether it is locked",
		Example: "  aileron vault status",
		Args:    usageArgs(cobra.NoArgs),
		RunE:    func(*cobra.Command, []string) error { return vaultStatus(a) },
	}
	passphraseFlag(cmd, &passphraseFile) // as all commands of the vault; there is nothing to open
	return cmd
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
	state := "ready"
	switch {
	case !v.Initialised():
		state = "not initialised; create it with: aileron vault init"
	case v.LockedForAll():
		state = "locked for all sessions; unlock it with: aileron vault unlock"
	}
	fmt.Fprintf(a.stdout, "vault     %s\nbindings  %d\n", state, len(bindings))
	return err
}
