package connector

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/connectors"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/spec/store"
)

type connectorPackOptions struct {
	output         string
	keys           []string // files of the secret keys; none: it is not signed
	PassphraseFile string
}

func newConnectorPackCommand(a *cli.App) *cobra.Command {
	opts := &connectorPackOptions{}
	cmd := &cobra.Command{
		Use:   "pack DIR",
		Short: "Pack a connector's directory into an archive that can be installed",
		Long: "Pack a connector's directory into an archive that can be installed. The same files\n" +
			"result in the same archive. --sign adds signature.sig, by a key that connector keygen\n" +
			"or minisign -G has made, or by several. The vouches of the directory's file trust go\n" +
			"with them.",
		Example: "  aileron connector pack ./examples/connectors/github --output aileron.tar.gz\n" +
			"  aileron connector pack ./tracker --sign ~/.aileron/publisher.key",
		Args: cli.UsageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return opts.run(cmd.Context(), a, args[0]) },
	}
	f := cmd.Flags()
	f.StringVarP(&opts.output, "output", "o", "aileron.tar.gz", "where to write the archive")
	f.StringArrayVar(&opts.keys, "sign", nil, "sign the archive with the secret key in this file; repeat it for several")
	signingPassphraseFlag(cmd, &opts.PassphraseFile)
	return cmd
}

func (o *connectorPackOptions) run(ctx context.Context, a *cli.App, dir string) error {
	if len(o.keys) == 0 && o.PassphraseFile != "" {
		return failure.Usagef("--passphrase-file is that of the key that --sign names")
	}
	if len(o.keys) > 0 {
		if _, err := store.Read(dir); err != nil { // before a passphrase is asked for
			return failure.OfInput(connectors.SourceError(dir, err, listFaults(a)), failure.ReasonConnector)
		}
		if err := connectors.CanCreateIn(filepath.Dir(o.output)); err != nil { // before that, too
			return failure.OfInput(fmt.Errorf("write the archive %s: %w", o.output, err), "")
		}
	}
	signers, err := connectors.ReadSigningKeys(ctx, &a.Unlocker, o.keys, o.PassphraseFile)
	if err != nil {
		return err
	}
	c, err := connectors.Pack(dir, o.output, signers, listFaults(a))
	if err != nil {
		return err
	}
	if a.JSON {
		j := map[string]string{"fqn": string(c.FQN), "version": c.Version, "hash": c.Hash, "file": o.output}
		if len(signers) > 0 {
			j["key_id"], j["public_key"] = signers[0].Public().ID().String(), signers[0].Public().String()
		}
		return a.PrintJSON(j)
	}
	fmt.Fprintf(a.Stdout, "%s  %s %s %s\n", o.output, c.FQN, c.Version, c.Hash)
	for _, key := range signers {
		a.Infof("aileron: signed with the key %s", key.Public().ID())
	}
	return nil
}
