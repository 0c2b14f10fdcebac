package vault

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/unlock"
	"github.com/ALRubinger/aileron/vault"
	"github.com/ALRubinger/aileron/vault/keeper"
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
	opens := howVaultOpens(a, v, held)
	if a.JSON {
		status := map[string]any{"initialised": v.Initialised(), "locked": v.LockedForAll(), "bindings": len(bindings)}
		if v.Initialised() {
			status["opens"] = opens.with
			status["keyring"] = opens.keyring
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
		fmt.Fprintf(out, "opens     %s\n", opens.text)
	}
	if !held.Until.IsZero() {
		fmt.Fprintf(out, "unlocked  until %s by process %d; end that with: aileron vault lock\n",
			held.Until.Local().Format(time.DateTime), held.PID)
	}
	return err
}

// opening is how a command without flags opens the vault.
type opening struct {
	with    string // environment, held, keyring or passphrase
	keyring string // holds, empty, none or unavailable
	text    string
}

// howVaultOpens returns what a command without flags would open the vault with, in the order of [app.openVault].
func howVaultOpens(a *cli.App, v *vault.Vault, held keeper.State) (o opening) {
	home, err := a.Home()
	if err == nil && v.Initialised() {
		_, err = vault.FromKeyring(home)
	}
	switch {
	case err == nil:
		o.keyring = "holds"
	case errors.Is(err, vault.ErrNoKeyring):
		o.keyring = "none"
	case errors.Is(err, vault.ErrKeyringEmpty):
		o.keyring = "empty"
	default:
		o.keyring = "unavailable"
	}
	switch {
	case a.Getenv(string(unlock.FromEnv)) != "":
		o.with, o.text = "environment", "with the passphrase in "+string(unlock.FromEnv)
	case !held.Until.IsZero():
		o.with, o.text = "held", "with the key that a process holds"
	case o.keyring == "holds":
		o.with, o.text = "keyring", "with the passphrase in the OS keyring"
	default:
		o.with, o.text = "passphrase", "with the passphrase, which every command asks for; once for the day: "+
			"aileron vault unlock --for 8h"
	}
	if o.keyring == "unavailable" {
		o.text += fmt.Sprintf(" (%v)", err)
	}
	return o
}
