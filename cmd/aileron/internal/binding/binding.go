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
	f.StringVar(&from.Exec, "secret-exec", "", "shell command that prints the secret, or "+
		`{"value","expires_at"}; run by sessions when they need it`)
	f.StringVar(&from.Username, "username", "", "user name, for kind basic")
	cli.PassphraseFlag(cmd, &from.PassphraseFile)
}

// registerLogin adds the flags of a login.
func registerLogin(cmd *cobra.Command, a *cli.App, in *bindings.Login, up *cli.UpstreamOptions) {
	f := cmd.Flags()
	f.BoolVar(&in.NoBrowser, "no-browser", false, "print the address of a login, read the one where a browser ended")
	f.IntVar(&in.Port, "callback-port", 0, "local port at which a login ends, where the service must know it (0: any)")
	f.StringVar(&in.ClientID, "client-id", "", "your own client at the service, in place of the connector's")
	f.StringVar(&in.ClientSecretFile, "client-secret-file", "", "file that holds only the secret of that client")
	reachService(cmd, a, in, up)
}

// reachService adds the flags of how the service of a login is reached.
func reachService(cmd *cobra.Command, a *cli.App, in *bindings.Login, up *cli.UpstreamOptions) {
	up.Register(cmd)
	in.Upstream = a.ReachServices(up)
}

// checkLogin returns an error unless the flags of a login can be right.
func checkLogin(in *bindings.Login) error {
	if in.Port < 0 || in.Port > 65535 {
		return failure.Usagef("--callback-port is %d; it must be 1 to 65535, or 0 for any", in.Port)
	}
	return nil
}

// checkSecret returns an error if flags name the secret twice.
func checkSecret(from *bindings.SecretSource) error {
	if from.File != "" && from.Stdin || from.Exec != "" && (from.File != "" || from.Stdin) {
		return failure.Usagef("--secret-file, --secret-stdin and --secret-exec exclude each other")
	}
	if from.File == "-" {
		from.File, from.Stdin = "", true
	}
	return nil
}
