// Package binding has the commands of aileron binding: a file a verb.
package binding

import (
	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/bindings"
	"github.com/ALRubinger/aileron/internal/failure"
)

func New(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "binding",
		Short: "Bind credentials to connectors",
		Args:  cobra.ArbitraryArgs,
		RunE:  cli.SubcommandNeeded,
	}
	cmd.AddCommand(newBindingSetupCommand(a), newBindingListCommand(a), newBindingInspectCommand(a),
		newBindingRebindCommand(a), newBindingRevokeCommand(a))
	return cmd
}

// registerSecret adds the flags of where a secret is.
func registerSecret(cmd *cobra.Command, from *bindings.SecretSource) {
	f := cmd.Flags()
	f.StringVar(&from.File, "secret-file", "", "file that holds only the secret (- for standard input)")
	f.BoolVar(&from.Stdin, "secret-stdin", false, "read the secret from standard input")
	f.StringVar(&from.Username, "username", "", "user name, for kind basic")
	cli.PassphraseFlag(cmd, &from.PassphraseFile)
}

// checkSecret returns an error if flags name the secret twice.
func checkSecret(from *bindings.SecretSource) error {
	if from.File != "" && from.Stdin {
		return failure.Usagef("--secret-file and --secret-stdin exclude each other")
	}
	if from.File == "-" {
		from.File, from.Stdin = "", true
	}
	return nil
}
