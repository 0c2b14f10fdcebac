package spec

import (
	"errors"
	"slices"
	"strings"
)

// Invocation is a request by name: an operation and its arguments.
type Invocation struct {
	Connector, Tool, Operation string
	args                       map[string]any
}

// ParseInvocation reads an invocation, a JSON object with the keys connector_fqn, tool, operation and args, as strictly
// as a specification: UTF-8, at most [MaxSize] bytes, no unknown or repeated key, nothing that is no JSON, such as NaN.
// Without args there are none. The error is about the first mistake, and has no value of an argument.
func ParseInvocation(data []byte) (Invocation, error) {
	var d diagnostics
	v, ok := readJSON(data, &d)
	if !ok || len(d.list) > 0 {
		return Invocation{}, firstOf(&d)
	}
	n, _ := d.open(v, "", "connector_fqn", "tool", "operation", "args")
	in := Invocation{
		Connector: n.text("connector_fqn", true), Tool: n.text("tool", true), Operation: n.text("operation", true),
		args: map[string]any{},
	}
	if args, has := n.o.get("args"); has {
		if o, ok := args.(object); ok {
			in.args = o.plain()
		} else {
			d.add("args", "it is not an object")
		}
	}
	if len(d.list) > 0 {
		return Invocation{}, firstOf(&d)
	}
	return in, nil
}

// maxMistake bounds the text about a mistake in an invocation, which may repeat names of its sender.
const maxMistake = 300

// firstOf returns the first mistake as one short text.
func firstOf(d *diagnostics) error {
	text := d.list[0].Error()
	if len(text) > maxMistake {
		text = strings.ToValidUTF8(text[:maxMistake], "") + "…"
	}
	return errors.New(text)
}

// Call is the request that an invocation makes of its operation. Whether it is allowed, [Index.Match] decides as for
// any other.
type Call struct {
	Target Target
	Body   []byte // JSON; nil: the request has none
}

// maxTarget bounds the path and the query of a call.
const maxTarget = 32 << 10

// Call returns the request that the arguments of an invocation make of op. Each argument is declared as an input, or is
// a variable of the path; it has the type that is declared, and is a single value that stands in its place in one
// spelling. The error is about the first mistake, and has no value of an argument.
func (op *Operation) Call(in Invocation) (Call, error) {
	c := Call{Target: Target{Method: op.Method}}
	at := slices.IndexFunc(op.Hosts, func(h HostPattern) bool { return !h.Wildcard })
	switch {
	case at < 0:
		return c, errors.New("the operation names no single host; send its request with an HTTP client")
	case op.Method == "" || op.Method == "*":
		return c, errors.New("the operation names no single method; send its request with an HTTP client")
	case op.Path.IsZero():
		return c, errors.New("the operation names no path; send its request with an HTTP client")
	}
	c.Target.Host, c.Target.Port, c.Target.Scheme = op.Hosts[at].Name, op.Hosts[at].Port, "https"
	if c.Target.Port == 80 {
		c.Target.Scheme = "http"
	}
	var d diagnostics
	a := arguments{op: op, diags: &d, values: in.args}
	a.check()
	c.Target.Path, c.Target.Query, c.Body = a.path(), a.query(), a.body()
	if len(d.list) == 0 && len(c.Target.Path)+len(c.Target.Query) > maxTarget {
		d.add("args", "they make a path and a query of more than %d bytes", maxTarget)
	}
	if len(d.list) > 0 {
		return Call{}, firstOf(&d)
	}
	return c, nil
}
