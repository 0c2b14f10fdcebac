package connectors

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/catalog"
	"github.com/ALRubinger/aileron/spec/search"
	"github.com/ALRubinger/aileron/spec/store"
)

// fewLines is how many lines of what a connector grants are shown whole before a question. Of more, the question would
// be all that a terminal shows.
const fewLines = 12

// isLong reports whether what a connector grants is summarised before a question.
func isLong(c *spec.Connector) bool {
	lines := 0
	for _, t := range c.Tools {
		for _, op := range t.Operations {
			lines += len(op.Hosts)
		}
	}
	others := len(c.Placeholders) + len(requestFields(c)) + len(c.Manifest.Hosts)
	return lines > fewLines || others > fewLines || len(credentialText(c)) > 4*80
}

// knownName returns the short name of a connector of the catalogue with the same content, else the FQN.
func knownName(c *spec.Connector) string {
	if IsOfCatalog(c) {
		name, _ := catalog.Name(c.FQN)
		return name
	}
	return string(c.FQN)
}

// IsOfCatalog reports whether a connector is, by its content, one of the catalogue.
func IsOfCatalog(c *spec.Connector) bool { return IsCatalogHash(c.FQN, c.Hash) }

// IsCatalogHash reports whether the catalogue has a connector of that name and content.
func IsCatalogHash(fqn spec.FQN, hash string) bool {
	entry, ok := catalog.Find(string(fqn))
	if !ok {
		return false
	}
	own, err := store.ReadFS(entry.Files)
	return err == nil && own.Hash == hash
}

// SummariseConnector prints what a connector grants, in a screen of lines of at most width columns: what is unusual
// first, with how much of it there is, then hosts, the credential, and how many operations read, write and delete, by
// group. Every list is bounded, so that nothing can push another thing off the screen. The connector of which old is
// the installed version is compared with that; old may be nil.
func SummariseConnector(out io.Writer, c, old *spec.Connector, by Publisher, width int) {
	fmt.Fprintf(out, "%s %s\n", knownName(c), c.Version)
	room := max(width-14, 20)
	line := func(name, text string) {
		if text == "" {
			return
		}
		lines := console.Wrapped(text, room)
		if most := 3; len(lines) > most {
			lines = append(lines[:most], "… (the rest is listed with all operations)")
		}
		for _, part := range lines {
			fmt.Fprintf(out, "  %-11s %s\n", name, part)
			name = ""
		}
	}
	label := "unusual"
	for _, odd := range Unusual(c) {
		line(label, odd.Text(2*room-20-len(odd.What)))
		label = ""
	}
	if !IsOfCatalog(c) {
		line("hash", c.Hash)
		line("publisher", by.Text())
		line("new key", by.newKey())
	}
	var hosts, sets []string
	for _, h := range c.Manifest.Hosts {
		hosts = append(hosts, strings.TrimSuffix(h.String(), ":443"))
	}
	for _, p := range c.Placeholders {
		sets = append(sets, p.Env+"="+p.Value)
	}
	line("hosts", some(hosts, 2*room))
	line("credential", credentialText(c))
	for _, fact := range loginFacts(c) {
		line(fact.name, fact.text)
	}
	line("placeholder", some(sets, room))
	o := sortOperations(c)
	if o.reading > 0 {
		line("reads", hint.Plural(o.reading, "operation")+" with "+strings.Join(o.readMethods, ", "))
	}
	if o.querying > 0 {
		line("queries", hint.Plural(o.querying, "operation")+" for queries of GraphQL")
	}
	for _, part := range []struct {
		name    string
		of      []string
		methods []string
	}{{"writes", o.writing, o.methods}, {"deletes", o.deleting, []string{"DELETE"}}} {
		if len(part.of) > 0 {
			line(part.name, fmt.Sprintf("%s with %s: %s", hint.Plural(len(part.of), "operation"),
				strings.Join(part.methods, ", "), some(part.of, room)))
		}
	}
	if len(o.asking) > 0 {
		line("asks you", fmt.Sprintf("%d: %s", len(o.asking), some(o.asking, room)))
	}
	if len(o.sometimes) > 0 {
		line("asks", fmt.Sprintf("sometimes, as its conditions tell, %d: %s", len(o.sometimes), some(o.sometimes, room)))
	}
	line("groups", groupsText(c, 2*room))
	if old != nil {
		PrintChanges(out, old, c, room)
	}
}

// groupsText returns how many operations of each group read, write and delete, those with the most that do not read
// first; "" if there is one group, or one for each operation.
func groupsText(c *spec.Connector, room int) string {
	var operations []*spec.Operation
	for _, t := range c.Tools {
		operations = append(operations, t.Operations...)
	}
	groups := search.Groups(operations)
	if len(groups) < 2 || len(groups) == len(operations) {
		return ""
	}
	type counted struct {
		text    string
		changes int
	}
	var all []counted
	for _, g := range groups {
		reads, writes, deletes := g.Count()
		all = append(all, counted{fmt.Sprintf("%s %d/%d/%d", g.Name, reads, writes, deletes), writes + deletes})
	}
	slices.SortStableFunc(all, func(a, b counted) int { return cmp.Compare(b.changes, a.changes) })
	var names []string
	for _, g := range all {
		names = append(names, g.text)
	}
	return fmt.Sprintf("%d, as read/write/delete: %s", len(groups), some(names, room))
}

// sorted is the operations of a connector by what they let a request do.
type sorted struct {
	reading     int // how many
	readMethods []string
	querying    int      // how many of the others allow nothing but queries of GraphQL
	writing     []string // with another method, or any
	methods     []string // of those
	deleting    []string
	asking      []string // whose requests all wait for an approval
	sometimes   []string // of whose requests some do
}

func sortOperations(c *spec.Connector) (s sorted) {
	add := func(list []string, text string) []string {
		if slices.Contains(list, text) {
			return list
		}
		return append(list, text)
	}
	for _, t := range c.Tools {
		for _, op := range t.Operations {
			switch does := search.Does(op.Method); {
			case does == search.Reads:
				s.reading++
				s.readMethods = add(s.readMethods, op.Method)
			case op.GraphQL != nil && op.GraphQL.Type == "query" && len(op.GraphQL.Hashes) == 0:
				s.querying++
			case does == search.Deletes:
				s.deleting = append(s.deleting, op.Name)
			default:
				s.writing = append(s.writing, op.Name)
				s.methods = add(s.methods, strings.Replace(AnyMethod(op.Method), "*", "any method", 1))
			}
			switch op.Approval {
			case spec.ApprovalRequired:
				s.asking = append(s.asking, op.Name)
			case spec.ApprovalWhen:
				s.sometimes = append(s.sometimes, op.Name)
			}
		}
	}
	return s
}

// credentialText returns which credential a connector needs. Its spaces are single ones: with many of them, what a
// publisher wrote could continue in the next line of a terminal, and look like a line of aileron's.
func credentialText(c *spec.Connector) string {
	switch need := c.Credential(); {
	case need == nil:
		return "none"
	case need.Scope == "":
		return string(need.Kind)
	default:
		return fmt.Sprintf("%s: %s", need.Kind, failure.AsLine(need.Scope))
	}
}
