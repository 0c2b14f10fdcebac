package propose

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/hint"
)

// maxLines is how many entries of More and Less are printed.
const maxLines = 200

// Print prints the proposal for a terminal of so many columns; 0 is none.
func (p *Proposal) Print(out io.Writer, columns int) error {
	table := console.Table{Heads: []string{"OPERATION", "METHOD", "PATH", "QUERY", "APPROVAL", "REQUESTS", "ROWS"}}
	for _, op := range p.Operations {
		query := strings.Join(op.Query, ",")
		if op.AnyQuery {
			query = "any"
		}
		requests := strconv.Itoa(op.Requests)
		if op.Refused > 0 {
			requests += " (" + strconv.Itoa(op.Refused) + " refused)"
		}
		path := op.Host + cmp.Or(op.Path, " (every path)")
		table.Rows = append(table.Rows, []string{op.Name, op.Method, path, query, op.Approval, requests,
			strings.Join(op.Rows, ",")})
	}
	fmt.Fprintf(out, "connector  %s %s, of %s\n", p.FQN, p.Version, hint.Listed(p.Sessions))
	if len(table.Rows) == 0 {
		fmt.Fprintln(out, "nothing to propose: the sessions sent nothing that no installed connector allows")
	} else if err := table.Print(out, columns); err != nil {
		return err
	}
	for _, op := range p.Operations {
		if op.Path == "" {
			fmt.Fprintf(out, "EVERY PATH of %s passes with %s: no template can have some that were read; approval: %s\n",
				op.Host, op.Method, op.Approval)
		}
	}
	for _, o := range p.Others {
		if o.Installed {
			fmt.Fprintf(out, "left to   %s, which names %s: %s; allow one with: aileron allow %s\n", o.Connector, o.Host,
				hint.Plural(o.Requests, "request"), o.Row)
			continue
		}
		fmt.Fprintf(out, "or        the catalogue's %s for %s: aileron connector install %[1]s\n", o.Connector, o.Host)
	}
	if p.Covered > 0 {
		fmt.Fprintf(out, "covered   %s, by installed connectors\n", hint.Plural(p.Covered, "request"))
	}
	if p.LeftOut > 0 {
		fmt.Fprintf(out, "left out  %s: no template has their path, or there was no room for more operations\n",
			hint.Plural(p.LeftOut, "request"))
	}
	printList(out, "more than what is installed:", p.More)
	printList(out, "installed, and not used by these sessions:", p.Less)
	return nil
}

// printList prints at most maxLines lines of a list.
func printList(out io.Writer, title string, list []string) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintf(out, "\n%s\n", title)
	for _, line := range list[:min(len(list), maxLines)] {
		fmt.Fprintln(out, "  "+line)
	}
	if len(list) > maxLines {
		fmt.Fprintf(out, "  and %d more\n", len(list)-maxLines)
	}
}
