package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/termsafe"
)

func newAuditSummaryCommand(a *app) *cobra.Command {
	opts := &auditOptions{}
	cmd := &cobra.Command{
		Use:   "summary",
		Short: "Count events by kind, decision and reason, and requests without a known outcome",
		Example: "  aileron audit summary --since 24h\n" +
			"  aileron audit summary --session 01J… --json",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			filter, err := opts.build(a)
			if err != nil {
				return err
			}
			return a.readAudit(func(l *audit.Log) error {
				s, err := l.Summarize(cmd.Context(), filter)
				if err != nil {
					return err
				}
				if a.json {
					return a.printJSON(s)
				}
				return a.printSummary(s)
			})
		},
	}
	opts.register(cmd)
	return cmd
}

func (a *app) printSummary(s audit.Summary) error {
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "rows\t%d\n", s.Rows)
	if s.First != nil {
		fmt.Fprintf(w, "from\t%s\nto\t%s\n", s.First.Format(time.RFC3339), s.Last.Format(time.RFC3339))
	}
	for _, kind := range []struct {
		name   string
		counts map[string]int64
	}{{"event", s.Events}, {"decision", s.Decisions}, {"reason", s.Reasons}} {
		for _, name := range byCount(kind.counts) {
			fmt.Fprintf(w, "%s\t%d\t%s\n", kind.name, kind.counts[name], termsafe.Line(name))
		}
	}
	for _, line := range []struct {
		n    int64
		text string
	}{
		{s.Counted, "refused requests without an event of their own"},
		{s.Unknown, "requests with an unknown outcome: their session was killed"},
		{int64(s.Open), "requests without an outcome: in progress, or of a session that was killed"},
		{int64(s.Spilled), "rows in a spill file, until the log can be written"},
	} {
		if line.n > 0 {
			fmt.Fprintf(w, "note\t%d\t%s\n", line.n, line.text)
		}
	}
	return w.Flush()
}

// byCount returns the names of counts, the most frequent first.
func byCount(counts map[string]int64) []string {
	return slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
}
