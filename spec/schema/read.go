package schema

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/ALRubinger/aileron/spec/internal/strictjson"
)

// Read reads the schema of an input, and takes its size from what is left of an operation's. Each mistake is reported
// with its place below the schema, such as ".properties.id.type", or placeless without: to make places takes most of
// the time. isText reports whether a text may be shown.
func Read(v any, left *int, isText func(string) bool, placeless bool, report func(place, message string)) *Schema {
	const root = "x" // of the places
	r := &reader{left: left, isText: isText, report: func(place, message string) { report(place[len(root):], message) },
		placeless: placeless}
	s := r.schema(v, root, 1)
	if *left < 0 {
		report("", fmt.Sprintf("the schemas of the operation have more than %d bytes", MaxSize))
	}
	return s
}

type reader struct {
	left   *int
	isText func(string) bool
	report func(place, message string)

	placeless bool // places are not made
}

// join returns the place of a key, and entry that of an entry of a list.
func (r *reader) join(place, key string) string {
	if r.placeless {
		return place
	}
	return strictjson.Join(place, key)
}

func (r *reader) entry(place string, i int) string {
	if r.placeless {
		return place
	}
	return fmt.Sprintf("%s[%d]", place, i)
}

// take takes the size of a key or a scalar.
func (r *reader) take(n int) bool {
	*r.left -= n
	return *r.left >= 0
}

func (r *reader) schema(v any, place string, level int) *Schema {
	s := &Schema{}
	o, ok := v.(strictjson.Object)
	switch {
	case !ok:
		r.report(place, "it is not an object")
		return s
	case level > MaxLevels:
		r.report(place, fmt.Sprintf("it is nested more than %d deep", MaxLevels))
		return s
	case !r.take(2):
		return s
	}
	for _, f := range o {
		if !r.take(len(f.Key) + len(`"":,`)) {
			return s
		}
		r.key(s, f, r.join(place, f.Key), level)
	}
	r.agree(s, o, place)
	return s
}

// key reads one key of a schema.
func (r *reader) key(s *Schema, f strictjson.Field, at string, level int) {
	switch f.Key {
	case "type":
		r.kind(s, f.Value, at)
	case "description":
		s.Description = r.text(f.Value, at)
	case "enum":
		s.Enum = r.scalars(f.Value, at)
	case "properties":
		r.properties(s, f.Value, at, level)
	case "required":
		for i, v := range r.list(f.Value, at) {
			name := r.text(v, r.entry(at, i))
			if slices.Contains(s.Required, name) {
				r.report(r.entry(at, i), "it appears twice")
			}
			s.Required = append(s.Required, name)
		}
	case "additionalProperties":
		open, ok := f.Value.(bool)
		if r.take(5); !ok {
			r.report(at, "it is not true or false")
		}
		s.Closed = !open
	case "items":
		s.Items = r.schema(f.Value, at, level+1)
	default:
		r.report(at, "unknown key; a schema has type, description, enum, properties, required, additionalProperties "+
			"and items")
	}
}

// kind reads a type, or a list of one and "null".
func (r *reader) kind(s *Schema, v any, at string) {
	if list, ok := v.([]any); ok {
		if len(list) != 2 || list[1] != "null" {
			r.report(at, `it is neither a type nor a list of one and "null"`)
			return
		}
		r.take(len(`[,"null"]`))
		s.Nullable, v = true, list[0]
	}
	s.Type, _ = v.(string)
	r.take(len(s.Type) + 2)
	if !slices.Contains(Types, s.Type) {
		r.report(at, "it is not string, integer, number, boolean, array or object")
	}
}

// text reads a text of one line.
func (r *reader) text(v any, at string) string {
	s, ok := v.(string)
	r.take(len(s) + 2)
	switch {
	case !ok:
		r.report(at, "it is not a string")
	case len(s) > maxText:
		r.report(at, fmt.Sprintf("it is longer than %d bytes", maxText))
	case !r.isText(s):
		r.report(at, "it has a line break, a control character or a broken escape")
	}
	return s
}

func (r *reader) list(v any, at string) []any {
	list, ok := v.([]any)
	r.take(len(list) + 2)
	switch {
	case !ok || len(list) == 0:
		r.report(at, "it is not a list with an entry")
	case len(list) > maxNames:
		r.report(at, fmt.Sprintf("it has more than %d entries", maxNames))
		return list[:maxNames]
	}
	return list
}

// scalars reads the values of an enumeration.
func (r *reader) scalars(v any, at string) []any {
	list := r.list(v, at)
	for i, e := range list {
		place := r.entry(at, i)
		switch t := e.(type) {
		case string:
			r.text(t, place)
		case json.Number:
			r.take(len(t))
		case bool, nil:
			r.take(len("false"))
		default:
			r.report(place, "it is a list or an object")
			return nil
		}
		if slices.Contains(list[:i], e) {
			r.report(place, "it appears twice")
		}
	}
	return list
}

func (r *reader) properties(s *Schema, v any, at string, level int) {
	o, ok := v.(strictjson.Object)
	switch {
	case !ok:
		r.report(at, "it is not an object")
		return
	case len(o) > maxNames:
		r.report(at, fmt.Sprintf("it has more than %d entries", maxNames))
		return
	}
	for _, f := range o {
		place := r.join(at, f.Key)
		if f.Key == "" {
			r.report(place, "it has no name")
		}
		r.text(f.Key, place)
		s.Properties = append(s.Properties, Property{f.Key, r.schema(f.Value, place, level+1)})
		if *r.left < 0 {
			return
		}
	}
	s.index()
}

// index makes the map of many properties.
func (s *Schema) index() {
	if len(s.Properties) < manyProperties {
		return
	}
	s.byName = make(map[string]int, len(s.Properties))
	for i, p := range s.Properties {
		s.byName[p.Name] = i
	}
}

// agree reports keys that do not go together.
func (r *reader) agree(s *Schema, o strictjson.Object, place string) {
	for _, f := range o {
		switch f.Key {
		case "properties", "required", "additionalProperties":
			if s.Type != "object" {
				r.report(r.join(place, f.Key), `it is a key of the type "object"`)
			}
		case "items":
			if s.Type != "array" {
				r.report(r.join(place, f.Key), `it is a key of the type "array"`)
			}
		}
	}
}
