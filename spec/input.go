package spec

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/spec/internal/plain"
	"github.com/ALRubinger/aileron/spec/internal/template"

	"github.com/ALRubinger/aileron/spec/body"
	"github.com/ALRubinger/aileron/spec/schema"
)

// The places of an input in a request, the values of Input.In.
const (
	InPath  = "path"
	InQuery = "query"
	InBody  = "body"
)

// Input is a declared argument. It has one place in the request: a name that is
// declared for the path or the body is not accepted in the query.
type Input struct {
	Name, Type, Description string
	In                      string // InPath, InQuery or InBody
	Required                bool

	// Values, unless empty, are all that the input may be, compared with the
	// request byte by byte. In the path, one may begin with "*", which stands for
	// any text.
	Values []string

	Style  body.Style     // in the query, or in a form
	Schema *schema.Schema // nil: the type alone
}

// inputKeys are the keys of an input, and inputTypes what its type may be.
var (
	inputKeys = []string{"name", "type", "required", "description", "in", "values", "escaped_slash", "style", "explode",
		"schema"}
	inputTypes = append(InputTypes(), TypeFile, TypeFiles)
)

// readInputs reads the inputs. The method and the path must have been read.
func (op *Operation) readInputs(n node) {
	left := schema.MaxSize
	list := n.list("inputs", false, maxItems)
	if len(list) > 0 {
		op.Inputs = make([]Input, 0, len(list))
	}
	for i, v := range list {
		in, ok := n.diags.open(v, n.item("inputs", i), inputKeys...)
		if !ok {
			continue
		}
		before := op.Inputs
		op.Inputs = append(op.Inputs, Input{
			Name:        in.text("name", true),
			Type:        in.choice("type", inputTypes...),
			Description: in.text("description", false),
			Required:    in.flag("required"),
		})
		input := &op.Inputs[len(before)]
		switch {
		case input.Name == "":
		case !isParameterName(input.Name):
			in.diags.add(in.at("name"), "%q is not letters, digits, dots, dashes, underscores and colons", input.Name)
		case slices.ContainsFunc(before, func(b Input) bool { return b.Name == input.Name }):
			in.diags.add(in.at("name"), "%q appears twice", input.Name)
		}
		input.In = cmp.Or(in.choice("in", InPath, InQuery, InBody), op.placeOf(input.Name))
		if why := op.badPlace(*input); why != "" && input.Name != "" {
			in.diags.add(in.at("in"), "%s", why)
		}
		if in.flag("escaped_slash") {
			op.admitSlash(in, input.Name)
		}
		op.readValues(in, input)
		input.readStyle(in, &left)
	}
	op.checkNames(n)
}

// placeOf returns the place of an input that does not name one.
func (op *Operation) placeOf(name string) string {
	switch {
	case op.Path.Has(name):
		return InPath
	case op.bodiless(), op.Method == "DELETE":
		return InQuery
	}
	return InBody
}

// bodiless reports whether the operation's requests have no body: the proxy
// refuses one for these methods.
func (op *Operation) bodiless() bool { return op.Method == "GET" || op.Method == "HEAD" }

// TakesBody reports whether a request of the operation with the method may have a body. A DELETE may where it is
// declared: RFC 9110 gives it no meaning otherwise, and two servers might frame it differently.
func (op *Operation) TakesBody(method string) bool {
	switch method {
	case "GET", "HEAD":
		return false
	case "DELETE":
		return op.Method == method && (op.Body != "" || op.ContentType != "" || len(op.BodyInputs()) > 0)
	}
	return true
}

// badPlace returns why an input cannot stand in its place, or "" if it can.
func (op *Operation) badPlace(in Input) string {
	switch variable := op.Path.Has(in.Name); {
	case variable && in.In != InPath:
		return quote(in.Name) + " is a variable of the path, so its place is \"path\""
	case !variable && in.In == InPath:
		return "the path has no variable {" + in.Name + "}"
	case in.In == InBody && op.bodiless():
		return "a " + op.Method + " request has no body; the place is \"query\""
	}
	return ""
}

// placeOfInput returns the place of a declared input, or "" for another name.
func (op *Operation) placeOfInput(name string) string {
	for _, in := range op.Inputs {
		if in.Name == name {
			return in.In
		}
	}
	return ""
}

// QueryInputs returns the names that are declared for the query, in order.
func (op *Operation) QueryInputs() []string { return op.inputsIn(InQuery) }

// BodyInputs returns the names that are declared for the body, in order.
func (op *Operation) BodyInputs() []string { return op.inputsIn(InBody) }

func (op *Operation) inputsIn(place string) []string {
	var list []string
	for _, in := range op.Inputs {
		if in.In == place {
			list = append(list, in.Name)
		}
	}
	return list
}

// readValues reads the values of an input, whose place must have been read.
func (op *Operation) readValues(n node, in *Input) {
	if _, has := n.o.Get("values"); !has {
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
	case slices.ContainsFunc(op.Path.Segments(), func(s template.Segment) bool { return s.Rest && s.Name == in.Name }):
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
	return value != "" && plain.IsSegment(value) && !strings.ContainsAny(value, "*&=+")
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
