package judge

import (
	"slices"
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"

	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/content"
)

// maxRoots bounds the fields at the root of a body's documents, each counted once.
const maxRoots = 256

// rootField is a field at the root of an operation of GraphQL, by its name: an alias only names it in the response.
type rootField struct{ kind, name string }

// AllowedBy implements [Part].
func (f rootField) AllowedBy(op *spec.Operation) bool {
	return op.GraphQL != nil && op.GraphQL.AllowsField(f.kind, f.name)
}

// Requested implements [Part].
func (f rootField) Requested() string { return f.kind + ":" + f.name }

func (f rootField) String() string {
	return "the " + f.kind + " " + strconv.Quote(f.name) + " of GraphQL"
}

// document is a document of GraphQL whose fragments are resolved.
type document struct {
	fragments map[string]*ast.FragmentDefinition
	heights   map[string]int // of fragments; measuring: it is being measured
	entered   map[string]bool
	roots     []Part
	known     map[rootField]bool // of many roots; nil: there are few
}

// measuring stands for the height of a fragment in which a selection is measured.
const measuring = -1

// readDocument returns what the operation that name picks asks for, added to parts. It has at most so many tokens, and
// the number of them is returned, too.
func readDocument(text, name string, most int, parts []Part) (_ []Part, tokens int, err error) {
	if read, tokens, ok := readQuickly(text, name, most, parts); ok {
		return read, tokens, nil
	}
	return parseDocument(text, name, most, parts)
}

// parseDocument is readDocument for documents of every form.
func parseDocument(text, name string, most int, parts []Part) (_ []Part, tokens int, err error) {
	if tokens, err = checkSource(text, most); err != nil {
		return nil, 0, err
	}
	parsed, err := parser.ParseQueryWithTokenLimit(&ast.Source{Input: text}, tokens+1)
	if err != nil {
		return nil, 0, undecidable("its document is none of GraphQL") // the parser's error has values of it
	}
	op, err := pick(parsed.Operations, name)
	if err != nil {
		return nil, 0, err
	}
	d := document{roots: parts}
	if n := len(parsed.Fragments); n > 0 {
		d.fragments = make(map[string]*ast.FragmentDefinition, n)
		d.heights, d.entered = make(map[string]int, n), map[string]bool{}
	}
	for _, f := range parsed.Fragments {
		if d.fragments[f.Name] != nil {
			return nil, 0, undecidable("its document has two fragments of a name")
		}
		d.fragments[f.Name] = f
	}
	if _, err := d.height(op.SelectionSet, 1); err != nil {
		return nil, 0, err
	}
	if err := d.collect(string(op.Operation), op.SelectionSet); err != nil {
		return nil, 0, err
	}
	return d.roots, tokens, nil
}

// pick returns the operation of a document that is executed.
func pick(ops []*ast.OperationDefinition, name string) (*ast.OperationDefinition, error) {
	for i, op := range ops {
		switch {
		case len(ops) > 1 && op.Name == "":
			return nil, undecidable("its document has several operations, one of them without a name")
		case slices.ContainsFunc(ops[:i], func(other *ast.OperationDefinition) bool { return other.Name == op.Name }):
			return nil, undecidable("its document has two operations of a name")
		}
	}
	switch {
	case len(ops) == 0:
		return nil, undecidable("its document has no operation")
	case name == "" && len(ops) > 1:
		return nil, undecidable("its document has several operations, and operationName picks none")
	case name == "":
		return ops[0], nil
	}
	i := slices.IndexFunc(ops, func(op *ast.OperationDefinition) bool { return op.Name == name })
	if i < 0 {
		return nil, undecidable("operationName is none of its document")
	}
	return ops[i], nil
}

// height returns how deep the selections below a set are, with the fragments in them. The set is so deep itself.
func (d *document) height(set ast.SelectionSet, depth int) (highest int, err error) {
	if depth > maxDepth {
		return 0, undecidable("its selections are nested deeper than %d", maxDepth)
	}
	for _, s := range set {
		below := 0
		switch s := s.(type) {
		case *ast.Field:
			if len(s.SelectionSet) > 0 {
				below, err = d.height(s.SelectionSet, depth+1)
			}
		case *ast.InlineFragment:
			below, err = d.height(s.SelectionSet, depth+1)
		case *ast.FragmentSpread:
			below, err = d.fragmentHeight(s.Name, depth+1)
		}
		if err != nil {
			return 0, err
		}
		highest = max(highest, below+1)
	}
	return highest, nil
}

func (d *document) fragmentHeight(name string, depth int) (int, error) {
	f := d.fragments[name]
	if f == nil {
		return 0, undecidable("its document has no fragment of a name that it spreads")
	}
	height, known := d.heights[name]
	switch {
	case height == measuring:
		return 0, undecidable("a fragment of its document spreads itself")
	case known && depth+height > maxDepth:
		return 0, undecidable("its selections are nested deeper than %d", maxDepth)
	case known:
		return height, nil
	}
	d.heights[name] = measuring
	height, err := d.height(f.SelectionSet, depth)
	d.heights[name] = height
	return height, err
}

// collect adds the fields of a set at the root. What is in a fragment is there, whatever its type, and so is what @skip
// and @include may leave out. The height of the set has been checked.
func (d *document) collect(kind string, set ast.SelectionSet) (err error) {
	for _, s := range set {
		switch s := s.(type) {
		case *ast.Field:
			err = d.add(rootField{kind, s.Name})
		case *ast.InlineFragment:
			err = d.collect(kind, s.SelectionSet)
		case *ast.FragmentSpread:
			if !d.entered[s.Name] {
				d.entered[s.Name] = true
				err = d.collect(kind, d.fragments[s.Name].SelectionSet)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// manyRoots is the number of roots from which on they are looked up: a document may name each of them again and again.
const manyRoots = 16

// has reports whether a field is among the roots.
func (d *document) has(f rootField) bool {
	if len(d.roots) < manyRoots {
		return slices.Contains(d.roots, Part(f))
	}
	if d.known == nil {
		d.known = make(map[rootField]bool, 2*len(d.roots))
		for _, p := range d.roots {
			if root, ok := p.(rootField); ok {
				d.known[root] = true
			}
		}
	}
	return d.known[f]
}

func (d *document) add(f rootField) error {
	switch {
	case d.has(f):
		return nil
	case !content.IsGraphQLName(f.name):
		return undecidable("a field of its document has too long a name")
	case len(d.roots) == maxRoots:
		return undecidable("its documents have more than %d fields at their roots", maxRoots)
	}
	d.roots = append(d.roots, f)
	if d.known != nil {
		d.known[f] = true
	}
	return nil
}

// rootsIn returns the types and the names of the root fields among parts, for audit rows.
func rootsIn(parts []Part) (kinds string, names []string) {
	var types []string
	for _, p := range parts {
		if f, ok := p.(rootField); ok {
			if !slices.Contains(types, f.kind) {
				types = append(types, f.kind)
			}
			if !slices.Contains(names, f.name) {
				names = append(names, f.name)
			}
		}
	}
	slices.Sort(types)
	return strings.Join(types, ","), names
}
