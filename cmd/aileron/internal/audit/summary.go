package audit

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/review"
	"github.com/ALRubinger/aileron/internal/termsafe"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/catalog"
)

// summaryJSON is what audit summary prints.
type summaryJSON struct {
	audit.Summary
	Uses   []review.Use `json:"uses"`
	Record recordJSON   `json:"record"`
}

// recordJSON is whether the log was found complete and unchanged.
type recordJSON struct {
	Checked  bool   `json:"checked"` // false: it is too long for a summary
	Verifies bool   `json:"verifies"`
	Rows     int64  `json:"rows,omitempty"`
	Head     string `json:"head,omitempty"`
	Why      string `json:"why,omitempty"`
}

func newAuditSummaryCommand(a *cli.App) *cobra.Command {
	opts := &auditOptions{}
	cmd := &cobra.Command{
		Use:   "summary",
		Short: "Show who used which credential, for what, what was refused, and whether the record verifies",
		Example: "  aileron audit summary --since 24h\n" +
			"  aileron audit summary --session 01J… --json",
		Args: cli.UsageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			filter, err := opts.build(a)
			if err != nil {
				return err
			}
			return a.ReadAudit(func(l *audit.Log) error {
				s, err := summarize(cmd.Context(), l, filter)
				if err != nil {
					return err
				}
				if a.JSON {
					return a.PrintJSON(s)
				}
				return printSummary(a, s)
			})
		},
	}
	opts.register(cmd)
	return cmd
}

// summarize reads the selected rows once.
func summarize(ctx context.Context, l *audit.Log, filter audit.Filter) (s summaryJSON, err error) {
	groups, err := l.Groups(ctx, filter, audit.GroupBy{Intents: true})
	if err != nil {
		return s, err
	}
	if s.Summary, err = l.SummaryOf(ctx, filter, groups); err != nil {
		return s, err
	}
	agents := review.Agents{Open: func() (*audit.Log, error) { return l, nil }}
	s.Uses = append([]review.Use{}, review.Uses(ctx, groups, &agents)...) // [] and not null
	s.Record, err = checkRecord(ctx, l)
	return s, err
}

// maxChecked is how many rows a summary verifies: about two seconds of work.
const maxChecked = 200_000

// checkRecord verifies a log that is not too long.
func checkRecord(ctx context.Context, l *audit.Log) (recordJSON, error) {
	newest, err := l.List(ctx, audit.Filter{Limit: 1, Newest: true})
	if err != nil || len(newest) == 1 && newest[0].Seq > maxChecked {
		return recordJSON{}, err
	}
	report, err := l.Verify(ctx)
	return recordJSON{Checked: true, Verifies: report.OK, Rows: report.Rows, Head: report.Head, Why: report.Why}, err
}

// text returns the record's state for a person.
func (r recordJSON) text() string {
	switch {
	case !r.Checked:
		return "not checked, because it is long: aileron audit verify"
	case !r.Verifies:
		return "does NOT verify: " + r.Why + "; see: aileron audit verify"
	}
	return fmt.Sprintf("verifies, all %d rows; head %.12s…, see: aileron audit verify", r.Rows, r.Head)
}

func printSummary(a *cli.App, s summaryJSON) error {
	if len(s.Uses) > 0 {
		if err := PrintUses(a.Stdout, s.Uses, a.OutputColumns()); err != nil {
			return err
		}
		fmt.Fprintln(a.Stdout)
	}
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
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
	fmt.Fprintf(w, "record\t%s\n", termsafe.Line(s.Record.text()))
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(console.Folding(a.Stdout, a.OutputColumns()), text.String())
	return err
}

// PrintUses prints a line for each credential, for a terminal of so many columns; 0 is none.
func PrintUses(out io.Writer, uses []review.Use, columns int) error {
	t := console.Table{Heads: []string{"binding", "connectors", "sessions", "agents", "sent", "refused", "first", "last",
		"for"}}
	for _, u := range uses {
		t.Rows = append(t.Rows, []string{word(cmp.Or(u.Binding, "(none)")),
			termsafe.Line(some(shortNames(u.Connectors), 3)), strconv.Itoa(len(u.Sessions)),
			termsafe.Line(some(u.Agents, 3)), strconv.FormatInt(u.Sent, 10), strconv.FormatInt(u.Refused, 10),
			momentText(u.First), momentText(u.Last), termsafe.Line(useText(u))})
	}
	return t.Print(out, columns)
}

func momentText(t time.Time) string { return t.Local().Format(momentFormat) }

// momentFormat is a time with its date and zone.
const momentFormat = "2006-01-02T15:04:05Z07:00"

// useText returns the operations of what was sent and the reasons of what was refused.
func useText(u review.Use) string {
	var parts []string
	for _, o := range u.Operations {
		name := cmp.Or(o.Operation, "passthrough")
		parts = append(parts, fmt.Sprintf("%s %d", cut(name, 80), o.Requests))
	}
	text := some(parts, 4)
	parts = nil
	for _, r := range u.Reasons {
		parts = append(parts, fmt.Sprintf("%s %d", cut(cmp.Or(r.Name, "no reason"), 80), r.Requests))
	}
	if len(parts) > 0 {
		text = strings.TrimPrefix(text+"; refused: "+some(parts, 3), "-; ")
	}
	if u.Unknown > 0 {
		text += fmt.Sprintf("; unknown outcomes: %d", u.Unknown)
	}
	return text
}

// some returns the first names as a list, and how many more there are; "-" if there are none.
func some(names []string, most int) string {
	if len(names) == 0 {
		return "-"
	}
	text := strings.Join(names[:min(len(names), most)], ", ")
	if len(names) > most {
		text += fmt.Sprintf(", +%d", len(names)-most)
	}
	return text
}

// shortNames returns the short names of connectors.
func shortNames(fqns []string) (names []string) {
	for _, fqn := range fqns {
		name, known := catalog.Name(spec.FQN(fqn))
		if !known {
			name = fqn[strings.LastIndexByte(fqn, '/')+1:]
		}
		names = append(names, name)
	}
	return names
}

// byCount returns the names of counts, the most frequent first.
func byCount(counts map[string]int64) []string {
	return slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
}
