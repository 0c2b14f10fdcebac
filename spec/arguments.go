package spec

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// arguments are those of one call.
type arguments struct {
	op     *Operation
	diags  *diagnostics
	values map[string]any
}

func (a *arguments) fault(name, format string, args ...any) {
	a.diags.add(join("args", name), format, args...)
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
		}
	}
}

// hasType reports whether a JSON value is of the input's type. An input without one may be anything.
func (in *Input) hasType(v any) bool {
	switch t := v.(type) {
	case string:
		return in.Type == "" || in.Type == "string"
	case json.Number:
		return in.Type == "" || in.Type == "number" ||
			in.Type == "integer" && !strings.ContainsAny(t.String(), ".eE")
	case bool:
		return in.Type == "" || in.Type == "boolean"
	case []any:
		return in.Type == "" || in.Type == "array"
	case map[string]any:
		return in.Type == "" || in.Type == "object"
	}
	return in.Type == ""
}

func (in *Input) wants() string {
	switch in.Type {
	case "integer", "array", "object":
		return "an " + in.Type
	}
	return "a " + in.Type
}

// scalar returns the text of a string, number or boolean.
func scalar(v any) (text string, ok bool) {
	switch t := v.(type) {
	case string:
		return t, true
	case json.Number:
		return t.String(), true
	case bool:
		return strconv.FormatBool(t), true
	}
	return "", false
}

// The characters that stand for themselves in a call's path and query: what [Input].Values may hold is among them.
const (
	plainInPath  = "-._~!$&'()*+,=:@"
	plainInQuery = "-._~!$'(),:@/"
)

// path returns the path, with each variable in its place.
func (a *arguments) path() string {
	var b strings.Builder
	for _, s := range a.op.Path.segments {
		b.WriteByte('/')
		if s.name == "" {
			b.WriteString(s.literal)
			continue
		}
		if a.op.isCredential(s.name) {
			b.WriteString(credentialPlace)
			continue
		}
		v, has := a.values[s.name]
		text, ok := scalar(v)
		switch {
		case !has && a.op.placeOfInput(s.name) == "", !has && !a.requires(s.name):
			a.fault(s.name, "it is missing, and is a part of the path")
		case !has:
		case !ok:
			a.fault(s.name, "it is no single value, as a part of the path is")
		case s.rest, s.slash:
			between := "/"
			if !s.rest {
				between = "%2F"
			}
			for i, part := range strings.Split(text, "/") {
				if i > 0 {
					b.WriteString(between)
				}
				a.writeSegment(&b, s.name, part)
			}
		default:
			a.writeSegment(&b, s.name, text)
		}
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
	case hasControl(text):
		a.fault(name, "it has a control character or a broken escape, and is a part of the path")
	}
	b.WriteString(escape(text, plainInPath))
}

// query returns the query, in the order of the inputs. A list is its name once for each value.
func (a *arguments) query() string {
	var pairs []string
	for _, in := range a.op.Inputs {
		v, has := a.values[in.Name]
		if !has || in.In != InQuery {
			continue
		}
		list, isList := v.([]any)
		if !isList {
			list = []any{v}
		}
		for _, item := range list {
			text, ok := scalar(item)
			switch {
			case !ok && v != nil:
				a.fault(in.Name, "it is in the query, where values are strings, numbers, booleans and lists of them")
			case strings.ContainsRune(text, utf8.RuneError) || strings.ContainsRune(text, 0):
				a.fault(in.Name, "it has a NUL or a broken escape")
			}
			pairs = append(pairs, escape(in.Name, plainInQuery)+"="+escape(text, plainInQuery))
		}
	}
	return strings.Join(pairs, "&")
}

// body returns the inputs of the body as a JSON object, or nil if the operation has none.
func (a *arguments) body() []byte {
	inputs := a.op.BodyInputs()
	if len(inputs) == 0 {
		return nil
	}
	given := map[string]any{}
	for _, name := range inputs {
		if v, has := a.values[name]; has {
			given[name] = v
		}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(given) // it was read from JSON
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// escape returns text with every byte escaped that is neither a letter, a digit nor among plain.
func escape(text, plain string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(text) {
		if c := text[i]; isAlnum(c) || strings.IndexByte(plain, c) >= 0 {
			b.WriteByte(c)
		} else {
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		}
	}
	return b.String()
}
