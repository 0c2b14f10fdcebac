package audit

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/review"
	"github.com/ALRubinger/aileron/internal/termsafe"
)

// usedJSON is what audit used prints.
type usedJSON struct {
	review.Use
	BySession []review.Use `json:"by_session"`
}

func newAuditUsedCommand(a *cli.App) *cobra.Command {
	opts := &auditOptions{}
	cmd := &cobra.Command{
		Use:     "used BINDING",
		Short:   "Show who used a credential, when, for which operations, and what was refused",
		Example: "  aileron audit used bearer/github/work\n  aileron audit used github --since 24h",
		Args:    cli.UsageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			filter, err := opts.build(a)
			if err != nil {
				return err
			}
			return a.ReadAudit(func(l *audit.Log) error {
				used, err := usesOf(cmd.Context(), l, filter, args[0])
				if err != nil {
					return err
				}
				if a.JSON {
					return a.PrintJSON(used)
				}
				return printUsed(a, used)
			})
		},
	}
	opts.register(cmd)
	return cmd
}

// usesOf returns what the credential was used for whose binding or connector has the name.
func usesOf(ctx context.Context, l *audit.Log, filter audit.Filter, name string) (used usedJSON, err error) {
	groups, err := l.Groups(ctx, filter, audit.GroupBy{})
	if err != nil {
		return used, err
	}
	agents := review.Agents{Open: func() (*audit.Log, error) { return l, nil }}
	uses := slices.DeleteFunc(review.Uses(ctx, groups, &agents), func(u review.Use) bool { return u.Binding == "" })
	var known []string
	for _, u := range uses {
		known = append(known, u.Binding)
	}
	fitting := slices.DeleteFunc(slices.Clone(uses), func(u review.Use) bool {
		return u.Binding != name && !slices.Contains(shortNames(u.Connectors), name) && !slices.Contains(u.Connectors, name)
	})
	switch {
	case len(fitting) == 0:
		err := fmt.Errorf("find the uses of %.200s: no request carried such a credential", name)
		if near := hint.Nearest(name, known); near != "" {
			return used, hint.New(err, "did you mean %s?", near)
		}
		return used, hint.New(err, "see which were used with: aileron audit summary")
	case len(fitting) > 1:
		known = nil
		for _, u := range fitting {
			known = append(known, u.Binding)
		}
		return used, hint.New(failure.Usagef("%s can be %s", name, hint.Alternatives(known)), "write one of them in full")
	}
	used.Use = fitting[0]
	used.BySession = append([]review.Use{}, review.UsesBySession(ctx, groups, &agents, used.Binding)...)
	return used, nil
}

func printUsed(a *cli.App, used usedJSON) error {
	if err := PrintUses(a.Stdout, []review.Use{used.Use}, a.OutputColumns()); err != nil {
		return err
	}
	fmt.Fprintln(a.Stdout)
	t := console.Table{Heads: []string{"session", "agent", "sent", "refused", "first", "last", "for"}}
	for _, s := range used.BySession {
		t.Rows = append(t.Rows, []string{word(some(s.Sessions, 1)), word(some(s.Agents, 1)),
			strconv.FormatInt(s.Sent, 10), strconv.FormatInt(s.Refused, 10), momentText(s.First), momentText(s.Last),
			termsafe.Line(useText(s))})
	}
	return t.Print(a.Stdout, a.OutputColumns())
}
