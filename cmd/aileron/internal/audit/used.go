package audit

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/auditview"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/review"
	"github.com/ALRubinger/aileron/internal/spending"
)

func newAuditUsedCommand(a *cli.App, from *auditview.Source) *cobra.Command {
	opts, by := &auditOptions{from: from}, "model"
	cmd := &cobra.Command{
		Use:   "used [BINDING]",
		Short: "Show what was used, in requests, bytes, tokens and money, or who used a credential, and for what",
		Example: "  aileron audit used --since 24h --by session\n  aileron audit used bearer/github/work\n" +
			"  aileron audit used github --since 24h",
		Args: cli.UsageArgs(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cli.OneOf("by", by, review.SpentKinds()...); err != nil {
				return err
			}
			filter, err := opts.build(a)
			if err != nil {
				return err
			}
			return from.Read(cmd.Context(), func(l review.Log) error {
				if len(args) == 0 {
					return printSpent(cmd.Context(), a, from, l, filter, by)
				}
				used, err := review.UsesOf(cmd.Context(), l, filter, args[0])
				if err != nil {
					return err
				}
				if a.JSON {
					return a.PrintJSON(used)
				}
				return review.PrintUsed(a.Stdout, used, a.OutputColumns())
			})
		},
	}
	opts.register(cmd)
	cmd.Flags().StringVar(&by, "by", by, "without BINDING: "+hint.Listed(review.SpentKinds()))
	return cmd
}

func printSpent(
	ctx context.Context, a *cli.App, from *auditview.Source, l review.Log, filter audit.Filter, by string,
) error {
	_, conf, err := a.Settings()
	if err != nil {
		return err
	}
	uses, err := review.Spent(ctx, l, filter, conf.Prices, by)
	switch {
	case err != nil:
		return err
	case a.JSON:
		return a.PrintJSON(uses)
	case len(uses) == 0:
		from.NoMatch(ctx, l, filter)
		return nil
	}
	return spending.Print(a.Stdout, by, uses, a.OutputColumns())
}
