package spec

import (
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/spec/internal/plain"
	"github.com/ALRubinger/aileron/spec/internal/reserved"
)

// FieldPattern is a request field that operations with a credential accept
// in addition to the registered ones: a name, or all names that begin with a prefix.
type FieldPattern struct {
	Name   string // lower case; a prefix ends in a dash
	Prefix bool
}

// String returns the pattern as it is declared, in lower case.
func (p FieldPattern) String() string {
	if p.Prefix {
		return p.Name + "*"
	}
	return p.Name
}

// covers reports whether p covers a name, in any case. The comparison of lengths,
// of bytes, leaves only ASCII to EqualFold.
func (p FieldPattern) covers(name string) bool {
	if p.Prefix && len(name) > len(p.Name) {
		name = name[:len(p.Name)]
	} else if p.Prefix {
		return false
	}
	return len(name) == len(p.Name) && strings.EqualFold(name, p.Name)
}

// AcceptsField reports whether the operation, or its connector, declares the
// request field, in any case. A declared prefix never covers a reserved
// name, and none is loaded that covers the place of the credential.
func (op *Operation) AcceptsField(name string) bool {
	for _, p := range op.Headers {
		if p.covers(name) {
			return reserved.Field(strings.ToLower(name)) == ""
		}
	}
	return false
}

// readHeaders reads the list "headers" of a connector or an operation.
func readHeaders(n node) []FieldPattern {
	var patterns []FieldPattern
	for i, v := range n.list("headers", false, maxItems) {
		text, ok := v.(string)
		if !ok {
			n.diags.add(n.item("headers", i), "it is not a string")
			patterns = append(patterns, FieldPattern{})
			continue
		}
		p, why := parseFieldPattern(text)
		switch {
		case why != "":
			n.diags.add(n.item("headers", i), "%q %s", text, why)
			p = FieldPattern{} // covers nothing, and keeps the others' indices
		case slices.Contains(patterns, p):
			n.diags.add(n.item("headers", i), "%q appears twice", text)
		}
		patterns = append(patterns, p)
	}
	return patterns
}

// parseFieldPattern reads NAME or PREFIX-*. Unless why is "", no connector can
// declare the pattern.
func parseFieldPattern(s string) (p FieldPattern, why string) {
	name, prefix := strings.CutSuffix(s, "*")
	p = FieldPattern{strings.ToLower(name), prefix}
	switch {
	case !isToken(name) || strings.Contains(p.Name, "*") || !plain.IsAlnum(p.Name[0]):
		return p, "is neither the name of a field nor a prefix such as \"acme-*\""
	case p.Prefix && !strings.HasSuffix(p.Name, "-"):
		return p, "is not a prefix that ends in a dash, such as \"acme-*\""
	case p.Prefix:
		return p, reserved.Prefix(p.Name)
	}
	if why := reserved.Field(p.Name); why != "" {
		return p, "cannot be declared: it " + why
	}
	return p, ""
}

// readHeaders reads the fields that the operation declares in addition to those
// of its connector. The credential must have been read.
func (op *Operation) readHeaders(n node) {
	op.Headers = readHeaders(n)
	for i, p := range op.Headers {
		if p.reaches(op) {
			n.diags.add(n.item("headers", i), "%q covers %s, where the credential stands; name the fields one by one",
				p, op.Injection.Name)
		}
	}
}

// shareHeaders reads the connector's fields and adds them to its operations.
func (c *Connector) shareHeaders(top node) {
	c.Headers = readHeaders(top)
	for i, p := range c.Headers {
		for _, t := range c.Tools {
			if j := slices.IndexFunc(t.Operations, p.reaches); j >= 0 {
				op := t.Operations[j]
				top.diags.add(top.item("headers", i), "%q covers %s, where the credential of %s stands; name the fields "+
					"one by one", p, op.Injection.Name, op.Name)
				break
			}
		}
	}
	for _, t := range c.Tools {
		for _, op := range t.Operations {
			op.Headers = append(slices.Clip(c.Headers), op.Headers...)
		}
	}
}

// reaches reports whether the pattern covers the field that the operation's
// credential stands in, or one that servers fold into it.
func (p FieldPattern) reaches(op *Operation) bool {
	if op.Injection == nil || op.Injection.In != "header" {
		return false
	}
	slot, own := reserved.Fold(op.Injection.Name), reserved.Fold(p.Name)
	return slot == own || p.Prefix && strings.HasPrefix(slot, own)
}

// ReservedAuditFields returns the names of fields that aileron records of a request itself. A connector that declared
// one could write in its place what an upstream says.
func ReservedAuditFields() []string { return slices.Clone(reservedAuditFields) }

var reservedAuditFields = strings.Fields(`
	request_id clock spilled redirected renewed dropped_headers dropped_headers_omitted packed body_fields
	action action_version surface step boundary approval_id upstream_status intent_id intent_seq sent not_known
	decider_reason preview_of earlier_approvals
	mcp_method mcp_tool graphql_type graphql_fields graphql_fields_omitted graphql_hash
	meters meters_estimated meters_model`)

// MayReroute is [reserved.MayReroute].
func MayReroute(name string) bool { return reserved.MayReroute(name) }

// NamesCredential is [reserved.NamesCredential].
func NamesCredential(name string) bool { return reserved.NamesCredential(name) }
