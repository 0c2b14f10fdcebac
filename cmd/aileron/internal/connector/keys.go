package connector

import (
	"cmp"
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/connectors"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/spec/signature"
)

func newConnectorKeysCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "keys",
		Short: "List and change the publishers' keys that connectors must be signed with",
		Args:  cobra.ArbitraryArgs,
		RunE:  cli.SubcommandNeeded,
	}
	cmd.AddCommand(newConnectorKeysListCommand(a), newConnectorKeysAddCommand(a), newConnectorKeysRemoveCommand(a))
	return cmd
}

// PublisherKeyJSON is one publisher's key.
type PublisherKeyJSON struct {
	Authority string    `json:"authority"`
	KeyID     string    `json:"key_id"`
	PublicKey string    `json:"public_key"`
	State     string    `json:"state"`                // trusted, replaced (it signs nothing new), or removed
	Since     time.Time `json:"since"`                // of that state
	By        string    `json:"by,omitempty"`         // the first connector that it signed; none: it was added by hand
	VouchedBy string    `json:"vouched_by,omitempty"` // the id of the key that it replaced
}

func newConnectorKeysListCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the publishers' keys that are known",
		Example: "  aileron connector keys list",
		Args:    cli.UsageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			keys, err := a.PublisherKeys()
			if err != nil {
				return err
			}
			known, err := keys.List()
			if err != nil {
				return connectors.KeysHint(err)
			}
			all := []PublisherKeyJSON{}
			for _, t := range known {
				for _, k := range t.Keys {
					all = append(all, describeKey(t.Authority, k, "trusted"))
				}
				for _, k := range t.Retired {
					all = append(all, describeKey(t.Authority, k, "replaced"))
				}
				for _, k := range t.Revoked {
					all = append(all, describeKey(t.Authority, k, "removed"))
				}
			}
			if a.JSON {
				return a.PrintJSON(all)
			}
			if len(all) == 0 {
				a.Infof("aileron: no publisher's key is known; the first one of an authority is remembered when a " +
					"connector that it signed is installed")
				return nil
			}
			w := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
			for _, k := range all {
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", k.Authority, k.KeyID, k.State, k.Since.Format(time.DateOnly),
					k.PublicKey, cmp.Or(k.By, "-"))
			}
			return w.Flush()
		},
	}
}

func describeKey(of signature.Authority, k signature.Known, state string) PublisherKeyJSON {
	j := PublisherKeyJSON{Authority: string(of), KeyID: k.Key.ID().String(), PublicKey: k.Key.String(), State: state,
		Since: k.Since, By: k.By}
	if k.VouchedBy != 0 {
		j.VouchedBy = k.VouchedBy.String()
	}
	return j
}

func newConnectorKeysAddCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "add AUTHORITY FILE",
		Short: "Accept a publisher's key, beside those that are accepted",
		Long: "Accept a key for the connectors of a publisher, who is named as in github://acme.\n" +
			"FILE is the public key of minisign, which you got from the publisher. The keys that\n" +
			"are accepted already stay so: remove those that are not used any more.",
		Example: "  aileron connector keys add github://acme acme.pub",
		Args:    cli.UsageArgs(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			authority, err := signature.ParseAuthority(args[0])
			if err != nil {
				return failure.Usage(err)
			}
			key, err := connectors.ReadPublicKey(args[1])
			if err != nil {
				return err
			}
			if err := connectors.ChangeKeys(cmd.Context(), a.Dir, a.Recorder, audit.ChangePublisherKeyAdd, authority, key.ID(),
				func(ctx context.Context, keys *signature.Keys) error { return keys.Add(ctx, authority, key) }); err != nil {
				return err
			}
			if a.JSON {
				return a.PrintJSON(map[string]string{"authority": string(authority), "key_id": key.ID().String(),
					"public_key": key.String()})
			}
			fmt.Fprintf(a.Stdout, "%s %s %s\n", authority, key.ID(), key)
			return nil
		},
	}
}

func newConnectorKeysRemoveCommand(a *cli.App) *cobra.Command {
	var forget bool
	cmd := &cobra.Command{
		Use:   "remove AUTHORITY [KEY_ID]",
		Short: "Refuse a publisher's key from now on",
		Long: "Refuse a key of a publisher from now on. Connectors that it has signed stay installed\n" +
			"and allowed; they are listed, and each session that uses one warns. The publisher's\n" +
			"connectors must still be signed: with another key that is accepted, or, if there is\n" +
			"none, with one that you accept when the next connector is installed. --forget removes\n" +
			"all that is known of the publisher.",
		Example: "  aileron connector keys remove github://acme 0123456789ABCDEF\n" +
			"  aileron connector keys remove github://acme --forget",
		Args: cli.UsageArgs(cobra.RangeArgs(1, 2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if forget == (len(args) == 2) {
				return failure.Usagef("name either the id of one key, or --forget for all that is known of %s", args[0])
			}
			authority, err := signature.ParseAuthority(args[0])
			if err != nil {
				return failure.Usage(err)
			}
			var id signature.KeyID
			remove := func(ctx context.Context, keys *signature.Keys) error { return keys.Forget(ctx, authority) }
			if !forget {
				if id, err = signature.ParseKeyID(args[1]); err != nil {
					return failure.Usage(err)
				}
				remove = func(ctx context.Context, keys *signature.Keys) error { return keys.Revoke(ctx, authority, id) }
			}
			err = connectors.ChangeKeys(cmd.Context(), a.Dir, a.Recorder, audit.ChangePublisherKeyRemove, authority, id, remove)
			if err != nil {
				return err
			}
			if !forget && !a.JSON {
				defer connectors.WarnOfRemovedKey(a.Dir, authority, id)
			}
			j := map[string]string{"authority": string(authority)}
			if !forget {
				j["key_id"] = id.String()
			}
			if a.JSON {
				return a.PrintJSON(j)
			}
			fmt.Fprintf(a.Stdout, "removed %s %s\n", authority, cmp.Or(j["key_id"], "and all of its keys"))
			return nil
		},
	}
	cmd.Flags().BoolVar(&forget, "forget", false, "remove all that is known of the publisher, also that it signs")
	return cmd
}
