package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/vault"
	"github.com/ALRubinger/aileron/vault/keeper"
)

func newVaultStatusCommand(a *app) *cobra.Command {
	var passphraseFile string
	cmd := &cobra.Command{
		Use:     "status",
		Short:   "Show whether there is a vault, whether it is locked, and until when it is unlocked",
		Example: "  aileron vault status",
		Args:    usageArgs(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return vaultStatus(cmd.Context(), a) },
	}
	passphraseFlag(cmd, &passphraseFile) // as all commands of the vault; there is nothing to open
	return cmd
}

func vaultStatus(ctx context.Context, a *app) error {
	v, err := a.vaultOf()
	if err != nil {
		return err
	}
	held, err := a.keptUntil(ctx)
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
		if !held.Until.IsZero() {
			status["unlocked_until"] = held.Until.UTC().Format(time.RFC3339)
		}
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
	if !held.Until.IsZero() {
		fmt.Fprintf(a.stdout, "unlocked  until %s by process %d; end that with: aileron vault lock\n",
			held.Until.Local().Format(time.DateTime), held.PID)
	}
	return err
}

// keptUntil returns the process that holds the vault's key, and the zero value if there is none.
func (a *app) keptUntil(ctx context.Context) (keeper.State, error) {
	home, err := a.Home()
	if err != nil {
		return keeper.State{}, err
	}
	held, err := keeper.Ask(ctx, home)
	if errors.Is(err, keeper.ErrNone) {
		return keeper.State{}, nil
	}
	return held, err
}
