package vault

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/vault"
)

func newVaultStatusCommand(a *cli.App) *cobra.Command {
	var passphraseFile string
	cmd := &cobra.Command{
		Use:     "status",
		Short:   "Show whether there is a vault, how it opens, and until when",
		Example: "  aileron vault status",
		Args:    cli.UsageArgs(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return vaultStatus(cmd.Context(), a) },
	}
	cli.PassphraseFlag(cmd, &passphraseFile) // as all commands of the vault; there is nothing to open
	return cmd
}

func vaultStatus(ctx context.Context, a *cli.App) error {
	v, err := a.VaultOf()
	if err != nil {
		return err
	}
	held, err := a.KeptUntil(ctx)
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
	opens := a.HowVaultOpens(v, held)
	if a.JSON {
		status := map[string]any{"initialised": v.Initialised(), "locked": v.LockedForAll(), "bindings": len(bindings)}
		if v.Initialised() {
			status["opens"] = opens.With
			status["keyring"] = opens.Keyring
		}
		if !held.Until.IsZero() {
			status["unlocked_until"] = held.Until.UTC().Format(time.RFC3339)
			status["holder_pid"] = held.PID
		}
		return errors.Join(a.PrintJSON(status), err)
	}
	state := "ready"
	switch {
	case !v.Initialised():
		state = "not initialised; create it with: aileron setup, or: aileron vault init"
	case v.LockedForAll():
		state = "locked for all sessions; unlock it with: aileron vault unlock"
	}
	out := a.FittedOut()
	fmt.Fprintf(out, "vault     %s\nbindings  %d\n", state, len(bindings))
	if v.Initialised() {
		fmt.Fprintf(out, "opens     %s\n", opens.Text)
	}
	if !held.Until.IsZero() {
		fmt.Fprintf(out, "unlocked  until %s by process %d; end that with: aileron vault lock\n",
			held.Until.Local().Format(time.DateTime), held.PID)
	}
	return err
}
