package spec

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/ALRubinger/aileron/spec/internal/plain"

	"github.com/ALRubinger/aileron/spec/internal/strictjson"
)

// Preview is what a person sees of the service before they approve a request: the response to another operation of the
// same connector, which reads.
type Preview struct {
	Operation *Operation
	Render    []string // plain gjson paths of what is shown of the response; none: all of it

	args []previewArgument
}

// previewArgument is an argument of a preview's operation: a text, or an input of the request that is asked about.
type previewArgument struct {
	name, text string
	in, of     string // the place and the name of the input; "": it is text
}

const (
	maxPreviewArguments = 16
	maxRendered         = 16
	maxPreviewText      = 200
)

// ErrNoPreview is wrapped by the errors of [Preview.Invocation].
var ErrNoPreview = errors.New("it cannot be fetched")

// Invocation returns the call of the preview for a request whose inputs input returns, each by its place (path, query
// or body) and its name. The error has no value of the request.
func (p *Preview) Invocation(input func(in, name string) (value string, ok bool)) (Invocation, error) {
	op := p.Operation
	args := map[string]any{}
	for _, a := range p.args {
		text := a.text
		if a.in != "" {
			var ok bool
			if text, ok = input(a.in, a.of); !ok {
				return Invocation{}, fmt.Errorf("%w: the request has no single %s %s", ErrNoPreview, a.in, a.of)
			}
		}
		args[a.name] = op.typed(a.name, text)
	}
	return Invocation{Connector: string(op.Connector.FQN), Tool: op.Tool, Operation: op.Name, args: args}, nil
}

// typed returns the text of an argument as a value of the type of its input, or as it is if it is none.
func (op *Operation) typed(name, text string) any {
	at := slices.IndexFunc(op.Inputs, func(in Input) bool { return in.Name == name })
	if at < 0 {
		return text
	}
	switch op.Inputs[at].Type {
	case "integer", "number":
		if json.Valid([]byte(text)) && strings.Trim(text, "+-.0123456789eE") == "" {
			return json.Number(text)
		}
	case "boolean":
		if b, err := strconv.ParseBool(text); err == nil && strconv.FormatBool(b) == text {
			return b
		}
	}
	return text
}

// rawPreview is a preview whose operation is yet to be found.
type rawPreview struct {
	n         node
	operation string
}

// readPreview reads preview, all but its operation, which may follow. The inputs must have been read.
func (op *Operation) readPreview(n node) {
	v, has := n.o.Get("preview")
	if !has {
		return
	}
	p, ok := n.diags.open(v, n.at("preview"), "operation", "args", "render")
	if !ok {
		return
	}
	op.Preview = &Preview{}
	op.previewed = &rawPreview{p, p.text("operation", true)}
	args, has := p.o.Get("args")
	all, isObject := args.(strictjson.Object)
	if has && !isObject || len(all) > maxPreviewArguments {
		p.diags.add(p.at("args"), "it is not an object of at most %d arguments", maxPreviewArguments)
		return
	}
	for _, f := range all {
		at := strictjson.Join(p.at("args"), f.Key)
		text, isText := f.Value.(string)
		if !isText || len(text) > maxPreviewText || plain.HasControl(text) {
			p.diags.add(at, "it is not a text of at most %d bytes", maxPreviewText)
			continue
		}
		op.Preview.args = append(op.Preview.args, op.previewArgument(p, at, f.Key, text))
	}
	for i, v := range p.list("render", false, maxRendered) {
		path, _ := v.(string)
		if why := badBodyPath(path); why != "" || len(path) > maxPreviewText || plain.HasControl(path) {
			p.diags.add(p.item("render", i), "it is not a plain gjson path, such as \"user.login\"")
		}
		op.Preview.Render = append(op.Preview.Render, path)
	}
}

// previewArgument reads the text of an argument: ${path.NAME}, ${query.NAME} or ${body.NAME}, as a whole, or itself.
func (op *Operation) previewArgument(p node, at, name, text string) previewArgument {
	inner, begins := strings.CutPrefix(text, "${")
	inner, ends := strings.CutSuffix(inner, "}")
	in, of, dotted := strings.Cut(inner, ".")
	switch {
	case !strings.Contains(text, "${"):
		return previewArgument{name: name, text: text}
	case !begins || !ends || !dotted || strings.Contains(inner, "${"):
		p.diags.add(at, `%q is neither a text nor one input as a whole, such as "${path.owner}"`, text)
	case in == InPath && op.Path.Has(of) && !op.isCredential(of), op.placeOfInput(of) == in && !op.isCredential(of):
	default:
		p.diags.add(at, "%q names no input of this operation in that place", text)
	}
	return previewArgument{name: name, in: in, of: of}
}

// linkPreviews finds the operations of previews, and checks that they only read.
func (c *Connector) linkPreviews() {
	for _, t := range c.Tools {
		for _, op := range t.Operations {
			if op.previewed == nil {
				continue
			}
			raw := op.previewed
			op.previewed = nil
			if raw.operation == "" {
				continue
			}
			target, why := c.previewOperation(op, raw.operation)
			if why == "" {
				why = badPreview(op, target)
			}
			if why != "" {
				raw.n.diags.add(raw.n.at("operation"), "%q %s", raw.operation, why)
				continue
			}
			op.Preview.Operation = target
			op.checkPreviewArguments(raw.n)
		}
	}
}

// previewOperation returns the operation of a name: of the same tool, or the only one of all others.
func (c *Connector) previewOperation(op *Operation, name string) (found *Operation, why string) {
	for _, t := range c.Tools {
		for _, other := range t.Operations {
			switch {
			case other.Name != name:
			case t.Name == op.Tool:
				return other, ""
			case found != nil:
				why = "is an operation of several tools"
			default:
				found = other
			}
		}
	}
	if found == nil {
		why = "is no operation of this connector"
	}
	return found, why
}

// badPreview returns why an operation cannot be the preview of another, "" if it can.
func badPreview(op, target *Operation) string {
	switch err := target.Callable(); {
	case target == op:
		return "is the operation itself"
	case target.Method != http.MethodGet && target.Method != http.MethodHead:
		return "is no GET or HEAD, and a preview only reads"
	case !target.Idempotent:
		return "is not idempotent, and a preview only reads"
	case target.Approval != ApprovalNone:
		return "asks for an approval of its own"
	case target.Upgrade != "" || target.GraphQL != nil:
		return "is no plain request"
	case err != nil:
		return "cannot be called by name: " + err.Error()
	}
	return ""
}

// checkPreviewArguments checks the names of the arguments against what the preview's operation takes.
func (op *Operation) checkPreviewArguments(n node) {
	takes := op.Preview.Operation.Arguments()
	for _, a := range op.Preview.args {
		at := slices.IndexFunc(takes, func(in Input) bool { return in.Name == a.name })
		switch {
		case at < 0:
			n.diags.add(strictjson.Join(n.at("args"), a.name), "%s has no such input", op.Preview.Operation.Name)
		case takes[at].In == InBody:
			n.diags.add(strictjson.Join(n.at("args"), a.name), "it is in the body, which a preview does not have")
		case a.in == "" && !takes[at].hasType(op.Preview.Operation.typed(a.name, a.text)):
			n.diags.add(strictjson.Join(n.at("args"), a.name), "it is not %s", takes[at].wants())
		}
	}
	for _, in := range takes {
		given := slices.ContainsFunc(op.Preview.args, func(a previewArgument) bool { return a.name == in.Name })
		if in.Required && !given {
			n.diags.add(n.at("args"), "%s is missing, which %s needs", in.Name, op.Preview.Operation.Name)
		}
	}
}
