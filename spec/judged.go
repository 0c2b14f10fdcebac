package spec

import (
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/spec/body"
)

// JudgesBody reports whether the operation decides by a request's body, too: the proxy reads it before it sends
// anything.
func (o *Operation) JudgesBody() bool { return o.MCP != nil || o.GraphQL != nil }

// BodyGrants returns what the operation allows a body to ask for, in the words of a denial.
func (o *Operation) BodyGrants() []string {
	switch {
	case o.MCP != nil:
		return o.MCP.Grants()
	case o.GraphQL != nil:
		return o.GraphQL.Grants()
	}
	return nil
}

// BodyGrants returns what a body of the request may ask for, in the words of a denial; nil: bodies are not judged.
func (m Match) BodyGrants() []string {
	granted := m.Operation.BodyGrants()
	for _, other := range m.Others {
		granted = append(granted, other.BodyGrants()...)
	}
	return granted
}

// checkJudged checks what an operation that judges bodies, by the key, needs beside it. No server must find in the
// query what the body has to say. Its method is one of those given.
func (op *Operation) checkJudged(n node, key string, methods ...string) {
	if !slices.Contains(methods, op.Method) {
		n.diags.add(n.at(key), "it needs the method %s", strings.Join(methods, " or "))
	}
	if op.Path.IsZero() {
		n.diags.add(n.at(key), "it needs a path")
	}
	if op.Body != "" && op.Body != body.JSON || op.ContentType != "" {
		n.diags.add(n.at(key), "what it judges is application/json")
	}
	if op.Upgrade != "" {
		n.diags.add(n.at(key), "what is sent after an upgrade is not judged")
	}
	if query, _ := n.o.Get("query"); query == "any" {
		n.diags.add(n.at("query"), "it is \"any\", and %s needs \"declared\"", key)
	}
	op.QueryDeclaredOnly = true
}

// checkAllJudge records operations that judge no body of requests of which another one judges it: that one would decide
// nothing. So would it if a server took a path with or without its last slash, in another case, or with a slash for one
// that is escaped, for the same one: also for several of these at once.
func (c *Connector) checkAllJudge(top node) {
	judged := map[HostPattern][]*Operation{} // by each pattern, and by the wildcard that covers it
	for _, t := range c.Tools {
		for _, op := range t.Operations {
			if !op.JudgesBody() {
				continue
			}
			for _, h := range op.Hosts {
				judged[h] = append(judged[h], op)
				if parent, ok := h.Parent(); ok && !slices.Contains(judged[parent], op) {
					judged[parent] = append(judged[parent], op)
				}
			}
		}
	}
	if len(judged) == 0 {
		return
	}
	for ti, t := range c.Tools {
		for oi, op := range t.Operations {
			if op.JudgesBody() {
				continue
			}
			if by := op.evades(judged); by != nil {
				top.diags.add(top.item("tools", ti)+within("operations", oi), "it allows every body of the requests of %s, which "+
					"judges them: its path is the same to a server that ignores case or a last slash, or reads an escaped "+
					"slash as one", by.Name)
			}
		}
	}
}

// evades returns the operation whose requests op allows, too, if a server ignores a path's case and last slash, and
// reads an escaped slash as one.
func (op *Operation) evades(judged map[HostPattern][]*Operation) *Operation {
	for _, h := range op.Hosts {
		patterns := []HostPattern{h}
		if parent, ok := h.Parent(); ok {
			patterns = append(patterns, parent)
		}
		for _, pattern := range patterns {
			for _, by := range judged[pattern] {
				if by.reads(op) && by.Path.Resembles(op.Path) && by.overlaps(h) {
					return by
				}
			}
		}
	}
	return nil
}

// reads reports whether a server may find in some request of other what the operation judges: a document of GraphQL may
// stand in the query of a GET.
func (op *Operation) reads(other *Operation) bool {
	return other.acceptsMethod("POST") || op.GraphQL != nil && other.acceptsMethod("GET")
}

// overlaps reports whether the operation and the pattern have a host in common.
func (op *Operation) overlaps(h HostPattern) bool {
	return slices.ContainsFunc(op.Hosts, func(own HostPattern) bool {
		return own == h || !h.Wildcard && own.Covers(h.Name, h.Port) || !own.Wildcard && h.Covers(own.Name, own.Port)
	})
}
