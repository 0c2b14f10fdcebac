package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/review"
	"github.com/ALRubinger/aileron/internal/termsafe"
)

// usedJSON is what audit used prints.
type usedJSON struct {
	review.Use
	BySession []review.Use `json:"by_session"`
}

func newAuditUsedCommand(a *app) *cobra.Command {
	opts := &auditOptions{}
	cmd := &cobra.Command{
		Use:     "used BINDING",
		Short:   "Show who used a credential, when, for which operations, and what was refused",
		Example: "  aileron audit used bearer/github/work\n  aileron audit used github --since 24h",
		Args:    usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			filter, err := opts.build(a)
			if err != nil {
				return err
			}
			return a.readAudit(func(l *audit.Log) error {
				used, err := usesOf(cmd.Context(), l, filter, args[0])
				if err != nil {
					return err
				}
				if a.json {
					return a.printJSON(used)
				}
				return a.printUsed(used)
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
		if near := nearest(name, known); near != "" {
			return used, hint.New(err, "did you mean %s?", near)
		}
		return used, hint.New(err, "see which were used with: aileron audit summary")
	case len(fitting) > 1:
		known = nil
		for _, u := range fitting {
			known = append(known, u.Binding)
		}
		return used, hint.New(usagef("%s can be %s", name, alternatives(known)), "write one of them in full")
	}
	used.Use = fitting[0]
	used.BySession = append([]review.Use{}, review.UsesBySession(ctx, groups, &agents, used.Binding)...)
	return used, nil
}

func (a *app) printUsed(used usedJSON) error {
	if err := printUses(a.stdout, []review.Use{used.Use}, a.outputColumns()); err != nil {
		return err
	}
	fmt.Fprintln(a.stdout)
	t := table{heads: []string{"session", "agent", "sent", "refused", "first", "last", "for"}}
	for _, s := range used.BySession {
		t.rows = append(t.rows, []string{word(some(s.Sessions, 1)), word(some(s.Agents, 1)),
			strconv.FormatInt(s.Sent, 10), strconv.FormatInt(s.Refused, 10), momentText(s.First), momentText(s.Last),
			termsafe.Line(useText(s))})
	}
	return t.print(a.stdout, a.outputColumns())
}
