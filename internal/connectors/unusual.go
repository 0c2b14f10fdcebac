package connectors

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/reach"
)

// Oddity is something that a connector grants and few need, so that a person should see it first.
type Oddity struct {
	What  string   // in words
	Names []string // of operations, hosts or fields, each once
}

// Text returns the oddity with how many there are, and as many of the names as about room bytes take.
func (o Oddity) Text(room int) string {
	return fmt.Sprintf("%s (%d): %s", o.What, len(o.Names), some(o.Names, room))
}

// mayIssue is what operations do for which spec.Operation.MayIssueCredentials is true.
const mayIssue = "credentials that these issue reach the agent, as no session can redact what it does not know"

// Unusual returns what is unusual about a connector, what may do most harm first. There are at most fifteen.
func Unusual(c *spec.Connector) []Oddity {
	found := map[string][]string{}
	add := func(what, name string, when bool) {
		if when && !slices.Contains(found[what], name) {
			found[what] = append(found[what], name)
		}
	}
	for _, t := range c.Tools {
		for _, op := range t.Operations {
			asks := op.Approval == spec.ApprovalRequired // a condition may hold for no request
			gives := op.Injection != nil || op.Method != "GET" && op.Method != "HEAD"
			reaches := op.Upgrade != "" || reach.Inside(op.Name, op.Path.String()) || gives && reach.Below(endOf(op))
			add(mayIssue, op.Name, op.MayIssueCredentials())
			add(oddDeletes, op.Name, op.Method == "DELETE" && !asks)
			add(oddReaches, op.Name, reaches && !asks)
			add(oddOpen, op.Name, gives && beginsOpen(op.Path.String()))
			add(oddMethods, op.Name, op.Method == "" || op.Method == "*")
			add(oddUpgrades, op.Name, op.Upgrade != "")
			add(oddPacked, op.Name, op.Packed)
			add(oddRanges, op.Name, op.Ranges)
			for _, h := range op.Hosts {
				name := strings.TrimSuffix(h.String(), ":443")
				add(oddPaths, name, op.Path.String() == "")
				add(oddPatterns, name, h.Wildcard && op.Injection != nil)
				add(oddWildcards, name, h.Wildcard && op.Injection == nil)
				add(oddPorts, name, h.Port != 443 && h.Port != 80)
				add(oddCleartext, name, h.Port == 80)
				add(oddHosts, name, op.Injection != nil)
			}
		}
	}
	if len(found[oddHosts]) == 1 {
		delete(found, oddHosts)
	}
	if fields := requestFields(c); len(fields) > 0 {
		found[oddFields] = fields
	}
	var list []Oddity
	for _, what := range oddities {
		if len(found[what]) > 0 {
			list = append(list, Oddity{what, found[what]})
		}
	}
	return list
}

// endOf returns the path of an operation. A last variable that may have an escaped slash is one for any number of
// segments there: servers that read the escape as a slash have more of them.
func endOf(op *spec.Operation) string {
	path := op.Path.String()
	for _, name := range op.Path.Slashed() {
		if before, ok := strings.CutSuffix(path, "/{"+name+"}"); ok {
			return before + "/{" + name + "...}"
		}
	}
	return path
}

const (
	oddDeletes   = "deletes without asking you"
	oddReaches   = "exec, attach, proxy or forwarding without asking you"
	oddMethods   = "any method"
	oddPaths     = "any path of hosts"
	oddOpen      = "paths that begin with anything"
	oddPatterns  = "the credential for any host of a pattern"
	oddHosts     = "the credential for several hosts"
	oddWildcards = "any host of a pattern"
	oddCleartext = "without TLS"
	oddPorts     = "ports other than 443"
	oddUpgrades  = "upgrades of connections"
	oddPacked    = "responses that are not searched for secrets"
	oddRanges    = "parts of responses"
	oddFields    = "further request fields"
)

// oddities are in the order in which they are shown.
var oddities = []string{mayIssue, oddPatterns, oddDeletes, oddReaches, oddMethods, oddPaths, oddOpen,
	oddCleartext, oddPorts, oddHosts, oddWildcards, oddUpgrades, oddPacked, oddRanges, oddFields}

// beginsOpen reports whether the first segment of a path is a variable, and nothing behind it bounds the path: it has
// no word, or any number of segments at its end.
func beginsOpen(path string) bool {
	if !strings.HasPrefix(path, "/{") || path == "/{$}" {
		return false
	}
	for segment := range strings.SplitSeq(path[1:], "/") {
		if !strings.HasPrefix(segment, "{") {
			return strings.HasSuffix(path, "...}")
		}
	}
	return true
}

// some returns names, as many as about room bytes take, and how many more there are.
func some(names []string, room int) string {
	var b strings.Builder
	for i, name := range names {
		if i > 0 && b.Len()+len(name) > room {
			fmt.Fprintf(&b, " and %d more", len(names)-i)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(name)
	}
	return b.String()
}
