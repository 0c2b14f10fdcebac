// Package schema is what an input of an operation may be, where a type alone does not tell: a bounded subset of JSON
// Schema.
//
// [Read] reads a schema of a specification, and [Schema.Check] checks a value:
//
//	s := schema.Read(v, &left, isText, false, func(place, message string) { … })
//	if m := s.Check(value); m != nil {
//		return fmt.Errorf("args.item%s: %s", m.Place, m.Text)
//	}
//
// The keys are type, description, enum, properties, required, additionalProperties and items; any other is an error,
// so that no rule is read over. A schema refers to no other, and nests at most [MaxLevels] deep.
package schema

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/spec/internal/strictjson"
)

// The bounds of schemas.
const (
	MaxLevels = 8        // in each other
	MaxSize   = 64 << 10 // bytes of the schemas of an operation, as compact JSON
	maxNames  = 512      // properties of an object, or values of an enumeration
	maxText   = 1024     // bytes of a description or a name
)

// Types are those of a value.
var Types = []string{"string", "integer", "number", "boolean", "array", "object"}

// Schema is what a value may be. The zero value is anything.
type Schema struct {
	Type        string // one of Types; "": any
	Nullable    bool   // null is allowed beside the Type
	Description string
	Enum        []any // a string, json.Number, bool or nil each; empty: any value

	Properties []Property // of an object, in their order
	Required   []string   // names of them
	Closed     bool       // no other property is allowed
	Items      *Schema    // of a list; nil: anything

	byName map[string]int // index in many Properties
}

// Property is a property of an object.
type Property struct {
	Name   string
	Schema *Schema
}

// manyProperties is the number of properties from which on a schema has a map of them.
const manyProperties = 8

// property returns the schema of a property, nil if it is not declared.
func (s *Schema) property(name string) *Schema {
	if s.byName != nil {
		if i, known := s.byName[name]; known {
			return s.Properties[i].Schema
		}
		return nil
	}
	for i := range s.Properties {
		if s.Properties[i].Name == name {
			return s.Properties[i].Schema
		}
	}
	return nil
}

// Admits reports whether a value of the schema may have something at these keys, one below the other, as the names in
// the brackets of a form write them. An index of a list, or nothing for its next entry, is a key.
func (s *Schema) Admits(keys []string) bool {
	for _, key := range keys {
		switch {
		case s == nil || s.Type == "":
			return true
		case s.Type == "array":
			if strings.Trim(key, "0123456789") != "" {
				return false
			}
			s = s.Items
		case s.Type != "object":
			return false
		default:
			of := s.property(key)
			if of == nil && s.Closed {
				return false
			}
			s = of
		}
	}
	return true
}

// Check returns the first mistake in a value, nil if there is none: a string, json.Number, bool, nil, []any or
// map[string]any. The properties of an object are checked in the order of the schema.
func (s *Schema) Check(v any) *strictjson.Mistake {
	if s == nil || v == nil && s.Nullable {
		return nil
	}
	if !IsOfType(v, s.Type) {
		return &strictjson.Mistake{Text: "it is not " + article(s.Type)}
	}
	if len(s.Enum) > 0 && !slices.ContainsFunc(s.Enum, func(e any) bool { return isSame(e, v) }) {
		return &strictjson.Mistake{Text: "it is not one of " + s.Choices()}
	}
	switch t := v.(type) {
	case []any:
		if s.Items == nil {
			return nil
		}
		for i := range t {
			if m := s.Items.Check(t[i]); m != nil {
				return m.At(i)
			}
		}
	case map[string]any:
		return s.checkObject(t)
	}
	return nil
}

func (s *Schema) checkObject(o map[string]any) *strictjson.Mistake {
	for _, name := range s.Required {
		if _, has := o[name]; !has {
			return (&strictjson.Mistake{Text: "it is missing"}).In(name)
		}
	}
	if m := s.checkProperties(o); m != nil || !s.Closed {
		return m
	}
	var unknown []string
	for name := range o {
		if s.property(name) == nil {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	return (&strictjson.Mistake{Text: "there is no such property"}).In(slices.Min(unknown))
}

// checkProperties checks the values of declared properties. Of one with fewer names than are declared, its own are
// looked up: many small objects take no longer than they are.
func (s *Schema) checkProperties(o map[string]any) *strictjson.Mistake {
	if s.byName == nil || len(o) >= len(s.Properties) {
		for i := range s.Properties {
			if m := s.Properties[i].check(o); m != nil {
				return m
			}
		}
		return nil
	}
	var own []int // index of each property that it has
	for name := range o {
		if i, known := s.byName[name]; known {
			own = append(own, i)
		}
	}
	slices.Sort(own)
	for _, i := range own {
		if m := s.Properties[i].check(o); m != nil {
			return m
		}
	}
	return nil
}

// check checks the value that an object has for the property, if it has one.
func (p *Property) check(o map[string]any) *strictjson.Mistake {
	v, has := o[p.Name]
	if !has {
		return nil
	}
	if m := p.Schema.Check(v); m != nil {
		return m.In(p.Name)
	}
	return nil
}

// IsOfType reports whether a value of JSON is of a type; "" is any.
func IsOfType(v any, kind string) bool {
	switch t := v.(type) {
	case string:
		return kind == "" || kind == "string"
	case json.Number:
		return kind == "" || kind == "number" || kind == "integer" && !strings.ContainsAny(t.String(), ".eE")
	case bool:
		return kind == "" || kind == "boolean"
	case []any:
		return kind == "" || kind == "array"
	case map[string]any:
		return kind == "" || kind == "object"
	}
	return kind == ""
}

// article returns a type with its article.
func article(kind string) string {
	switch kind {
	case "integer", "array", "object":
		return "an " + kind
	}
	return "a " + kind
}

// isSame compares a scalar of an enumeration with a value.
func isSame(e, v any) bool {
	switch v.(type) {
	case []any, map[string]any:
		return false // which cannot be compared
	}
	return e == v
}

// maxChoices bounds the values of an enumeration in a text.
const maxChoices = 12

// Choices returns the values of the enumeration in a few words.
func (s *Schema) Choices() string {
	var words []string
	for _, e := range s.Enum[:min(len(s.Enum), maxChoices)] {
		word, err := json.Marshal(e)
		if text, ok := e.(string); ok && text != "" {
			word = []byte(text)
		}
		if err == nil {
			words = append(words, string(word))
		}
	}
	if len(s.Enum) > maxChoices {
		words = append(words, "…")
	}
	return strings.Join(words, ", ")
}

// MarshalJSON implements json.Marshaler: [Read] reads what it writes.
func (s *Schema) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	put := func(key string, v any) error {
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		b.WriteString(`"` + key + `":`)
		return encode(&b, v)
	}
	var err error
	add := func(has bool, key string, v any) {
		if has && err == nil {
			err = put(key, v)
		}
	}
	add(s.Type != "" && !s.Nullable, "type", s.Type)
	add(s.Type != "" && s.Nullable, "type", []string{s.Type, "null"})
	add(s.Description != "", "description", s.Description)
	add(len(s.Enum) > 0, "enum", s.Enum)
	add(len(s.Properties) > 0, "properties", properties(s.Properties))
	add(len(s.Required) > 0, "required", s.Required)
	add(s.Closed, "additionalProperties", false)
	add(s.Items != nil, "items", s.Items)
	b.WriteByte('}')
	return b.Bytes(), err
}

// properties are written in their order.
type properties []Property

func (p properties) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i := range p {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := encode(&b, p[i].Name); err != nil {
			return nil, err
		}
		b.WriteByte(':')
		if err := encode(&b, p[i].Schema); err != nil {
			return nil, err
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// encode writes v without escapes for HTML.
func encode(b *bytes.Buffer, v any) error {
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	b.Truncate(b.Len() - 1) // the line's end
	return nil
}
