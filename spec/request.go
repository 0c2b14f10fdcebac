package spec

import (
	"encoding/base64"
	"slices"
	"strings"
)

// Request is a request that names the operation that it claims to be. Nothing in it has been checked: its parts may
// hold what no request may.
type Request struct {
	Connector, Tool, Operation string
	Method, URL                string
	Fields                     [][2]string // names and values, by name
	Body                       []byte
}

// ParseRequest reads a request, a JSON object with the keys connector_fqn, tool, operation, method, upstream_url,
// headers and body_base64, as [ParseInvocation] reads an invocation. A header's value is a string, or a list of them
// for a field that stands more than once.
func ParseRequest(data []byte) (Request, error) {
	var d diagnostics
	v, ok := readJSON(data, &d)
	if !ok || len(d.list) > 0 {
		return Request{}, firstOf(&d)
	}
	n, _ := d.open(v, "", "connector_fqn", "tool", "operation", "method", "upstream_url", "headers", "body_base64")
	r := Request{
		Connector: n.text("connector_fqn", true), Tool: n.text("tool", true), Operation: n.text("operation", true),
		Method: n.raw("method", true), URL: n.raw("upstream_url", true), Fields: n.fields("headers"),
	}
	encoded := n.raw("body_base64", false)
	var err error
	r.Body, err = base64.StdEncoding.Strict().DecodeString(encoded)
	if err != nil || strings.ContainsAny(encoded, "\r\n") {
		d.add("body_base64", "it is not base64")
	}
	if len(d.list) > 0 {
		return Request{}, firstOf(&d)
	}
	return r, nil
}

// raw returns a text as it is.
func (n node) raw(key string, required bool) string {
	v, has := n.o.get(key)
	s, ok := v.(string)
	switch {
	case !has && required:
		n.diags.add(n.at(key), "it is missing")
	case has && !ok:
		n.diags.add(n.at(key), "it is not a string")
	}
	return s
}

// fields returns the header fields of an object, by name.
func (n node) fields(key string) (list [][2]string) {
	v, has := n.o.get(key)
	o, ok := v.(object)
	if has && !ok {
		n.diags.add(n.at(key), "it is not an object")
	}
	o = slices.SortedFunc(slices.Values(o), func(a, b field) int { return strings.Compare(a.key, b.key) })
	for _, f := range o {
		name := f.key
		values, isList := f.value.([]any)
		if !isList {
			values = []any{f.value}
		}
		for _, v := range values {
			value, ok := v.(string)
			if !ok {
				n.diags.add(join(n.at(key), name), "it is neither a string nor a list of strings")
			}
			list = append(list, [2]string{name, value})
		}
	}
	return list
}
