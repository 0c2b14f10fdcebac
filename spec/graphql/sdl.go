package graphql

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"

	"github.com/ALRubinger/aileron/spec/content"
	"github.com/ALRubinger/aileron/spec/internal/foreign"
)

// sdlWords are the words with which a definition begins, and those of a document that is no schema.
var sdlWords = []string{"schema", "scalar", "type", "interface", "union", "enum", "input", "directive", "extend",
	"query", "mutation", "subscription", "fragment"}

// beginsSDL reports whether a document begins like one of GraphQL: with one of sdlWords, after comments and
// descriptions. In YAML, a colon stands behind a word.
func beginsSDL(text string) bool {
	for {
		text = strings.TrimLeft(text, " \t\r\n,")
		switch {
		case strings.HasPrefix(text, "#"):
			_, text, _ = strings.Cut(text, "\n")
		case strings.HasPrefix(text, `"""`):
			_, rest, ok := strings.Cut(text[3:], `"""`)
			for ok && strings.HasSuffix(text[:len(text)-len(rest)-3], `\`) {
				_, rest, ok = strings.Cut(rest, `"""`)
			}
			if !ok {
				return false
			}
			text = rest
		case strings.HasPrefix(text, `"`):
			_, rest, ok := strings.Cut(text[1:], `"`)
			if !ok {
				return false
			}
			text = rest
		default:
			rest := strings.TrimLeft(text, "abcdefghijklmnopqrstuvwxyz")
			word := text[:len(text)-len(rest)]
			rest = strings.TrimLeft(rest, " \t\r\n")
			return slices.Contains(sdlWords, word) && !strings.HasPrefix(rest, ":") && rest != ""
		}
	}
}

// readSDL reads a schema in the schema definition language.
func readSDL(text string) (*schema, error) {
	doc, err := parser.ParseSchemaWithLimit(&ast.Source{Name: "schema", Input: text}, maxTokens)
	if err != nil {
		return nil, fmt.Errorf("it is no schema definition language: %s", foreign.Clean(err.Error(), 200))
	}
	s := &schema{}
	if err := s.nameRoots(doc); err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	var known [3]map[string]bool
	add := func(d *ast.Definition) error {
		for i := range s.roots {
			r := &s.roots[i]
			if r.name == "" || r.name != d.Name {
				continue
			}
			if d.Kind != ast.Object {
				return notObject(r.name)
			}
			if known[i] == nil {
				known[i] = map[string]bool{}
			}
			for _, f := range d.Fields {
				s.add(r, known[i], field{f.Name, about(f.Description, f.Directives.ForName("deprecated") != nil)})
			}
		}
		return nil
	}
	for _, d := range doc.Definitions {
		if seen[d.Name] {
			return nil, fmt.Errorf("two types have the name %q", foreign.Clean(d.Name, 60))
		}
		seen[d.Name] = true
		if err := add(d); err != nil {
			return nil, err
		}
	}
	for _, d := range doc.Extensions { // their type may be in another document
		seen[d.Name] = true
		if err := add(d); err != nil {
			return nil, err
		}
	}
	return s, s.check(seen)
}

// nameRoots names the types of the roots: those of the definition of the schema, or else the usual ones that there are.
func (s *schema) nameRoots(doc *ast.SchemaDocument) error {
	if len(doc.Schema) > 1 {
		return errors.New("it defines the schema twice")
	}
	for _, def := range slices.Concat(doc.Schema, doc.SchemaExtension) {
		for _, op := range def.OperationTypes {
			r := &s.roots[slices.Index(content.GraphQLTypes, string(op.Operation))]
			if r.name != "" {
				return fmt.Errorf("its schema names two types for a %s", op.Operation)
			}
			r.name = op.Type
		}
	}
	if len(doc.Schema) > 0 {
		return nil
	}
	for i, name := range []string{"Query", "Mutation", "Subscription"} {
		isThere := func(d *ast.Definition) bool { return d.Name == name }
		if s.roots[i].name == "" && (slices.ContainsFunc(doc.Definitions, isThere) ||
			slices.ContainsFunc(doc.Extensions, isThere)) {
			s.roots[i].name = name
		}
	}
	return nil
}

// notObject returns the error for a root that is none.
func notObject(name string) error {
	return fmt.Errorf("the root %q is not an object type", foreign.Clean(name, 60))
}

// check returns an error for roots that no server can have: a type that is not among those there are, and one for two
// types of operations, by which a query would write.
func (s *schema) check(types map[string]bool) error {
	for i, r := range s.roots {
		switch {
		case r.name == "":
		case !types[r.name]:
			return fmt.Errorf("it has no type %q, which is the root of a %s", foreign.Clean(r.name, 60),
				content.GraphQLTypes[i])
		case slices.ContainsFunc(s.roots[:i], func(other root) bool { return other.name == r.name }):
			return fmt.Errorf("the type %q is the root of two types of operations", foreign.Clean(r.name, 60))
		}
	}
	return nil
}

// about returns what a field is for, in one line.
func about(description string, deprecated bool) string {
	if deprecated {
		description = "Deprecated: " + description
	}
	return foreign.Clean(description, maxAbout)
}
