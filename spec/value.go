package spec

import (
	"net/url"
	"slices"
	"strings"
)

// readValues reads the values of an input, whose place must have been read.
func (op *Operation) readValues(n node, in *Input) {
	if _, has := n.o.get("values"); !has {
		return
	}
	if why := op.cannotLimit(*in); why != "" {
		n.diags.add(n.at("values"), "%s", why)
	}
	for i, v := range n.list("values", true, maxItems) {
		value, ok := v.(string)
		switch {
		case !ok:
			n.diags.add(n.item("values", i), "it is not a string")
		case !isPlainValuePattern(value, in.In):
			n.diags.add(n.item("values", i), "%q is not plain text; only in the path, a value may begin with *", value)
		case slices.Contains(in.Values, value):
			n.diags.add(n.item("values", i), "%q appears twice", value)
		}
		in.Values = append(in.Values, value)
	}
	limited := *in
	op.limited = append(op.limited, &limited)
}

// cannotLimit returns why the values of an input cannot be declared, or "" if
// they can.
func (op *Operation) cannotLimit(in Input) string {
	switch {
	case in.In == InBody:
		return "bodies are not read, so the values of their inputs cannot be declared"
	case slices.ContainsFunc(op.Path.segments, func(s segment) bool { return s.rest && s.name == in.Name }):
		return "the values of a variable that takes the rest cannot be declared"
	}
	return ""
}

// isPlainValuePattern reports whether a value can be declared: text that stands in
// a request in one spelling.
func isPlainValuePattern(value, place string) bool {
	if text, ok := strings.CutPrefix(value, "*"); ok && place == InPath {
		value = text
	}
	return value != "" && isPlainSegment(value) && !strings.ContainsAny(value, "*&=+")
}

// accepts reports whether the input may have a value, as it stands in the request.
func (in *Input) accepts(value string) bool {
	for _, v := range in.Values {
		end, any := strings.CutPrefix(v, "*")
		if value == v || any && in.In == InPath && len(value) > len(end) && strings.HasSuffix(value, end) {
			return true
		}
	}
	return false
}

// badValue returns the first input whose value in the request is not a declared
// one, with that value, or nil. In a query, a name that appears twice has two
// values, since servers differ in which one they take.
func (op *Operation) badValue(m Match, query string) (*Input, string) {
	for _, in := range op.limited {
		if in.In == InPath {
			if value, _ := m.Param(in.Name); !in.accepts(value) {
				return in, value
			}
			continue
		}
		if query == "" {
			continue
		}
		for pair := range strings.SplitSeq(query, "&") {
			raw, value, _ := strings.Cut(pair, "=")
			// undeclared has found that every name can be read.
			if name, err := url.QueryUnescape(raw); err != nil || name == in.Name && !in.accepts(value) {
				return in, value
			}
		}
	}
	return nil, ""
}
