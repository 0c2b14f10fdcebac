package schema

import (
	"encoding/json"
	"math"
)

// Cutter makes schemas that nest less deeply. Schemas may share parts: what they have in common is cut once, and takes
// its size in each. The zero value is ready.
type Cutter struct {
	made  map[cut]*Schema
	sizes map[*Schema]int
}

type cut struct {
	of     *Schema
	levels int
}

// Cut returns the schema with at most so many levels. It is nil for none, and for one that tells nothing but a type.
func (c *Cutter) Cut(s *Schema, levels int) *Schema {
	if s = c.cut(s, levels); s == nil || !s.Nullable && len(s.Enum)+len(s.Properties) == 0 && s.Items == nil && !s.Closed {
		return nil
	}
	return s
}

func (c *Cutter) cut(s *Schema, levels int) *Schema {
	if s == nil || levels <= 0 {
		return nil
	}
	key := cut{s, levels}
	if made := c.made[key]; made != nil {
		return made
	}
	if c.made == nil {
		c.made = map[cut]*Schema{}
	}
	made := &Schema{Type: s.Type, Nullable: s.Nullable, Description: s.Description, Enum: s.Enum}
	c.made[key] = made
	if levels == 1 {
		return made
	}
	made.Required, made.Closed, made.Items = s.Required, s.Closed, c.cut(s.Items, levels-1)
	for _, p := range s.Properties {
		made.Properties = append(made.Properties, Property{p.Name, c.cut(p.Schema, levels-1)})
	}
	made.index()
	return made
}

// Size returns about how many bytes the schema has as compact JSON, and more rather than less.
func (c *Cutter) Size(s *Schema) int {
	if s == nil {
		return 0
	}
	if size, known := c.sizes[s]; known {
		return size
	}
	if c.sizes == nil {
		c.sizes = map[*Schema]int{}
	}
	const key = len(`"additionalProperties":false,`)
	size := key + len(s.Type) + 20
	if s.Description != "" {
		size += key + len(s.Description) + 8
	}
	for _, e := range s.Enum {
		text, err := json.Marshal(e)
		if size += len(text) + 1; err != nil {
			return math.MaxInt32
		}
	}
	for _, name := range s.Required {
		size += len(name) + 4
	}
	for _, p := range s.Properties {
		size = min(math.MaxInt32, size+len(p.Name)+len(`"":,`)+c.Size(p.Schema))
	}
	if s.Items != nil {
		size = min(math.MaxInt32, size+key+c.Size(s.Items))
	}
	if len(s.Required) > 0 {
		size += key
	}
	if len(s.Properties) > 0 || s.Closed {
		size += 2 * key
	}
	c.sizes[s] = size
	return size
}
