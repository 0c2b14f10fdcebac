package openapi

import (
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/body"
	"github.com/ALRubinger/aileron/spec/internal/foreign"
	"github.com/ALRubinger/aileron/spec/scaffold"
	"github.com/ALRubinger/aileron/spec/schema"
)

// style sets how the value of an input stands in the query, or in a form. It returns why there is no such way, or "".
func (in *inputs) style(input *scaffold.Input, name string, explode *node) (why string) {
	var exploded *bool
	if explode != nil {
		yes := explode.isTrue()
		exploded = &yes
	}
	style, ok := body.StyleOf(name, exploded)
	switch {
	case !ok:
		return "its style is none of OpenAPI's"
	case input.Type == "object" && style != body.Brackets:
		return "an object whose properties would be parameters of their own"
	case style == body.Repeated:
		return ""
	case style == body.Commas:
		no := false
		input.Explode = &no
	default:
		input.Style = name
	}
	if input.Type == "string" || input.Type == "integer" || input.Type == "number" || input.Type == "boolean" {
		input.Style, input.Explode = "", nil // which changes nothing for a single value
	} else {
		input.Values = nil // which a server compares with each of several
	}
	return ""
}

// medium is one of the media types of a body.
type medium struct {
	kind, contentType string
	rank              int // the least is taken
	media             *node
}

// mediumOf returns what a media type of a document is.
func mediumOf(name string, media *node) medium {
	base, _, _ := strings.Cut(strings.ToLower(name), ";")
	base = strings.TrimSpace(base)
	switch {
	case base == "application/json":
		return medium{body.JSON, "", 0, media}
	case base == "application/merge-patch+json":
		return medium{body.JSON, base, 1, media}
	case base == "application/json-patch+json":
		return medium{body.JSON, base, 4, media}
	case body.IsJSON(base):
		return medium{body.JSON, base, 2, media}
	case base == "*/*":
		return medium{body.JSON, "", 3, media}
	case base == body.ContentType(body.Form):
		return medium{body.Form, "", 5, media}
	case base == body.ContentType(body.Multipart):
		return medium{body.Multipart, "", 6, media}
	case base == "text/plain":
		return medium{body.Text, "", 7, media}
	case body.IsMediaType(base) && !strings.Contains(base, "*"):
		return medium{body.Raw, base, 8, media}
	}
	return medium{body.Raw, "", 9, media}
}

// body reads the inputs of a body, of the media type that says most about them.
func (in *inputs) body() {
	declared := in.resolve(in.found.op.get("requestBody"))
	content := declared.get("content")
	if content.size() == 0 {
		return
	}
	if m := in.method; m == "GET" || m == "HEAD" || m == "DELETE" && in.isEmpty(content) {
		if !in.isEmpty(content) {
			in.notes.Add("bodies of requests that have none (GET, HEAD)", in.where)
		}
		return
	}
	var of medium
	for i, name := range content.firstKeys(maxInputs) {
		if m := mediumOf(name, in.resolve(content.items[i])); i == 0 || m.rank < of.rank {
			of = m
		}
	}
	if content.size() > 1 {
		in.notes.Add("other media types of bodies than the one that is made", in.where)
	}
	required := declared.get("required").isTrue()
	whole := in.resolve(of.media.get("schema"))
	p := properties{inputs: in, required: map[string]bool{}, of: map[string]*node{}, seen: map[*node]bool{}}
	if of.kind != body.Text && of.kind != body.Raw {
		p.collect(whole, 0)
	}
	if len(p.names) == 0 {
		in.whole(of, whole, required)
		return
	}
	if in.op.ContentType = of.contentType; of.kind != body.JSON {
		in.op.Body = of.kind
	}
	for _, name := range p.names {
		in.property(of, name, p.of[name], required && p.required[name])
	}
}

// isEmpty reports whether no media type of a body has properties, as documents declare it of each operation.
func (in *inputs) isEmpty(content *node) bool {
	return !slices.ContainsFunc(content.items, func(media *node) bool {
		whole := in.resolve(in.resolve(media).get("schema"))
		return whole.get("type").scalar() != "object" || whole.get("properties").size() > 0 || whole.get("allOf") != nil
	})
}

// property reads a property of a body as an input.
func (in *inputs) property(of medium, name string, declared *node, required bool) {
	value, shown := in.resolve(declared), in.where+" "+foreign.Clean(name, 60)
	switch {
	case value.get("readOnly").isTrue():
		return
	case in.taken[name]:
		in.notes.Add("inputs of a body that have the name of one in the query", shown)
		return
	}
	input := in.describe(name, value, nil)
	input.Required, input.Values, input.In = required, nil, spec.InBody
	input.Schema = in.nested(value, schema.MaxLevels)
	encoding := in.resolve(of.media.get("encoding").get(name))
	switch {
	case of.kind == body.Form:
		style := encoding.get("style").scalar()
		if style == "" && in.nests(input, value) {
			in.notes.Add("objects in forms whose syntax the document does not name: taken for name[key]=value", shown)
			style = "deepObject"
		}
		if why := in.style(&input, style, encoding.get("explode")); why != "" {
			in.notes.Add("inputs of a form that are "+why, shown)
			return
		}
	case of.kind == body.Multipart && in.fileType(value) != "":
		input.Schema = nil
		input.Type = in.fileType(value)
	case of.kind == body.Multipart && encoding.get("style").scalar() == "deepObject":
		if why := in.style(&input, "deepObject", encoding.get("explode")); why != "" {
			in.notes.Add("inputs of a form that are "+why, shown)
			return
		}
	}
	in.add(input)
}

// nests reports whether a form has a value of the schema under keys in brackets.
func (in *inputs) nests(input scaffold.Input, value *node) bool {
	return input.Type == "object" || input.Type == "array" && in.typeOf(in.resolve(value.get("items")), 0) == "object"
}

// fileType returns the type of an input of a schema that is a file or a list of files, or of one that is several such
// schemas (oneOf, anyOf); "" for others.
func (in *inputs) fileType(value *node) string {
	kind := ""
	forms := append(value.get("oneOf").first(maxInputs), value.get("anyOf").first(maxInputs)...)
	for _, form := range append(forms, value) {
		form = in.resolve(form)
		switch {
		case form == value && len(forms) > 0:
		case in.typeOf(form, 0) == "array" && in.isFile(in.resolve(form.get("items"))):
			kind = spec.TypeFiles
		case !in.isFile(form):
			return ""
		case kind == "":
			kind = spec.TypeFile
		}
	}
	return kind
}

// isFile reports whether a schema is one of bytes.
func (in *inputs) isFile(value *node) bool {
	kind := in.typeOf(value, 0)
	return kind == spec.TypeFile || (kind == "string" || kind == "") && (value.get("format").scalar() == "binary" ||
		value.get("contentMediaType") != nil && value.get("contentEncoding") == nil)
}

// whole makes one input of a body that is no object with properties.
func (in *inputs) whole(of medium, declared *node, required bool) {
	name := "body"
	for in.taken[name] || slices.ContainsFunc(in.op.Inputs, func(i scaffold.Input) bool { return i.Name == name }) {
		name += "_"
	}
	input := in.describe(name, declared, nil)
	input.Required, input.Values, input.In = required, nil, spec.InBody
	input.Schema = in.nested(declared, schema.MaxLevels)
	in.op.Body, in.op.ContentType = of.kind, of.contentType
	switch of.kind {
	case body.JSON:
		in.op.Body = body.Raw
		if in.op.ContentType == "" {
			in.op.ContentType = body.ContentType(body.JSON)
		}
	case body.Text:
		input.Type = "string"
	case body.Raw:
		input.Type, input.Schema = spec.TypeFile, nil
	default:
		in.op.Body, in.op.ContentType = "", ""
		in.notes.Add("inputs of forms that are not an object with properties: such a request is sent with an HTTP client",
			in.where)
		return
	}
	in.add(input)
}
