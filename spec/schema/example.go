package schema

import "encoding/json"

// Example returns a value that the schema allows, with what is required and nothing else. Text is what stands for a
// text. A nil schema allows the text.
func (s *Schema) Example(text string) any {
	if s == nil {
		return text
	}
	if len(s.Enum) > 0 {
		return s.Enum[0]
	}
	switch s.Type {
	case "integer", "number":
		return json.Number("1")
	case "boolean":
		return true
	case "array":
		if s.Items == nil {
			return []any{}
		}
		return []any{s.Items.Example(text)}
	case "object":
		o := map[string]any{}
		for _, name := range s.Required {
			o[name] = s.property(name).Example(text)
		}
		return o
	}
	return text
}
