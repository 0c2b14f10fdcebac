package openapi

import (
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/spec/body"
)

// upgrade makes a document of Swagger 2 one of OpenAPI 3, as far as the reader reads it: where it is, how its clients
// authenticate, and its parameters and bodies. What references lead to stays where it is. A library was weighed: it
// decodes the whole document into structures, and its packages take 5 ms and 1.7 MB of each start of aileron.
func (r *reader) upgrade() {
	r.root.set("servers", list(object("url", text(r.swaggerServer()))))
	schemes := object()
	declared := r.root.get("securityDefinitions")
	for i, name := range declared.objectKeys() {
		schemes.put(name, upgradeScheme(r.resolve(declared.items[i])))
	}
	r.root.set("components", object("securitySchemes", schemes))
	paths := r.root.get("paths")
	for i := range paths.objectKeys() {
		item := r.resolve(paths.items[i])
		for j, key := range item.objectKeys() {
			if slices.Contains(methods, key) {
				r.upgradeOperation(item, r.resolve(item.items[j]))
			}
		}
	}
	for i := range paths.objectKeys() {
		if item := r.resolve(paths.items[i]); item.get("parameters") != nil {
			item.set("parameters", list()) // each operation has them
		}
	}
}

// swaggerServer returns the URL of the API, without a host if the document names none.
func (r *reader) swaggerServer() string {
	host, base := r.root.get("host").scalar(), "/"+strings.TrimPrefix(r.root.get("basePath").scalar(), "/")
	if host == "" {
		return base
	}
	scheme := "https"
	if schemes := r.root.get("schemes").first(maxInputs); len(schemes) > 0 &&
		!slices.ContainsFunc(schemes, func(s *node) bool { return s.scalar() == "https" }) {
		scheme = schemes[0].scalar()
	}
	return scheme + "://" + host + base
}

// swaggerFlows are the names of flows in OpenAPI 3.
var swaggerFlows = map[string]string{"accessCode": "authorizationCode", "application": "clientCredentials"}

// upgradeScheme returns a way to authenticate.
func upgradeScheme(n *node) *node {
	switch n.get("type").scalar() {
	case "basic":
		return object("type", text("http"), "scheme", text("basic"))
	case "oauth2":
		flow := n.get("flow").scalar()
		if name, renamed := swaggerFlows[flow]; renamed {
			flow = name
		}
		return object("type", text("oauth2"), "flows", object(flow, n))
	}
	return n
}

// upgradeOperation makes parameters of the operation and of its path item those of OpenAPI 3, and a body of some.
func (r *reader) upgradeOperation(item, op *node) {
	if op == nil || op.kind != '{' || op.get("requestBody") != nil {
		return
	}
	in := &inputs{reader: r, found: found{item: item, op: op}}
	params, form := list(), object("type", text("object"), "properties", object(), "required", list())
	encoding, hasFile := object(), false
	for _, p := range in.parameters() {
		switch p.get("in").scalar() {
		case "body":
			op.set("requestBody", object("required", p.get("required"), "content", r.contents(op, p.get("schema"))))
		case "formData":
			hasFile = hasFile || p.get("type").scalar() == "file"
			r.upgradeField(p, form, encoding)
		default:
			params.items = append(params.items, upgradeParameter(p))
		}
	}
	op.set("parameters", params)
	if form.get("properties").size() == 0 {
		return
	}
	kind := body.ContentType(body.Form)
	if hasFile || !r.consumes(op, kind) && r.consumes(op, body.ContentType(body.Multipart)) {
		kind = body.ContentType(body.Multipart)
	}
	yes := &node{kind: 'v', text: "true"}
	op.set("requestBody", object("required", yes, "content",
		object(kind, object("schema", form, "encoding", encoding))))
}

// contents returns a body in each of the media types that the operation consumes.
func (r *reader) contents(op, schema *node) *node {
	all := object()
	for _, kind := range r.consumed(op) {
		all.put(kind.scalar(), object("schema", schema))
	}
	if all.size() == 0 {
		all.put(body.ContentType(body.JSON), object("schema", schema))
	}
	return all
}

// consumed returns the media types of bodies of the operation.
func (r *reader) consumed(op *node) []*node {
	own := op.get("consumes")
	if own == nil {
		own = r.root.get("consumes")
	}
	return own.first(maxInputs)
}

func (r *reader) consumes(op *node, kind string) bool {
	return slices.ContainsFunc(r.consumed(op), func(n *node) bool { return strings.HasPrefix(n.scalar(), kind) })
}

// upgradeField adds a parameter of a form to the properties of its body.
func (r *reader) upgradeField(p, form, encoding *node) {
	name := p.get("name").scalar()
	field := upgradeParameter(p)
	schema := field.get("schema")
	if p.get("type").scalar() == "file" {
		schema = object("type", text("string"), "format", text("binary"))
	}
	if about := p.get("description"); about != nil {
		schema.set("description", about)
	}
	form.get("properties").put(name, schema)
	if p.get("required").isTrue() {
		required := form.get("required")
		required.items = append(required.items, text(name))
	}
	if field.get("style") != nil {
		encoding.put(name, field)
	}
}

// collections are the styles of lists, and whether each value is a parameter.
var collections = map[string][2]string{"": {"form", "false"}, "csv": {"form", "false"}, "multi": {"form", "true"},
	"ssv": {"spaceDelimited", "false"}, "pipes": {"pipeDelimited", "false"}, "tsv": {"tabDelimited", "false"}}

// upgradeParameter returns a parameter whose type stands in a schema.
func upgradeParameter(p *node) *node {
	if p.get("schema") != nil {
		return p
	}
	schema := object()
	for _, key := range []string{"type", "format", "items", "enum"} {
		if v := p.get(key); v != nil {
			schema.put(key, v)
		}
	}
	out := object("schema", schema)
	for _, key := range []string{"name", "in", "required", "description"} {
		if v := p.get(key); v != nil {
			out.put(key, v)
		}
	}
	if p.get("type").scalar() == "array" && p.get("in").scalar() != "path" {
		c := collections[p.get("collectionFormat").scalar()]
		out.put("style", text(c[0]))
		out.put("explode", &node{kind: 'v', text: c[1]})
	}
	return out
}

// object returns an object of keys and their values, of which nil ones are left out.
func object(pairs ...any) *node {
	n := &node{kind: '{'}
	for pair := range slices.Chunk(pairs, 2) {
		if v, _ := pair[1].(*node); v != nil {
			n.put(pair[0].(string), v)
		}
	}
	return n
}

func list(items ...*node) *node { return &node{kind: '[', items: items} }

func text(s string) *node { return &node{kind: '"', text: s} }

// set sets the value of a key of an object.
func (n *node) set(key string, v *node) {
	if n.put(key, v) {
		return
	}
	n.items[slices.Index(n.keys, key)] = v
}
