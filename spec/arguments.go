package spec

import (
	"maps"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/spec/body"
	"github.com/ALRubinger/aileron/spec/internal/plain"
	"github.com/ALRubinger/aileron/spec/internal/strictjson"
	"github.com/ALRubinger/aileron/spec/schema"
)

// arguments are those of one call.
type arguments struct {
	op     *Operation
	diags  *diagnostics
	values map[string]any

	uploads  []body.Upload // files that follow the call, which are among the values too
	salt     []byte
	streamed *body.Streamed // the body that they are parts of
}

// upload adds files that follow the call to the values.
func (a *arguments) upload(files []body.Upload) {
	if len(files) == 0 {
		return
	}
	a.values, a.uploads = maps.Clone(a.values), files
	for _, f := range files {
		at := slices.IndexFunc(a.op.Inputs, func(in Input) bool { return in.Name == f.Input && in.isFile() })
		before, given := a.values[f.Input]
		_, follows := before.(body.Upload)
		switch {
		case given && !(follows && a.op.Inputs[at].Type == TypeFiles):
			a.fault(f.Input, "it is given twice")
		case at < 0:
			a.diags.add("files", "the operation has no input %.64q that is a file or a text", f.Input)
		default:
			a.values[f.Input] = f
		}
	}
}

func (a *arguments) fault(name, format string, args ...any) {
	a.diags.add(strictjson.Join("args", name), format, args...)
}

// check checks the names and types of all arguments, in an order that does not depend on the sender's.
func (a *arguments) check() {
	var unknown []string
	for name := range a.values {
		if a.op.placeOfInput(name) == "" && !a.op.Path.Has(name) || a.op.isCredential(name) {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	for _, name := range unknown {
		a.fault(name, "the operation has no such input")
	}
	op := a.op
	for i := range op.Inputs {
		in := &op.Inputs[i]
		v, has := a.values[in.Name]
		switch {
		case op.isCredential(in.Name):
		case !has && in.Required:
			a.fault(in.Name, "it is missing")
		case !has:
		case !in.hasType(v):
			a.fault(in.Name, "it is not %s", in.wants())
		case in.In != InBody && v == nil:
			a.fault(in.Name, "it is null")
		default:
			a.mistake(in.Name, in.Schema.Check(v))
		}
	}
}

// hasType reports whether a JSON value is of the input's type. An input without one may be anything.
func (in *Input) hasType(v any) bool {
	switch {
	case v == nil && in.Schema != nil && in.Schema.Nullable && in.In == InBody:
		return true
	case in.Type == TypeFile:
		_, follows := v.(body.Upload)
		return follows || body.IsFile(v)
	case in.Type == TypeFiles:
		list, isList := v.([]any)
		_, follows := v.(body.Upload)
		return follows || isList && !slices.ContainsFunc(list, func(v any) bool { return !body.IsFile(v) })
	}
	return schema.IsOfType(v, in.Type)
}

func (in *Input) wants() string {
	switch in.Type {
	case "integer", "array", "object":
		return "an " + in.Type
	case TypeFiles:
		return "a list of files"
	}
	return "a " + in.Type
}

// plainInPath are characters that stand for themselves in a call's path: what [Input].Values may hold is among them.
const plainInPath = "-._~!$&'()*+,=:@"

// path returns the path, with each variable in its place.
func (a *arguments) path() string {
	var b strings.Builder
	for _, s := range a.op.Path.Segments() {
		b.WriteByte('/')
		if s.Name == "" {
			b.WriteString(s.Literal)
			continue
		}
		b.WriteString(s.Literal)
		if a.op.isCredential(s.Name) {
			b.WriteString(credentialPlace + s.After)
			continue
		}
		v, has := a.values[s.Name]
		text, ok := body.Scalar(v)
		switch {
		case !has && a.op.placeOfInput(s.Name) == "", !has && !a.requires(s.Name):
			a.fault(s.Name, "it is missing, and is a part of the path")
		case !has:
		case !ok:
			a.fault(s.Name, "it is no single value, as a part of the path is")
		case s.Rest, s.Slash:
			between := "/"
			if !s.Rest {
				between = "%2F"
			}
			for i, part := range strings.Split(text, "/") {
				if i > 0 {
					b.WriteString(between)
				}
				a.writeSegment(&b, s.Name, part)
			}
		default:
			a.writeSegment(&b, s.Name, text)
		}
		b.WriteString(s.After)
	}
	return b.String()
}

// credentialPlace stands in the path where the proxy puts the credential.
const credentialPlace = "credential"

// isCredential reports whether a variable of the path is the place of the credential, which no argument fills.
func (op *Operation) isCredential(name string) bool {
	return op.Injection != nil && op.Injection.In == InPath && op.Injection.Name == name
}

// requires reports whether an input is declared as required: check has named one that is missing.
func (a *arguments) requires(name string) bool {
	return slices.ContainsFunc(a.op.Inputs, func(in Input) bool { return in.Name == name && in.Required })
}

// writeSegment writes one segment. What another server could read as two, or as another one, is a mistake here: the
// proxy refuses such a path in every spelling (SECURITY cases PTH-*).
func (a *arguments) writeSegment(b *strings.Builder, name, text string) {
	switch {
	case text == "":
		a.fault(name, "it is empty, or has an empty segment, and is a part of the path")
	case text == "." || text == "..":
		a.fault(name, "it is a dot segment of the path")
	case strings.ContainsAny(text, `/\;%`):
		a.fault(name, `it has a slash, a backslash, a semicolon or a percent sign, and is one segment of the path`)
	case plain.HasControl(text):
		a.fault(name, "it has a control character or a broken escape, and is a part of the path")
	}
	b.WriteString(body.Escape(text, plainInPath))
}

// query returns the query, in the order of the inputs.
func (a *arguments) query() string { return a.parameters(body.NewQuery(maxTarget), InQuery) }

// parameters returns the inputs of a place, in their order.
func (a *arguments) parameters(p *body.Parameters, place string) string {
	for _, in := range a.op.Inputs {
		if v, has := a.values[in.Name]; has && in.In == place {
			a.mistake(in.Name, p.Add(in.Name, v, in.Style))
		}
	}
	switch {
	case p.TooLong() && place == InQuery:
		a.diags.add("args", "they make a path and a query of more than %d bytes", maxTarget)
	case p.TooLong():
		a.diags.add("args", tooLong, body.MaxSize)
	}
	return p.String()
}

const tooLong = "they make a body of more than %d bytes"

// mistake records a mistake in an argument, if there is one.
func (a *arguments) mistake(name string, m *strictjson.Mistake) {
	if m != nil {
		a.diags.add(strictjson.Join("args", name)+m.Place, "%s", m.Text)
	}
}
