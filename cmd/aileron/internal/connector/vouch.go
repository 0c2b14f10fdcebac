package connector

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/publishing"
)

func newConnectorVouchCommand(a *cli.App) *cobra.Command {
	opts := publishing.VouchOptions{}
	cmd := &cobra.Command{
		Use:   "vouch DIR NEXT.pub --sign OLD.key",
		Short: "State with a publisher's key which one is the next, so that users accept it",
		Long: "Add to the file trust of a connector's directory the statement, signed with the key\n" +
			"that users know, that NEXT.pub is the publisher's next key. Releases that carry it, and\n" +
			"are signed with the next key, are accepted without connector keys add. From then on the\n" +
			"old key signs nothing new for those users.",
		Example: "  aileron connector vouch . 2027.pub --sign 2026.key",
		Args:    cli.UsageArgs(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if opts.Key == "" {
				return failure.Usagef("name the secret key that vouches with --sign")
			}
			opts.Dir, opts.Next = args[0], args[1]
			v, err := publishing.Vouch(cmd.Context(), &a.Unlocker, opts)
			if err != nil {
				return err
			}
			if a.JSON {
				return a.PrintJSON(map[string]string{"authority": string(v.Authority), "file": v.File,
					"key_id": v.Key.ID().String(), "next_key_id": v.Next.ID().String(), "next_public_key": v.Next.String()})
			}
			fmt.Fprintf(a.Stdout, "%s: the key %s vouches for the key %s of %s\n", v.File, v.Key.ID(), v.Next.ID(), v.Authority)
			a.Infof("commit it, and sign the next releases with the new key; keep it in them, as users may skip versions")
			return nil
		},
	}
	cmd.Flags().StringVar(&opts.Key, "sign", "", "file of the secret key that users know")
	signingPassphraseFlag(cmd, &opts.PassphraseFile)
	return cmd
}
