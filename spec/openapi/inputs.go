package openapi

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/internal/foreign"
	"github.com/ALRubinger/aileron/spec/scaffold"
)

func itoa(i int) string { return strconv.Itoa(i) }

// maxInputs is the most that an operation may have.
const maxInputs = 256

// inputs reads the inputs of an operation, and its path, whose variables they name.
type inputs struct {
	*reader
	found
	op    *scaffold.Operation
	taken map[string]bool
}

func (in *inputs) read(base string) {
	in.taken = map[string]bool{}
	params := in.parameters()
	for _, p := range params {
		if p.get("in").scalar() != "path" {
			in.taken[p.get("name").scalar()] = true // these are the service's, and those of variables are not
		}
	}
	variables := in.readPath(base)
	byName := map[string]*node{}
	for _, p := range params {
		if p.get("in").scalar() == "path" {
			byName[p.get("name").scalar()] = p
		}
	}
	for _, v := range variables {
		in.add(in.variable(v, byName[v.name]))
	}
	for _, p := range params {
		in.parameter(p)
	}
	for _, name := range in.opts.Query {
		if !in.taken[name] {
			in.taken[name] = true
			in.add(scaffold.Input{Name: name, In: spec.InQuery})
		}
	}
	in.body()
}

// parameters returns the parameters of the path item and of the operation, of which the latter have precedence.
func (in *inputs) parameters() []*node {
	var all []*node
	at := map[string]int{}
	for _, owner := range []*node{in.item, in.found.op} {
		for _, p := range owner.get("parameters").first(2 * maxInputs) {
			if p = in.resolve(p); p == nil {
				continue
			}
			key := p.get("in").scalar() + " " + p.get("name").scalar()
			if i, has := at[key]; has {
				all[i] = p
				continue
			}
			at[key] = len(all)
			all = append(all, p)
		}
	}
	return all
}

// variable is a variable of the path: its name in the document, and in the connector.
type variable struct{ name, safe string }

// readPath sets the operation's path, with names of variables that a connector may have.
func (in *inputs) readPath(base string) []variable {
	var vars []variable
	parts := strings.Split(base+in.path, "/")
	for i, part := range parts {
		before, name, after, ok := cutVariable(part)
		if !ok {
			continue
		}
		safe := strings.ReplaceAll(foreign.SafeName(name), ":", "-")
		if safe == "" {
			safe = "variable-" + itoa(i)
		}
		for in.taken[safe] {
			safe = "path_" + safe
		}
		safe = safe[:min(len(safe), 90)]
		in.taken[safe] = true
		vars = append(vars, variable{name, safe})
		parts[i] = before + "{" + safe + "}" + after
	}
	in.op.Path = strings.Join(parts, "/")
	in.op.Slash = in.isBare()
	return vars
}

// isBare reports whether the path has a slash at its end, and the document has no path without it: clients leave it
// out, as kubectl does of /api/, and servers take both for the same. Where the document has both, each is its own.
func (in *inputs) isBare() bool {
	if in.bare == nil {
		in.bare = map[string]bool{}
		for _, path := range in.root.get("paths").objectKeys() {
			in.bare[shapeOf(path)] = true
		}
	}
	path, ok := strings.CutSuffix(in.path, "/")
	return ok && path != "" && !in.bare[shapeOf(path)]
}

// cutVariable returns the name of the only variable of a segment, and what stands around it.
func cutVariable(segment string) (before, name, after string, ok bool) {
	before, name, begins := strings.Cut(segment, "{")
	name, after, ends := strings.Cut(name, "}")
	return before, name, after, begins && ends && !strings.ContainsAny(before+name+after, "{}")
}

// variable returns the input of a variable of the path; p may be nil.
func (in *inputs) variable(v variable, p *node) scaffold.Input {
	input := in.describe(v.safe, p.get("schema"), p)
	input.Required = true
	if input.Type == "array" || input.Type == "object" {
		input.Type = "string"
	}
	return input
}

// describe returns an input of the schema, whose description may be that of the parameter.
func (in *inputs) describe(name string, schema, p *node) scaffold.Input {
	text := p.get("description").scalar()
	schema = in.resolve(schema)
	if text == "" {
		text = schema.get("description").scalar()
	}
	input := scaffold.Input{Name: name, Type: in.typeOf(schema, 0), Description: in.prose.text(text, maxDescription)}
	input.Values = in.values(schema)
	if input.Type == "array" {
		input.Values = in.values(in.resolve(schema.get("items")))
	}
	return input
}

// add adds an input, unless there are too many.
func (in *inputs) add(input scaffold.Input) {
	if len(in.op.Inputs) == maxInputs {
		in.notes.Add(fmt.Sprintf("inputs beyond %d of an operation", maxInputs), in.where)
		return
	}
	in.op.Inputs = append(in.op.Inputs, input)
}

// parameter reads a parameter that is not in the path.
func (in *inputs) parameter(p *node) {
	name, place := p.get("name").scalar(), p.get("in").scalar()
	shown := foreign.Clean(name, 60)
	switch place {
	case "path":
	case "cookie":
		in.notes.Add("cookies", shown)
	case "header":
		if lower := strings.ToLower(name); lower != "accept" && lower != "content-type" && lower != "authorization" {
			in.notes.Add("request fields, which may act for another user: to let one pass, name it in \"headers\"", shown)
		}
	case "query":
		if in.scheme != nil && in.scheme.inject != nil && in.scheme.inject.In == "query" && in.scheme.inject.Name == name {
			return // the place of the credential
		}
		input := in.describe(name, p.get("schema"), p)
		input.Required, input.In = p.get("required").isTrue(), spec.InQuery
		if why := in.style(&input, p.get("style").scalar(), p.get("explode")); why != "" || p.get("content") != nil {
			in.notes.Add("inputs of the query with a syntax of their own", in.where+" "+shown)
			return
		}
		in.add(input)
	default:
		in.notes.Add("parameters at a place that OpenAPI does not have", in.where+" "+shown)
	}
}

// The bounds of schemas that are combined to one (allOf).
const (
	maxCombined = 8   // in each other
	maxSchemas  = 256 // of a body
)

// properties collects the properties of an object.
type properties struct {
	*inputs
	names    []string
	of       map[string]*node
	required map[string]bool
	seen     map[*node]bool // schemas that were collected
	several  bool           // some are of one of several forms
	quiet    bool           // nothing is noted
}

func (p *properties) collect(schema *node, depth int) {
	schema = p.resolve(schema)
	if p.seen[schema] {
		return
	}
	p.seen[schema] = true
	p.steps++
	p.several = p.several || schema.get("oneOf").size()+schema.get("anyOf").size() > 0
	if depth > maxCombined || len(p.seen) > maxSchemas {
		if p.several = true; p.quiet {
			return
		}
		p.notes.Add("inputs of schemas that are combined too deeply", p.where)
		return
	}
	props := schema.get("properties")
	for i, name := range props.firstKeys(4 * maxInputs) {
		if p.of[name] == nil && len(p.names) <= maxInputs {
			p.names = append(p.names, name)
			p.of[name] = props.items[i]
		}
	}
	for _, name := range schema.get("required").first(4 * maxInputs) {
		p.required[name.scalar()] = true
	}
	for _, part := range schema.get("allOf").first(2 * maxSchemas) {
		p.collect(part, depth+1)
	}
	if schema.get("oneOf").size()+schema.get("anyOf").size() > 0 && !p.quiet {
		p.notes.Add("inputs of a body that has one of several forms (oneOf, anyOf)", p.where)
	}
}

// types are those that an input may have.
var types = []string{"string", "integer", "number", "boolean", "array", "object"}

// typeOf returns the type of a schema, or "" for several, or none that is known.
func (in *inputs) typeOf(schema *node, depth int) string {
	declared := schema.get("type")
	names := []string{declared.scalar()}
	for _, t := range declared.first(maxInputs) { // OpenAPI 3.1
		names = append(names, t.scalar())
	}
	names = slices.DeleteFunc(names, func(t string) bool { return !slices.Contains(types, t) })
	switch all := schema.get("allOf").first(1); {
	case len(names) == 1:
		return names[0]
	case len(names) > 1:
		return ""
	case schema.get("properties") != nil:
		return "object"
	case schema.get("items") != nil:
		return "array"
	case len(all) > 0 && depth < maxCombined:
		in.steps++
		return in.typeOf(in.resolve(all[0]), depth+1)
	}
	return ""
}

// values returns the values of an enumeration, if all of them can be declared.
func (in *inputs) values(schema *node) []string {
	list := schema.get("enum").first(maxInputs + 1)
	if constant := schema.get("const"); constant != nil {
		list = []*node{constant}
	}
	var values []string
	for _, v := range list {
		text := v.scalar()
		if v.size() > 0 || len(list) > maxInputs || text != "" && !isPlain(text) {
			return nil
		}
		if text != "" && !slices.Contains(values, text) {
			values = append(values, text)
		}
	}
	return values
}

// isPlain reports whether a value stands in a path and in a query in one spelling.
func isPlain(text string) bool {
	return len(text) <= 200 && !strings.ContainsFunc(text, func(c rune) bool {
		alnum := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		return !alnum && !strings.ContainsRune("-._~!$'(),:@", c)
	})
}
