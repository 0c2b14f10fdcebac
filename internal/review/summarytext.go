package review

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/termsafe"
)

// Print prints the summary for a person. columns is the width of the terminal that out is; 0: it is none.
func (s Summary) Print(out io.Writer, columns int) error {
	if len(s.Uses) > 0 {
		if err := PrintUses(out, s.Uses, columns); err != nil {
			return err
		}
		fmt.Fprintln(out)
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
		{int64(s.Spilled), "rows in the journal of a session, until the log can be written"},
	} {
		if line.n > 0 {
			fmt.Fprintf(w, "note\t%d\t%s\n", line.n, line.text)
		}
	}
	fmt.Fprintf(w, "record\t%s\n", termsafe.Line(s.Record.Text()))
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(console.Folding(out, columns), text.String())
	return err
}

// byCount returns the names of counts, the most frequent first.
func byCount(counts map[string]int64) []string {
	return slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
}
