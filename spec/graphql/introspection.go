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
	Schema *introspected     `json:"__schema"`
	Errors []json.RawMessage `json:"errors"`
}

type introspected struct {
	Query        *named `json:"queryType"`
	Mutation     *named `json:"mutationType"`
	Subscription *named `json:"subscriptionType"`
	Types        []struct {
		Kind   string          `json:"kind"`
		Name   string          `json:"name"`
		Fields json.RawMessage `json:"fields"` // of those that are no roots, they are not read
	} `json:"types"`
}

type named struct {
	Name string `json:"name"`
}

// readIntrospection reads the JSON of an introspection query, with or without "data" around it.
func readIntrospection(data []byte) (*schema, error) {
	if n := bytes.Count(data, []byte("{")); n > maxTokens {
		return nil, fmt.Errorf("it has more than %d objects", maxTokens)
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
	case in == nil && len(top.Errors) > 0:
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
	for _, t := range in.Types {
		if seen[t.Name] {
			return nil, fmt.Errorf("two types have the name %q", foreign.Clean(t.Name, 60))
		}
		seen[t.Name] = true
		for i := range s.roots {
			r := &s.roots[i]
			if r.name == "" || r.name != t.Name {
				continue
			}
			if t.Kind != "OBJECT" {
				return nil, notObject(r.name)
			}
			if err := s.introspected(r, t.Fields); err != nil {
				return nil, err
			}
		}
	}
	return s, s.check(seen)
}

// introspected reads the fields of a root.
func (s *schema) introspected(r *root, raw json.RawMessage) error {
	var fields []struct {
		Name        string `json:"name"`
		Description string `json:"description"`
		Deprecated  bool   `json:"isDeprecated"`
	}
	if err := json.Unmarshal(raw, &fields); len(raw) > 0 && err != nil {
		return fmt.Errorf("the fields of %q are none: %s", foreign.Clean(r.name, 60), foreign.Clean(err.Error(), 120))
	}
	known := map[string]bool{}
	for _, f := range fields {
		s.add(r, known, field{f.Name, about(f.Description, f.Deprecated)})
	}
	return nil
}
