package spec

import (
	"net/http"
	"slices"

	"github.com/ALRubinger/aileron/spec/body"
	"github.com/ALRubinger/aileron/spec/internal/plain"
	"github.com/ALRubinger/aileron/spec/internal/strictjson"
	"github.com/ALRubinger/aileron/spec/preview"
)

// Preview is what a person sees of the service before they approve a request: the response to another operation of the
// same connector, which reads.
type Preview struct {
	Operation *Operation
	Render    []string // plain gjson paths of what is shown of the response; none: all of it

	// Match are inputs that a request must have for an approval, and that must be what the response has: what a person
	// sees is then what is approved, and the service refuses the request if that has changed.
	Match []preview.Match

	args  []preview.Argument
	kinds map[string]string // the types of what Operation takes, by name
	name  string            // of Operation, which may follow
	n     node              // while it is read
}

// Invocation returns the call of the preview for a request whose inputs input returns, each by its place (path, query
// or body) and its name. The error has no value of the request.
func (p *Preview) Invocation(input func(in, name string) (value string, ok bool)) (Invocation, error) {
	args, err := preview.Values(p.args, input, p.kinds)
	op := p.Operation
	return Invocation{Connector: string(op.Connector.FQN), Tool: op.Tool, Operation: op.Name, args: args}, err
}

// readPreview reads preview, all but its operation, which may follow. The inputs must have been read.
func (op *Operation) readPreview(n node) {
	v, has := n.o.Get("preview")
	if !has {
		return
	}
	p, _ := n.diags.open(v, n.at("preview"), "operation", "args", "render", "match") // what is no object has none of them
	op.Preview = &Preview{name: p.text("operation", true), n: p}
	args, has := p.o.Get("args")
	all, isObject := args.(strictjson.Object)
	if has && !isObject || len(all) > preview.MaxArguments {
		p.diags.add(p.at("args"), "it is not an object of at most %d arguments", preview.MaxArguments)
	}
	for _, f := range all {
		a, err := preview.Read(f.Key, f.Value)
		inPlace := a.In == "" || a.In == InPath && op.Path.Has(a.Of) || op.placeOfInput(a.Of) == a.In
		if err == nil && (!inPlace || op.isCredential(a.Of)) {
			err = preview.ErrNoInput
		}
		if err != nil {
			p.diags.add(strictjson.Join(p.at("args"), f.Key), "%v", err)
		}
		op.Preview.args = append(op.Preview.args, a)
	}
	for i, v := range p.list("render", false, preview.MaxRendered) {
		path, _ := v.(string)
		if why := badBodyPath(path); why != "" || len(path) > preview.MaxText || plain.HasControl(path) {
			p.diags.add(p.item("render", i), "it is not a plain gjson path, such as \"user.login\"")
		}
		op.Preview.Render = append(op.Preview.Render, path)
	}
	match, has := p.o.Get("match")
	pairs, isObject := match.(strictjson.Object)
	if has && !isObject || len(pairs) > preview.MaxMatched {
		p.diags.add(p.at("match"), "it is not an object of at most %d inputs", preview.MaxMatched)
	}
	for _, f := range pairs {
		m, err := preview.ReadMatch(f.Key, f.Value)
		why := badBodyPath(m.Path)
		switch {
		case err != nil:
			why = err.Error()
		case why == "":
			why = op.cannotMatch(m)
		}
		if why != "" {
			p.diags.add(strictjson.Join(p.at("match"), f.Key), "%s", why)
		}
		op.Preview.Match = append(op.Preview.Match, m)
	}
}

// cannotMatch returns why an input cannot be compared with a preview, "" if it can.
func (op *Operation) cannotMatch(m preview.Match) string {
	at := slices.IndexFunc(op.Inputs, func(in Input) bool { return in.Name == m.Name && in.In == m.In })
	switch {
	case at < 0 || !op.Inputs[at].Required && m.In != InPath || op.isCredential(m.Name):
		return "it is no required input of this operation in that place"
	case !slices.Contains([]string{"string", "integer"}, op.Inputs[at].Type):
		return "its type is neither string nor integer"
	case m.In == InBody && op.Body != "" && op.Body != body.JSON:
		return "the body is not JSON"
	}
	return ""
}

// linkPreviews finds the operations of previews, of the same tool or else of another, and checks that they only read.
func (c *Connector) linkPreviews() {
	var all []*Operation
	for _, t := range c.Tools {
		all = append(all, t.Operations...)
	}
	for _, op := range all {
		v := op.Preview
		if v == nil {
			continue
		}
		for _, other := range all {
			if other.Name == v.name && (v.Operation == nil || other.Tool == op.Tool) {
				v.Operation = other
			}
		}
		if why := badPreview(op, v.Operation); why != "" {
			v.n.diags.add(v.n.at("operation"), "%q %s", v.name, why)
			continue
		}
		op.checkPreviewArguments(v.n)
	}
}

// badPreview returns why an operation cannot be the preview of another, "" if it can.
func badPreview(op, target *Operation) string {
	switch {
	case target == nil:
		return "is no operation of this connector"
	case target == op:
		return "is the operation itself"
	case target.Method != http.MethodGet && target.Method != http.MethodHead, target.Upgrade != "", target.GraphQL != nil:
		return "is no plain GET or HEAD, and a preview only reads"
	case !target.Idempotent:
		return "is not idempotent, and a preview only reads"
	case target.Approval != ApprovalNone:
		return "asks for an approval of its own"
	case target.Callable() != nil:
		return "cannot be called by name: " + target.Callable().Error()
	}
	return ""
}

// checkPreviewArguments checks the names of the arguments against what the preview's operation takes.
func (op *Operation) checkPreviewArguments(n node) {
	takes := op.Preview.Operation.Arguments()
	for _, a := range op.Preview.args {
		at := slices.IndexFunc(takes, func(in Input) bool { return in.Name == a.Name })
		switch {
		case at < 0 || takes[at].In == InBody:
			n.diags.add(strictjson.Join(n.at("args"), a.Name), "%s has no such input", op.Preview.Operation.Name)
		case a.In == "" && !takes[at].hasType(preview.Typed(takes[at].Type, a.Text)):
			n.diags.add(strictjson.Join(n.at("args"), a.Name), "it is not %s", takes[at].wants())
		}
	}
	op.Preview.kinds = map[string]string{}
	for _, in := range takes {
		op.Preview.kinds[in.Name] = in.Type
		if in.Required && !slices.ContainsFunc(op.Preview.args, func(a preview.Argument) bool { return a.Name == in.Name }) {
			n.diags.add(n.at("args"), "%s is missing, which %s needs", in.Name, op.Preview.Operation.Name)
		}
	}
}
