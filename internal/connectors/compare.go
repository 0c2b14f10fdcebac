package connectors

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/search"
)

// ConflictWith returns why connectors cannot be used together with what is installed, which can be used alone.
func ConflictWith(installed map[string]*spec.Connector, fresh []*spec.Connector) error {
	together := maps.Clone(installed)
	for _, c := range fresh {
		if old := together[string(c.FQN)]; old == nil || spec.CompareVersions(old.Version, c.Version) < 0 {
			together[string(c.FQN)] = c
		}
	}
	_, before := spec.NewIndex(slices.Collect(maps.Values(installed)))
	_, after := spec.NewIndex(slices.Collect(maps.Values(together)))
	if before == nil {
		return after
	}
	return nil
}

// PrintChanges prints what a version grants more and less than another one: a credential that is bound to the connector
// is used for what is added, too. Of long lists, the names that about room bytes take are printed; 0: all.
func PrintChanges(out io.Writer, old, c *spec.Connector, room int) {
	note := ""
	if spec.CompareVersions(c.Version, old.Version) < 0 {
		note = ", which is newer"
	}
	fmt.Fprintf(out, "\ncompared with the installed version %s%s:\n", old.Version, note)
	if !printDifferences(out, old, c, room) {
		fmt.Fprintln(out, "  grants the same")
	}
}

// GrantsSame reports whether two versions grant the same.
func GrantsSame(old, c *spec.Connector) bool { return !printDifferences(io.Discard, old, c, 0) }

// printDifferences prints in what two versions differ, and reports whether they do.
func printDifferences(out io.Writer, old, c *spec.Connector, room int) bool {
	was, is := DescribeConnector(old), DescribeConnector(c)
	d := changesPrinter{out: out, room: room}
	d.printApprovals(was, is)
	d.print("grants more", is, was)
	d.printRequests(was, is)
	d.print("no longer grants", was, is)
	if before, now := credentialText(old), credentialText(c); before != now {
		d.line("another credential", fmt.Sprintf("%s, not %s", now, before))
	}
	d.printMeters(old, c)
	d.printLogin(old, c)
	return d.any
}

// changesPrinter prints the differences of two versions.
type changesPrinter struct {
	out  io.Writer
	room int // of a list, in bytes; 0: any
	any  bool
}

// list prints a list, and how long it is where not all of it is printed.
func (d *changesPrinter) list(name string, all []string) {
	text := strings.Join(all, ", ")
	if d.room > 0 && len(text) > d.room {
		name, text = fmt.Sprintf("%s (%d)", name, len(all)), some(all, d.room)
	}
	d.line(name, text)
}

func (d *changesPrinter) line(name, text string) {
	d.any = true
	fmt.Fprintf(d.out, "  %s: %s\n", name, text)
}

// print prints what one version grants and the other does not, an operation with other conditions included.
func (d *changesPrinter) print(name string, one, other ConnectorJSON) {
	had, names := map[string]bool{}, map[string]bool{}
	for _, op := range other.Operations {
		had[grantOf(op)], names[op.Tool+" "+op.Operation] = true, true
	}
	var operations, changed []string
	for _, op := range fiercest(one.Operations) {
		switch {
		case had[grantOf(op)]:
		case names[op.Tool+" "+op.Operation]:
			changed = append(changed, op.Operation)
		default:
			operations = append(operations, op.Operation)
		}
	}
	var hosts, variables []string
	for _, h := range one.Hosts {
		if !slices.Contains(other.Hosts, h) {
			hosts = append(hosts, strings.TrimSuffix(h, ":443"))
		}
	}
	for _, p := range one.Placeholders {
		if !slices.Contains(other.Placeholders, p) {
			variables = append(variables, p.Env)
		}
	}
	for _, part := range []struct {
		what string
		list []string
	}{{"hosts", hosts}, {"operations", operations}, {"placeholders", variables}} {
		if len(part.list) > 0 {
			d.list(name+", "+part.what, part.list)
		}
	}
	if len(changed) > 0 && name == "grants more" {
		d.list("changed operations", changed)
	}
}

// printRequests prints the operations whose requests may have further names in the query, or another body.
func (d *changesPrinter) printRequests(was, is ConnectorJSON) {
	before := map[string]operationJSON{}
	for _, op := range was.Operations {
		before[op.Tool+" "+op.Operation] = op
	}
	var names, bodies []string
	for _, now := range is.Operations {
		old, known := before[now.Tool+" "+now.Operation]
		if !known {
			continue
		}
		var further []string
		for _, p := range now.Parameters {
			isSame := func(q parameterJSON) bool { return p.text() == q.text() }
			if old.Query == now.Query && !slices.ContainsFunc(old.Parameters, isSame) {
				further = append(further, p.Name)
			}
		}
		if len(further) > 0 {
			names = append(names, now.Operation+" "+strings.Join(further, "+"))
		}
		if old.Body != now.Body || old.ContentType != now.ContentType {
			bodies = append(bodies, now.Operation)
		}
	}
	if len(names) > 0 {
		d.list("grants more, names in the query", names)
	}
	if len(bodies) > 0 {
		d.list("another kind of body", bodies)
	}
}

// text returns the parameter as text to compare.
func (p parameterJSON) text() string {
	text, err := json.Marshal(p)
	if err != nil {
		return err.Error() + p.Name
	}
	return string(text)
}

// fiercest returns operations with those that delete first, and those that read last: a list may be cut.
func fiercest(operations []operationJSON) []operationJSON {
	rank := []string{search.Deletes, search.Writes, search.Reads}
	return slices.SortedStableFunc(slices.Values(operations), func(a, b operationJSON) int {
		return slices.Index(rank, search.Does(a.Method)) - slices.Index(rank, search.Does(b.Method))
	})
}

// printApprovals prints which operations may be used with less, and which only with more approvals than before.
func (d *changesPrinter) printApprovals(was, is ConnectorJSON) {
	before := map[string]operationJSON{}
	for _, op := range was.Operations {
		before[op.Tool+" "+op.Operation] = op
	}
	var less, more []string
	for _, now := range is.Operations {
		old, known := before[now.Tool+" "+now.Operation]
		switch {
		case !known:
		case !now.asksWhenever(old):
			less = append(less, now.Operation)
		case !old.asksWhenever(now):
			more = append(more, now.Operation)
		}
	}
	if len(less) > 0 {
		d.list("asks less, or about other requests", less)
	}
	if len(more) > 0 {
		d.list("asks more", more)
	}
}

// asksWhenever reports whether j asks for an approval whenever other does.
func (j operationJSON) asksWhenever(other operationJSON) bool {
	switch {
	case j.Approval == spec.ApprovalRequired, other.Approval == spec.ApprovalNone:
		return true
	case j.Approval != other.Approval:
		return false
	}
	for name, values := range j.ApprovalWhen { // all of which must hold
		held := other.ApprovalWhen[name]
		if len(held) == 0 || slices.ContainsFunc(held, func(v string) bool { return !slices.Contains(values, v) }) {
			return false
		}
	}
	return true
}

// grantOf returns what an operation grants, as text to compare.
func grantOf(op operationJSON) string {
	op.Summary = ""
	text, err := json.Marshal(op)
	if err != nil {
		return err.Error() + op.Operation // strings and booleans can be marshalled
	}
	return string(text)
}
