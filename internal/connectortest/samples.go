package connectortest

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/body"
	"github.com/ALRubinger/aileron/spec/content"
)

// arguments returns those that were given, or a sample of every input.
func (t *trial) arguments() (any, error) {
	if t.opts.Args != nil {
		if args := bytes.TrimSpace(t.opts.Args); len(args) == 0 || args[0] != '{' || !json.Valid(args) {
			return nil, errors.New("the arguments are not a JSON object")
		}
		return t.opts.Args, nil
	}
	args := map[string]any{}
	for _, name := range variables(t.op.Path.String()) {
		if in := t.op.Injection; in == nil || in.In != spec.InPath || in.Name != name {
			args[name] = "sample-" + name
		}
	}
	for _, in := range t.op.Inputs {
		if _, isCredential := args[in.Name]; in.In != spec.InPath || isCredential {
			args[in.Name] = sample(in)
		}
	}
	if names := variables(t.op.Path.String()); t.deep && len(names) > 0 {
		args[names[len(names)-1]] = "sample/" + names[len(names)-1]
	}
	return args, nil
}

// variables returns the names of the variables of a path's template.
func variables(template string) (names []string) {
	for part := range strings.SplitSeq(template, "/") {
		name, ok := strings.CutPrefix(part, "{")
		if name = strings.TrimSuffix(strings.TrimSuffix(name, "}"), "..."); ok && name != "$" {
			names = append(names, name)
		}
	}
	return names
}

// sample returns a value that an input may have.
func sample(in spec.Input) any {
	if len(in.Values) > 0 {
		return typed(in.Type, strings.Replace(in.Values[0], "*", "sample", 1))
	}
	if in.Schema != nil {
		return in.Schema.Example("sample-" + in.Name)
	}
	switch in.Type {
	case "integer", "number":
		return 1
	case "boolean":
		return true
	case "array":
		return []string{"sample"}
	case "object":
		if in.In == spec.InBody || in.Style == body.Brackets {
			return map[string]string{"sample": "sample"}
		}
	}
	return "sample-" + in.Name
}

// typed returns a declared value, which is text, as a value of the input's type.
func typed(kind, text string) any {
	switch kind {
	case "integer", "number":
		return json.Number(text)
	case "boolean":
		return text == "true"
	case "array":
		return []string{text}
	}
	return text
}

// onlyForClients reports whether the operation cannot be called by its name.
func (t *trial) onlyForClients() bool {
	wild := true
	for _, h := range t.op.Hosts {
		wild = wild && h.Wildcard
	}
	return wild || t.op.MCP != nil || t.op.GraphQL != nil || t.op.Method == "" || t.op.Method == "*" || t.op.Path.IsZero()
}

// clientRequest returns a request of an operation that HTTP clients make.
func (t *trial) clientRequest() spec.Call {
	h := t.op.Hosts[0]
	target := spec.Target{Scheme: "https", Host: hostOf(h), Port: h.Port, Method: t.op.Method, Path: "/"}
	if h.Port == 80 {
		target.Scheme = "http"
	}
	if target.Method == "" || target.Method == "*" {
		target.Method = "GET"
	}
	if template := t.op.Path.String(); template != "" {
		target.Path = strings.TrimSuffix(template, "{$}")
		for _, name := range variables(template) {
			value := "sample-" + name
			for _, in := range t.op.Inputs {
				if in.Name == name && len(in.Values) > 0 {
					value = strings.Replace(in.Values[0], "*", "sample", 1)
				}
			}
			target.Path = strings.NewReplacer("{"+name+"}", value, "{"+name+"...}", value).Replace(target.Path)
		}
	}
	return spec.Call{Target: target, Body: t.message()}
}

// isJudgedPost reports whether a sample of the body that the operation judges can be made.
func (t *trial) isJudgedPost() bool { return t.op.JudgesBody() && t.op.Method == "POST" }

// message returns the body of an operation that judges bodies: a call of its first tool or its first method, of MCP, or
// its first field or stored document, of GraphQL. Others have none.
func (t *trial) message() []byte {
	if g := t.op.GraphQL; g != nil && t.isJudgedPost() {
		if len(g.Fields) == 0 {
			return []byte(`{"extensions":{"persistedQuery":{"version":1,"sha256Hash":"` + g.Hashes[0] + `"}}}`)
		}
		return []byte(`{"query":"` + g.Type + `{` + strings.Replace(g.Fields[0], "*", "sample", 1) + `}"}`)
	}
	m := t.op.MCP
	switch {
	case m == nil:
		return nil
	case len(m.Tools) == 0:
		return []byte(`{"jsonrpc":"2.0","id":1,"method":"` + m.Methods[0] + `"}`)
	}
	tool := strings.Replace(m.Tools[0], "*", "sample", 1)
	return []byte(`{"jsonrpc":"2.0","id":1,"method":"` + content.CallTool + `","params":{"name":"` + tool + `"}}`)
}

// hostOf returns a host that the pattern covers.
func hostOf(h spec.HostPattern) string {
	if h.Wildcard {
		return "sample." + h.Name
	}
	return h.Name
}

// responseBody returns what the service responds: an object in which every audit field finds a value.
func (t *trial) responseBody() []byte {
	if t.opts.Response != nil {
		return t.opts.Response
	}
	var root any = map[string]any{}
	for _, f := range t.op.Audit {
		if path, ok := strings.CutPrefix(f.Source, "response.body."); ok {
			root = grow(root, strings.Split(path, "."), "sample-"+f.Name)
		}
	}
	if o, ok := root.(map[string]any); ok {
		o[echoKey] = echoMark
	}
	text, err := json.Marshal(root)
	if err != nil {
		return []byte("{}")
	}
	return text
}

// maxIndex bounds the lists of a response that is made.
const maxIndex = 1000

// grow returns v with a value at a path: a number is an index. What is there already stays.
func grow(v any, path []string, value string) any {
	if len(path) == 0 {
		if v == nil {
			return value
		}
		return v
	}
	i, err := strconv.Atoi(path[0])
	list, isList := v.([]any)
	o, isObject := v.(map[string]any)
	isNumber := err == nil && i >= 0 && i <= maxIndex
	switch {
	case isList && isNumber, isNumber && (v == nil || isObject && len(o) == 0):
		for len(list) <= i {
			list = append(list, nil)
		}
		list[i] = grow(list[i], path[1:], value)
		return list
	case isObject || v == nil:
		if o == nil {
			o = map[string]any{}
		}
		o[path[0]] = grow(o[path[0]], path[1:], value)
		return o
	}
	return v // two audit fields that cannot both be there
}
