package connector

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/connectors"
)

type connectorKeygenOptions struct {
	out            string
	PassphraseFile string
}

func newConnectorKeygenCommand(a *cli.App) *cobra.Command {
	opts := &connectorKeygenOptions{}
	cmd := &cobra.Command{
		Use:   "keygen",
		Short: "Make the pair of keys that signs a publisher's connectors",
		Long: "Make the pair of keys with which connector pack --sign signs, in the format of\n" +
			"minisign. The secret key is encrypted with a passphrase; that takes 1 GiB of memory\n" +
			"for some seconds. Files that exist are never overwritten.",
		Example: "  aileron connector keygen\n  aileron connector keygen --out acme.key",
		Args:    cli.UsageArgs(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return opts.run(cmd.Context(), a) },
	}
	cmd.Flags().StringVarP(&opts.out, "out", "o", "",
		"file for the secret key (default publisher.key in aileron's home); the public key is beside it")
	signingPassphraseFlag(cmd, &opts.PassphraseFile)
	return cmd
}

func (o *connectorKeygenOptions) run(ctx context.Context, a *cli.App) error {
	secret := o.out
	if secret == "" {
		home, err := a.Home()
		if err != nil {
			return err
		}
		secret = filepath.Join(home, "publisher.key")
	}
	key, public, err := connectors.GenerateKey(ctx, &a.Unlocker, secret, o.PassphraseFile)
	if err != nil {
		return err
	}
	if a.JSON {
		return a.PrintJSON(map[string]string{"secret_key_file": secret, "public_key_file": public,
			"key_id": key.ID().String(), "public_key": key.String()})
	}
	fmt.Fprintf(a.Stdout, "%s\n", key)
	a.Infof("aileron: made the key %s", key.ID())
	a.Infof("  %s: the secret key. Keep it out of the repository, and a copy in a safe place: without it and", secret)
	a.Infof("  its passphrase, your users have to accept another key. Sign: aileron connector pack DIR --sign %s", secret)
	a.Infof("  %s: the public key. Publish it where your users already trust you: your repository, your site.", public)
	return nil
}

// signingPassphraseFlag adds the two flags that name a file with the passphrase of a signing key.
func signingPassphraseFlag(cmd *cobra.Command, file *string) {
	f := cmd.Flags()
	f.StringVar(file, "passphrase-file", "", "file that holds the signing key's passphrase")
	f.Var((*cli.DescriptorFile)(file), "passphrase-fd", "number of an open descriptor with the signing key's passphrase")
}
