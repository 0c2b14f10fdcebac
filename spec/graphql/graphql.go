// Package graphql makes a connector of the schema of a GraphQL API, in its definition language or as the result of an
// introspection query:
//
//	c, leftOut, err := graphql.Connector(data, graphql.Options{FQN: "github://acme/tracker", Host: "api.acme.com"})
//
// Queries and subscriptions are allowed by the names of the fields at their roots, and mutations need an approval. What
// the schema does not have is not allowed. What a connector cannot have is left out, with a line each.
//
// The schema is foreign: nothing that it refers to is read, and its size is bounded. It cannot say what a field does,
// so a person has to review the result.
//
// Open this file first, then operations.go: the fields at the roots become operations. sdl.go and introspection.go read
// the two forms of a schema, and verbs.go the names of mutations.
package graphql

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/internal/foreign"
	"github.com/ALRubinger/aileron/spec/scaffold"
)

// Options are what a schema does not have.
type Options struct {
	FQN        spec.FQN  // required
	Host       string    // of the endpoint; required
	Path       string    // of the endpoint; "": /graphql
	Credential spec.Kind // "": bearer; NoCredential: none

	// Only, unless empty, selects fields by their name, or by type and name as in "mutation createIssue". "*" stands for
	// any text.
	Only []string
}

// NoCredential is the Credential of an API without one.
const NoCredential spec.Kind = "none"

// The bounds of a schema.
const (
	maxSize   = 16 << 20 // bytes
	maxTokens = 1 << 19  // of the schema definition language: 250 bytes of memory each, at most
	// maxObjects and maxValues are of JSON. A text counts as a value for each comma in it.
	maxObjects = 1 << 20
	maxValues  = 4 << 20
	maxFields  = 5000 // at the roots, that are selected
)

// schema is what a connector needs of a schema: the fields at its roots, in the order of content.GraphQLTypes.
type schema struct {
	roots [3]root
	notes foreign.Notes
}

// root is the type of an operation's root.
type root struct {
	name   string // "": the schema has no operations of the type
	fields []field
}

type field struct{ name, about string }

// IsSchema reports whether a document is a schema of GraphQL, or was meant to be one, and not a description of another
// kind.
func IsSchema(data []byte) bool {
	data = withoutMark(data)
	if start := bytes.TrimLeft(data, " \t\r\n"); len(start) > 0 && start[0] == '{' {
		return isIntrospection(data)
	}
	return beginsSDL(string(data[:min(len(data), 1<<20)]))
}

// isIntrospection reports whether one of the keys of an object is of the result of introspection. They come before much
// else.
func isIntrospection(data []byte) bool {
	dec := json.NewDecoder(bytes.NewReader(data))
	if _, err := dec.Token(); err != nil {
		return false
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return false
		}
		switch key {
		case "__schema", "data", "errors":
			return true
		case "openapi", "swagger", "info", "paths":
			return false
		}
		var value json.RawMessage
		if dec.Decode(&value) != nil {
			return false
		}
	}
	return false
}

// withoutMark returns a document without its byte order mark.
func withoutMark(data []byte) []byte { return bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")) }

// Connector returns the connector of a schema, and a line for each thing that it leaves out.
func Connector(data []byte, opts Options) (c *scaffold.Connector, leftOut []string, err error) {
	if opts.Host == "" {
		return nil, nil, hint.New(errors.New("a schema of GraphQL has no address"),
			"name the host of the endpoint with --host, and its path with --path if that is not /graphql")
	}
	s, err := read(data)
	if err != nil {
		return nil, nil, hint.New(fmt.Errorf("read the GraphQL schema: %w", err),
			"pass one schema, in the schema definition language or the JSON of an introspection query, of at most %d MiB",
			maxSize>>20)
	}
	m := maker{opts: opts, notes: &s.notes}
	if m.opts.Path == "" {
		m.opts.Path = "/graphql"
	}
	if c, err = m.connector(s); err != nil {
		return nil, s.notes.Lines(), err
	}
	size, err := c.Size()
	if err == nil && size > spec.MaxSpecSize {
		err = hint.New(fmt.Errorf("%d operations make a specification of %d bytes, and %d is the most",
			len(c.Operations), size, spec.MaxSpecSize), onlyHint)
	}
	return c, s.notes.Lines(), err
}

// onlyHint is the hint for a schema that is too large for one connector.
const onlyHint = "select what an agent needs with --only, by the name of a field or as \"mutation create*\""

// read reads a schema.
func read(data []byte) (*schema, error) {
	switch {
	case len(data) > maxSize:
		return nil, fmt.Errorf("it is larger than %d bytes", maxSize)
	case !utf8.Valid(data):
		return nil, errors.New("it is not UTF-8")
	}
	data = withoutMark(data)
	if strings.HasPrefix(strings.TrimLeft(string(data[:min(len(data), 4096)]), " \t\r\n"), "{") {
		return readIntrospection(data)
	}
	return readSDL(string(data))
}

// add adds a field to a root. One that is there already, or that no operation can allow, is left out.
func (s *schema) add(r *root, known map[string]bool, f field) {
	switch {
	case known[f.name]:
		s.notes.Add("the second field of a name", foreign.Clean(r.name+"."+f.name, 80))
		return
	case !isField(f.name):
		s.notes.Add("fields whose names no operation can have", foreign.Clean(r.name+"."+f.name, 80))
		return
	}
	known[f.name] = true
	r.fields = append(r.fields, f)
}
