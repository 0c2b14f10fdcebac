package connectors

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/catalog"
	"github.com/ALRubinger/aileron/spec/store"
)

// FewOperations is how many operations are listed before a question. Of more, the question would be all that a
// terminal shows.
const FewOperations = 12

// CountOperations returns how many operations connectors have.
func CountOperations(all []*spec.Connector) (n int) {
	for _, c := range all {
		for _, t := range c.Tools {
			n += len(t.Operations)
		}
	}
	return n
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

// SummariseConnector prints what a connector grants, in a few lines of at most width columns: operations that only read
// are counted, and the others are named.
func SummariseConnector(out io.Writer, c *spec.Connector, by Publisher, width int) {
	fmt.Fprintf(out, "%s %s\n", knownName(c), c.Version)
	line := func(name, text string) {
		if text == "" {
			return
		}
		for _, part := range console.Wrapped(text, max(width-14, 20)) {
			fmt.Fprintf(out, "  %-11s %s\n", name, part)
			name = ""
		}
	}
	if !IsOfCatalog(c) {
		line("hash", c.Hash)
		line("publisher", by.Text())
		line("new key", by.firstKey())
	}
	var hosts, sets []string
	for _, h := range c.Manifest.Hosts {
		hosts = append(hosts, strings.TrimSuffix(h.String(), ":443"))
	}
	for _, p := range c.Placeholders {
		sets = append(sets, p.Env+"="+p.Value)
	}
	line("hosts", strings.Join(hosts, ", "))
	line("credential", credentialText(c))
	for _, fact := range loginFacts(c) {
		line(fact.name, fact.text)
	}
	line("placeholder", strings.Join(sets, ", "))
	line("fields", requestFields(c))
	o := sortOperations(c)
	if o.reading > 0 {
		line("reads", hint.Plural(o.reading, "operation")+" with GET or HEAD")
	}
	if o.querying > 0 {
		line("queries", hint.Plural(o.querying, "operation")+" for queries of GraphQL")
	}
	if len(o.writing) > 0 {
		line("writes", fmt.Sprintf("%s with %s: %s", hint.Plural(len(o.writing), "operation"),
			strings.Join(o.methods, ", "), strings.Join(o.writing, ", ")))
	}
	line("asks you", strings.Join(o.asking, ", "))
	line("any path", strings.Join(o.unbounded, ", "))
	line("unsearched", strings.Join(o.packed, ", "))
	if len(o.issuing) > 0 {
		line("warning", mayIssue+strings.Join(o.issuing, ", "))
	}
	line("upgrades", strings.Join(o.upgrading, ", "))
}

// mayIssue is the warning before the names of operations for which spec.Operation.MayIssueCredentials is true.
const mayIssue = "credentials that these issue reach the agent, as no session can redact what it does not know: "

// sorted is the operations of a connector by what they let a request do.
type sorted struct {
	reading   int      // how many
	querying  int      // how many of the others allow nothing but queries of GraphQL
	writing   []string // with another method than GET and HEAD, or any
	asking    []string // whose requests all wait for an approval
	methods   []string // of those
	unbounded []string // hosts that are allowed with every path
	packed    []string // whose responses are not searched for secrets
	issuing   []string // whose responses may have secrets that the session does not know
	upgrading []string
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
			switch {
			case op.Method == "GET" || op.Method == "HEAD":
				s.reading++
			case op.GraphQL != nil && op.GraphQL.Type == "query" && len(op.GraphQL.Hashes) == 0:
				s.querying++
			default:
				s.writing = append(s.writing, op.Name)
				s.methods = add(s.methods, strings.Replace(AnyMethod(op.Method), "*", "any method", 1))
			}
			if op.Approval == spec.ApprovalRequired {
				s.asking = append(s.asking, op.Name)
			}
			if op.Packed {
				s.packed = append(s.packed, op.Name)
			}
			if op.MayIssueCredentials() {
				s.issuing = append(s.issuing, op.Name)
			}
			if op.Upgrade != "" {
				s.upgrading = append(s.upgrading, op.Name)
			}
			for _, h := range op.Hosts {
				if op.Path.String() == "" {
					s.unbounded = add(s.unbounded, strings.TrimSuffix(h.String(), ":443"))
				}
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
