package spec

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/spec/body"
	"github.com/ALRubinger/aileron/spec/internal/plain"
	"github.com/ALRubinger/aileron/spec/schema"
)

// The types of an input that is a file, in a body of several parts or as the whole of one, and of several files, which
// are parts of one name.
const (
	TypeFile  = "file"
	TypeFiles = "files"
)

// isFile reports whether the input is a file, or several.
func (in *Input) isFile() bool { return in.Type == TypeFile || in.Type == TypeFiles }

// readBody reads body and content_type. The method and the inputs must have been read.
func (op *Operation) readBody(n node) {
	op.Body = n.choice("body", body.Kinds()...)
	op.ContentType = n.text("content_type", false)
	kind, at := cmp.Or(op.Body, body.JSON), n.at("body")
	if op.Body != "" && op.bodiless() {
		n.diags.add(at, "a %s request has no body", op.Method)
	}
	inputs := 0
	for i := range op.Inputs {
		in := &op.Inputs[i]
		where := n.item("inputs", i)
		if in.In != InBody {
			if in.isFile() {
				n.diags.add(where, "a file stands in a body, not in the %s", in.In)
			}
			continue
		}
		inputs++
		switch {
		case in.Type == TypeFile && kind != body.Multipart && kind != body.Raw:
			n.diags.add(where, `a file needs "body": "multipart" or "raw"`)
		case in.Type == TypeFiles && kind != body.Multipart:
			n.diags.add(where, `several files need "body": "multipart"`)
		case in.Style == body.Brackets && kind == body.Multipart && !in.isFile():
		case in.Style != body.Repeated && kind != body.Form:
			n.diags.add(where, `the style of an input of the body needs "body": "form"; "multipart" has deepObject alone`)
		case in.Type == "object" && kind == body.Form && in.Style != body.Brackets:
			n.diags.add(where, `an object in a form needs "style": "deepObject"`)
		case kind == body.Text && in.Type != "string",
			kind == body.Raw && in.Type != TypeFile && !body.IsJSON(op.ContentType):
			n.diags.add(where, "its type is %s, which cannot be the whole of a body", cmp.Or(in.Type, "any"))
		}
	}
	if whole := kind == body.Text || kind == body.Raw; whole && inputs != 1 {
		n.diags.add(at, "it is %q, which one input is the whole of, and %d have their place in the body", kind, inputs)
	}
	op.checkContentType(n, kind)
}

// checkContentType checks content_type, for a kind of body.
func (op *Operation) checkContentType(n node, kind string) {
	at := n.at("content_type")
	if _, has := n.o.Get("content_type"); !has {
		return
	}
	switch {
	case op.bodiless():
		n.diags.add(at, "a %s request has no body", op.Method)
	case kind == body.Form || kind == body.Multipart:
		n.diags.add(at, "that of a body that is a %s is fixed", kind)
	case !body.IsMediaType(op.ContentType):
		n.diags.add(at, "%q is not a media type, such as text/markdown", op.ContentType)
	case body.IsForm(op.ContentType):
		n.diags.add(at, `%q is a form, which needs "body": "form" or "multipart"`, op.ContentType)
	case kind == body.JSON && !body.IsJSON(op.ContentType):
		n.diags.add(at, "%q is not a media type of JSON, such as application/merge-patch+json", op.ContentType)
	}
}

// readStyle reads the style and the schema of an input, whose type and place must have been read. left is what is left
// of the size of the operation's schemas.
func (in *Input) readStyle(n node, left *int) {
	var explode *bool
	if _, has := n.o.Get("explode"); has {
		b := n.flag("explode")
		explode = &b
	}
	name := n.choice("style", body.StyleNames()...)
	style, ok := body.StyleOf(name, explode)
	switch {
	case !ok:
		n.diags.add(n.at("explode"), "it is false, and the style deepObject has a parameter for each value")
	case (name != "" || explode != nil) && in.In == InPath:
		n.diags.add(n.at("style"), "a variable of the path has none")
	case style != body.Repeated && len(in.Values) > 0:
		n.diags.add(n.at("values"), "only an input whose values are a parameter each can declare them")
	}
	in.Style = style
	v, has := n.o.Get("schema")
	if !has {
		return
	}
	in.Schema = schema.Read(v, left, isText, n.diags.pathless, func(place, message string) {
		n.diags.add(n.at("schema")+place, "%s", message)
	})
	switch {
	case in.In == InPath || in.isFile():
		n.diags.add(n.at("schema"), "neither a variable of the path nor a file has one")
	case in.Type == "":
		in.Type = in.Schema.Type
	case in.Schema.Type != in.Type && in.Schema.Type != "":
		n.diags.add(n.at("schema"), "its type is %q, and the input's is %q", in.Schema.Type, in.Type)
	}
}

// isText reports whether s has no control character.
func isText(s string) bool { return !plain.HasControl(s) }

// checkNames records inputs of one place of which one has a parameter of the other.
func (op *Operation) checkNames(n node) {
	for i := range op.Inputs {
		for j := range op.Inputs {
			a, b := &op.Inputs[i], &op.Inputs[j]
			if i == j || a.In != b.In || a.Style != body.Brackets || !strings.HasPrefix(b.Name, a.Name+"[") {
				continue
			}
			n.diags.add(n.item("inputs", j), "%q is a parameter of %q, which has a key in brackets", b.Name, a.Name)
		}
	}
}

// isParameterName reports whether s can be the name of an input: a plain one, with keys in brackets behind it, as in
// created[gte] and expand[].
func isParameterName(s string) bool {
	base, rest, bracket := strings.Cut(s, "[")
	for bracket {
		var key string
		key, rest, bracket = strings.Cut(rest, "]")
		if !bracket || key != "" && !plain.IsName(strings.TrimLeft(key, "_"), "._:-") || rest != "" && rest[0] != '[' {
			return false
		}
		_, rest, bracket = strings.Cut(rest, "[")
	}
	return len(s) <= 100 && IsInputName(base)
}

// declares reports whether a name in the query or in a form is a parameter of an input in that place.
func (op *Operation) declares(place, name string) bool {
	for i := range op.Inputs {
		in := &op.Inputs[i]
		if in.In != place {
			continue
		}
		if keys, ok := in.Style.Keys(in.Name, name); ok && (len(keys) == 0 || in.Schema.Admits(keys)) {
			return true
		}
	}
	return false
}

// DeclaresQuery reports whether an input has its place in the query under that name.
func (op *Operation) DeclaresQuery(name string) bool { return op.declares(InQuery, name) }

// DeclaresForm reports whether an input of a body that is a form has a parameter of that name.
func (op *Operation) DeclaresForm(name string) bool { return op.declares(InBody, name) }

// body returns the inputs of the body and its media type, or nil if the operation has none.
func (a *arguments) body() (content []byte, contentType string) {
	op := a.op
	kind := cmp.Or(op.Body, body.JSON)
	contentType = cmp.Or(op.ContentType, body.ContentType(kind))
	inputs := op.BodyInputs()
	isGiven := func(name string) bool { _, has := a.values[name]; return has }
	if len(inputs) == 0 || op.Method == "DELETE" && !slices.ContainsFunc(inputs, isGiven) {
		return nil, ""
	}
	switch kind {
	case body.Form:
		return []byte(a.parameters(body.NewForm(body.MaxSize), InBody)), contentType
	case body.Multipart:
		return a.parts()
	case body.Text, body.Raw:
		return a.whole(inputs[0], contentType)
	}
	given := map[string]any{}
	for _, name := range inputs {
		if v, has := a.values[name]; has {
			given[name] = v
		}
	}
	return encode(given), contentType
}

// encode returns a value that was read from JSON as JSON.
func encode(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// parts returns a body of several parts, in the order of the inputs.
func (a *arguments) parts() (content []byte, contentType string) {
	all := body.NewParts(body.MaxSize)
	for _, in := range a.op.Inputs {
		v, has := a.values[in.Name]
		_, follows := v.(body.Upload)
		switch {
		case !has || in.In != InBody || follows:
		case in.isFile():
			a.mistake(in.Name, all.AddFiles(in.Name, v))
		default:
			a.mistake(in.Name, all.Add(in.Name, v, in.Style))
		}
	}
	if all.TooLong() {
		a.diags.add("args", tooLong, body.MaxSize)
	}
	if len(a.uploads) > 0 {
		a.streamed, contentType = body.JoinStreamed(all.List(), a.uploads, a.salt)
		return nil, contentType
	}
	return body.Join(all.List())
}

// whole returns the body that one input is: a file, a text, or any value as JSON.
func (a *arguments) whole(name, contentType string) ([]byte, string) {
	v, has := a.values[name]
	isFile := slices.ContainsFunc(a.op.Inputs, func(in Input) bool { return in.Name == name && in.Type == TypeFile })
	switch {
	case !has:
		return []byte{}, contentType
	case !isFile && a.op.Body == body.Raw:
		return encode(v), contentType
	}
	asked := ""
	if o, isObject := v.(map[string]any); isObject {
		asked, _ = o["content_type"].(string)
	}
	if len(a.uploads) > 0 {
		asked = a.uploads[0].Type
	}
	if asked != "" && asked != contentType {
		a.fault(name, "its content_type is not %s, which is that of the operation", contentType)
	}
	if len(a.uploads) > 0 {
		a.streamed = body.StreamedFile(a.uploads[0])
		return nil, contentType
	}
	f, m := body.FileOf(name, v)
	a.mistake(name, m)
	return f.Content, contentType
}
