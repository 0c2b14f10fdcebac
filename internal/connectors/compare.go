package connectors

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/spec"
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
// is used for what is added, too.
func PrintChanges(out io.Writer, old, c *spec.Connector) {
	fmt.Fprintf(out, "\ncompared with the installed version %s:\n", old.Version)
	if !printDifferences(out, old, c) {
		fmt.Fprintln(out, "  grants the same")
	}
}

// GrantsSame reports whether two versions grant the same.
func GrantsSame(old, c *spec.Connector) bool { return !printDifferences(io.Discard, old, c) }

// printDifferences prints in what two versions differ, and reports whether they do.
func printDifferences(out io.Writer, old, c *spec.Connector) bool {
	was, is := DescribeConnector(old), DescribeConnector(c)
	d := changesPrinter{out: out}
	d.print("grants more", is, was)
	d.print("no longer grants", was, is)
	d.printApprovals(was, is)
	if before, now := credentialText(old), credentialText(c); before != now {
		d.line("another credential", fmt.Sprintf("%s, not %s", now, before))
	}
	d.printLogin(old, c)
	return d.any
}

// changesPrinter prints the differences of two versions.
type changesPrinter struct {
	out io.Writer
	any bool
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
	for _, op := range one.Operations {
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
			d.line(name+", "+part.what, strings.Join(part.list, ", "))
		}
	}
	if len(changed) > 0 && name == "grants more" {
		d.line("changed operations", strings.Join(changed, ", "))
	}
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
		d.line("asks less, or about other requests", strings.Join(less, ", "))
	}
	if len(more) > 0 {
		d.line("asks more", strings.Join(more, ", "))
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
