package approval

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/approvals"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/session"
	"github.com/ALRubinger/aileron/proxy/approval"
)

// surface names the command line as the place of a decision.
const surface = "cli"

func newApproveCommand(a *cli.App) *cobra.Command {
	return newDecideCommand(a, true, &cobra.Command{
		Use:   "approve ID",
		Short: "Let a request that waits pass",
		Long: "Let a request that waits pass: this one, once, if it is still held or is sent again\n" +
			"within ten minutes; every request of its operation with the same credential, for the\n" +
			"session; or in all sessions, always, until the connector has another version.",
		Example: "  aileron approval approve 01J…\n  aileron approval approve 01J… --for session",
	})
}

func newDenyCommand(a *cli.App) *cobra.Command {
	return newDecideCommand(a, false, &cobra.Command{
		Use:   "deny ID",
		Short: "Deny a request that waits",
		Long: "Deny a request that waits. The agent is told so, and an equal one is denied for ten\n" +
			"minutes; with --for, every request of its operation for the session, or always.",
		Example: "  aileron approval deny 01J…",
	})
}

// decision is the flags of a decision.
type decision struct {
	approval.Decision
	scope       string
	unseen, yes bool
}

func newDecideCommand(a *cli.App, approve bool, cmd *cobra.Command) *cobra.Command {
	d := &decision{Decision: approval.Decision{Approve: approve, Surface: surface}}
	cmd.Args = cli.UsageArgs(cobra.ExactArgs(1))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		d.For = approval.Scope(d.scope)
		if err := cli.OneOf("for", d.For, approval.Scopes()...); err != nil {
			return err
		}
		return d.run(cmd.Context(), a, args[0])
	}
	cmd.Flags().StringVar(&d.scope, "for", string(approval.Once), "once, session or always")
	if approve {
		cmd.Flags().BoolVar(&d.unseen, "unseen", false, "approve also a request of which show cannot show all")
		cmd.Flags().BoolVarP(&d.yes, "yes", "y", false, "with --for session or always: do not ask for confirmation")
	}
	return cmd
}

func (d *decision) run(ctx context.Context, a *cli.App, id string) error {
	home, err := a.Home()
	if err != nil {
		return err
	}
	q, err := session.FindApproval(ctx, home, id, true)
	if err != nil {
		return err
	}
	if d.Approve {
		if err := d.confirm(a, q); err != nil {
			return err
		}
	}
	q, err = session.DecideApproval(ctx, home, q.SessionID, q.ID, d.Decision)
	if err != nil {
		return err
	}
	if a.JSON {
		return a.PrintJSON(q)
	}
	_, err = fmt.Fprintln(a.Stdout, approvals.Decided(q))
	return err
}

// confirm makes sure that a person knows what they approve.
func (d *decision) confirm(a *cli.App, q approval.Question) error {
	if unseen := approvals.Unseen(q); unseen != "" && !d.unseen && q.State == approval.Pending {
		return hint.New(failure.Usagef("not approved: %s", unseen), "pass --unseen to approve it all the same")
	}
	if d.For == approval.Once || d.yes {
		return nil
	}
	if !a.Interactive() {
		return failure.Usagef("there is no terminal to ask for confirmation on; pass --yes to approve for %s: %s", d.For,
			q.Covers)
	}
	yes, err := a.Agreed("approve for " + d.scope + ", with " + cmp.Or(q.Binding, "no credential") + ": " + q.Covers + "?")
	if err == nil && !yes {
		err = failure.Declined("not approved: it was not confirmed")
	}
	return err
}

func newRevokeCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "revoke ID",
		Short: "Take back an approval or a denial that is in force",
		Long: "Take back a decision for the session or for always, or an approval that has not been\n" +
			"used. The next such request waits for you again.",
		Example: "  aileron approval revoke 01J…",
		Args:    cli.UsageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			home, err := a.Home()
			if err != nil {
				return err
			}
			q, err := session.FindApproval(cmd.Context(), home, args[0], true)
			if err != nil {
				return err
			}
			if err := session.NewDesk(home, surface, a.OpenLog).TakeBack(cmd.Context(), q); err != nil {
				return err
			}
			if a.JSON {
				return a.PrintJSON(map[string]string{"id": q.ID, "state": "revoked"})
			}
			_, err = fmt.Fprintln(a.Stdout, "revoked "+approvals.What(q))
			return err
		},
	}
}
