package graphql

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ALRubinger/aileron/spec/internal/foreign"
)

// introspection is the result of an introspection query, as far as it is read.
type introspection struct {
	Data *struct {
		Schema *introspected `json:"__schema"`
	} `json:"data"`
	Schema *introspected   `json:"__schema"`
	Errors json.RawMessage `json:"errors"`
}

type introspected struct {
	Query        *named          `json:"queryType"`
	Mutation     *named          `json:"mutationType"`
	Subscription *named          `json:"subscriptionType"`
	Types        json.RawMessage `json:"types"` // of introspectedType
}

type introspectedType struct {
	Kind   string          `json:"kind"`
	Name   string          `json:"name"`
	Fields json.RawMessage `json:"fields"` // of introspectedField; of those that are no roots, they are not read
}

type introspectedField struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Deprecated  bool   `json:"isDeprecated"`
}

type named struct {
	Name string `json:"name"`
}

// readIntrospection reads the JSON of an introspection query, with or without "data" around it.
func readIntrospection(data []byte) (*schema, error) {
	if bytes.Count(data, []byte("{")) > maxObjects || bytes.Count(data, []byte(",")) > maxValues {
		return nil, fmt.Errorf("it has more than %d objects, or %d values", maxObjects, maxValues)
	}
	var top introspection
	if err := json.Unmarshal(data, &top); err != nil {
		return nil, fmt.Errorf("it is no JSON of an introspection query: %s", foreign.Clean(err.Error(), 120))
	}
	in := top.Schema
	if top.Data != nil && top.Data.Schema != nil {
		in = top.Data.Schema
	}
	switch {
	case in == nil && len(top.Errors) > len("null"):
		return nil, errors.New("it has errors of the server, and no schema")
	case in == nil:
		return nil, errors.New("it has no \"__schema\"")
	}
	s := &schema{}
	for i, n := range []*named{in.Query, in.Mutation, in.Subscription} {
		if n != nil {
			s.roots[i].name = n.Name
		}
	}
	seen := map[string]bool{}
	err := each(in.Types, func(t *introspectedType) error {
		if seen[t.Name] {
			return fmt.Errorf("two types have the name %q", foreign.Clean(t.Name, 60))
		}
		seen[t.Name] = true
		for i := range s.roots {
			r := &s.roots[i]
			if r.name == "" || r.name != t.Name {
				continue
			}
			if t.Kind != "OBJECT" {
				return notObject(r.name)
			}
			if err := s.introspected(r, t.Fields); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("its types: %w", err)
	}
	return s, s.check(seen)
}

// introspected reads the fields of a root.
func (s *schema) introspected(r *root, raw json.RawMessage) error {
	known := map[string]bool{}
	err := each(raw, func(f *introspectedField) error {
		s.add(r, known, field{f.Name, about(f.Description, f.Deprecated)})
		return nil
	})
	if err != nil {
		return fmt.Errorf("the fields of %q are none: %w", foreign.Clean(r.name, 60), err)
	}
	return nil
}

// each calls do for each object of a list, one at a time: what a list takes of memory does not depend on its length.
// The first item that is no object ends it.
func each[T any](raw json.RawMessage, do func(*T) error) error {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	if begin, err := dec.Token(); err != nil || begin != json.Delim('[') {
		return errors.New("it is no list")
	}
	for dec.More() {
		var item *T
		if err := dec.Decode(&item); err != nil {
			return errors.New(foreign.Clean(err.Error(), 120))
		}
		if item == nil {
			return errors.New("null is no object")
		}
		if err := do(item); err != nil {
			return err
		}
	}
	return nil
}
