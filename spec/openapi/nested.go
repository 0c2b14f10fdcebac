package openapi

import (
	"encoding/json"
	"slices"

	"github.com/ALRubinger/aileron/spec/internal/foreign"
	"github.com/ALRubinger/aileron/spec/scaffold"
	"github.com/ALRubinger/aileron/spec/schema"
)

const (
	maxChoices    = 100 // values of an enumeration that are declared
	maxProperties = 256 // of an object that nests in an input
	maxNestedText = 80  // bytes of a description in a schema
)

// nestedKey is a schema of the document, of which so many levels are read.
type nestedKey struct {
	of     *node
	levels int
}

// nested returns what nests in a value of a schema. Schemas that refer to each other share what is made of them, so
// that the time is that of reading each once a level.
func (in *inputs) nested(of *node, levels int) *schema.Schema {
	of = in.resolve(of)
	if of == nil || levels == 0 {
		return nil
	}
	key := nestedKey{of, levels}
	if made := in.made[key]; made != nil {
		return made
	}
	if in.made == nil {
		in.made = map[nestedKey]*schema.Schema{}
	}
	in.steps++
	s := &schema.Schema{Type: in.typeOf(of, 0), Nullable: isNullable(of)}
	in.made[key] = s
	if levels < schema.MaxLevels {
		s.Description = foreign.Clean(of.get("description").scalar(), maxNestedText)
	}
	if s.Type == "" {
		s.Nullable = false
	}
	switch s.Type {
	case "string", "integer", "number", "boolean":
		s.Enum = choices(of, s)
	case "array":
		s.Items = in.nested(of.get("items"), levels-1)
	case "object":
		in.nestedObject(s, of, levels)
	}
	return s
}

// nestedObject sets the properties of an object.
func (in *inputs) nestedObject(s *schema.Schema, of *node, levels int) {
	p := properties{inputs: in, required: map[string]bool{}, of: map[string]*node{}, seen: map[*node]bool{}, quiet: true}
	p.collect(of, 0)
	whole := len(p.names) <= maxProperties && len(p.seen) == 1 && !p.several
	for _, name := range p.names[:min(len(p.names), maxProperties)] {
		value := in.resolve(p.of[name])
		switch {
		case value.get("readOnly").isTrue():
			continue
		case name == "" || len(name) > 200 || foreign.Clean(name, 200) != name:
			whole = false
			continue
		}
		made := in.nested(value, levels-1)
		if made == nil {
			made = &schema.Schema{}
		}
		s.Properties = append(s.Properties, schema.Property{Name: name, Schema: made})
		if p.required[name] && !p.several {
			s.Required = append(s.Required, name)
		}
	}
	more := of.get("additionalProperties")
	s.Closed = whole && more != nil && more.kind == 'v' && !more.isTrue() && of.get("patternProperties") == nil
}

// isNullable reports whether null is a value beside the type's.
func isNullable(of *node) bool {
	return of.get("nullable").isTrue() || slices.ContainsFunc(of.get("type").first(maxInputs), func(t *node) bool {
		return t.scalar() == "null"
	})
}

// choices returns the values of an enumeration, nil if there are too many or one of another type.
func choices(of *node, s *schema.Schema) []any {
	list := of.get("enum").first(maxChoices + 1)
	if constant := of.get("const"); constant != nil {
		list = []*node{constant}
	}
	if len(list) > maxChoices {
		return nil
	}
	var all []any
	for _, v := range list {
		var value any
		switch text := v.scalar(); {
		case v.kind == 'v' && text == "": // null
			if s.Nullable {
				continue
			}
			return nil
		case s.Type == "string" && foreign.Clean(text, maxText) == text:
			value = text
		case s.Type == "boolean" && (text == "true" || text == "false"):
			value = text == "true"
		case (s.Type == "integer" || s.Type == "number") && v.kind == 'v' && json.Valid([]byte(text)):
			value = json.Number(text)
		default:
			return nil
		}
		if !slices.Contains(all, value) {
			all = append(all, value)
		}
	}
	return all
}

// cut bounds the schemas of an operation to so many levels, and to fewer if they would be too large.
func cut(c *schema.Cutter, op *scaffold.Operation, levels int) (cut bool) {
	whole := make([]*schema.Schema, len(op.Inputs))
	for i := range op.Inputs {
		whole[i] = op.Inputs[i].Schema
	}
	for ; ; levels-- {
		size := 0
		for i := range op.Inputs {
			op.Inputs[i].Schema = c.Cut(whole[i], levels)
			size += c.Size(op.Inputs[i].Schema)
		}
		if size <= schema.MaxSize || levels <= 0 {
			return levels < schema.MaxLevels
		}
	}
}
