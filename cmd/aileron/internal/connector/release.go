package connector

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/connectors"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/publishing"
	"github.com/ALRubinger/aileron/spec/signature"
)

func newConnectorReleaseCommand(a *cli.App) *cobra.Command {
	opts := publishing.ReleaseOptions{}
	var keys []string
	var passphraseFile string
	cmd := &cobra.Command{
		Use:   "release [DIR]",
		Short: "Pack, sign and tag a version, and print the commands that publish it",
		Long: "Check that a version can be released, pack and sign it, and tag the commit. All must be\n" +
			"committed, the tag must not be at another commit, and the version must be raised by\n" +
			"as much as is due (connector bump). Nothing is pushed: the commands that publish the\n" +
			"tag and the archive are printed. --dry-run checks all of it and changes nothing.",
		Example: "  aileron connector release . --sign publisher.key\n  aileron connector release --dry-run",
		Args:    cli.UsageArgs(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if opts.Dir = "."; len(args) == 1 {
				opts.Dir = args[0]
			}
			if len(keys) == 0 && passphraseFile != "" {
				return failure.Usagef("--passphrase-file is that of the key that --sign names")
			}
			opts.Faults = listFaults(a)
			opts.Keys = func(ctx context.Context) ([]signature.SecretKey, error) {
				return connectors.ReadSigningKeys(ctx, &a.Unlocker, keys, passphraseFile)
			}
			rel, err := publishing.Release(cmd.Context(), opts)
			if err != nil {
				return err
			}
			if a.JSON {
				return a.PrintJSON(rel.JSON())
			}
			rel.Print(a.Console, opts.DryRun)
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVarP(&opts.Output, "output", "o", "", "where to write the archive (default aileron.tar.gz)")
	f.StringVar(&opts.Since, "since", "", "the last release: a tag, or an archive (default the highest lower tag)")
	f.BoolVar(&opts.Force, "force", false, "release a version that is raised by less than is due")
	f.BoolVar(&opts.DryRun, "dry-run", false, "check all of it, and write and tag nothing")
	f.StringArrayVar(&keys, "sign", nil, "sign the archive with the secret key in this file; repeat it for several")
	signingPassphraseFlag(cmd, &passphraseFile)
	return cmd
}
