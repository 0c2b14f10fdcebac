package postgres

import (
	"errors"
	"fmt"
	"io"

	"github.com/ALRubinger/aileron/internal/hint"
)

// Print prints the verdict for a person, a line for each origin and each finding.
func (v Verdict) Print(out io.Writer) error {
	for _, o := range v.Origins {
		state := "ok"
		if !o.OK {
			state = "broken"
		}
		fmt.Fprintf(out, "%s  %s  %d rows, %d to %d  %s\n", state, o.Origin, o.Rows, o.First, o.Last, o.LastTS)
		for _, f := range o.Findings {
			fmt.Fprintf(out, "  broken   row %d: %s\n", f.Seq, f.Why)
		}
		if o.More {
			fmt.Fprintf(out, "  broken   and others\n")
		}
		for _, g := range o.Gaps {
			fmt.Fprintf(out, "  gap      rows %d to %d: %s, stated %s\n", g.First, g.Last, g.Reason, g.Stated)
		}
		for _, s := range o.Open {
			fmt.Fprintf(out, "  no end   session %s, last row %d at %s\n", s.ID, s.Last, s.LastTS)
		}
		fmt.Fprintf(out, "  signed   up to row %d; newest batch %s, by %s\n", o.Signed, o.Shipped, o.Role)
	}
	if _, err := fmt.Fprintf(out, "%d origins\n", len(v.Origins)); err != nil || v.OK {
		return err
	}
	return hint.New(errors.New("verify the database: not all that was shipped verifies"),
		"docs/audit-shipping.md explains each finding; the logs of the hosts are the authority")
}
