package openapi

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/internal/foreign"
	"github.com/ALRubinger/aileron/spec/scaffold"
	"github.com/ALRubinger/aileron/spec/schema"
)

// reader reads the operations of a document.
type reader struct {
	root  *node
	opts  Options
	notes foreign.Notes
	prose *prose
	used  map[string]bool // the options that an operation has
	steps int             // references and properties that were followed

	scheme  *scheme                  // whose credential the connector has; nil: none
	schemes map[string]*scheme       // as they were looked up
	scopes  []string                 // of OAuth 2, that operations ask for
	bare    map[string]bool          // paths, without names of variables
	shapes  map[string]string        // methods and paths, without names of variables → the operation
	names   map[string]bool          // of operations, in lower case
	servers map[*node]*serverAddress // of lists of servers

	docs documents

	made   map[nestedKey]*schema.Schema
	cutter schema.Cutter
}

const (
	maxSteps       = 1 << 20
	maxReferences  = 32 // that lead to each other
	maxDescription = 200
)

// found is an operation of the document.
type found struct {
	method, path string
	item, op     *node
	where        string // method and path, for notes
}

// methods are the keys of a path item that are operations.
var methods = []string{"get", "put", "post", "delete", "options", "head", "patch", "trace"}

// operations returns the operations that are selected, in the document's order.
func (r *reader) operations() []found {
	var all []found
	paths := r.root.get("paths")
	for i, path := range paths.objectKeys() {
		item := r.resolve(paths.items[i])
		for j, key := range item.firstKeys(maxInputs) {
			method := strings.ToUpper(key)
			f := found{method, path, item, item.items[j], method + " " + foreign.Clean(path, 80)}
			switch {
			case !slices.Contains(methods, key) || !r.selected(f) || !r.inGroups(f):
			case key == "trace":
				r.notes.Add("the method TRACE, which is never forwarded", f.where)
			default:
				all = append(all, f)
			}
		}
	}
	return all
}

// objectKeys returns the keys of an object.
func (n *node) objectKeys() []string {
	if n == nil || n.kind != '{' {
		return nil
	}
	return n.keys
}

// selected reports whether the operation is one of Only.
func (r *reader) selected(f found) bool {
	if len(r.opts.Only) == 0 {
		return true
	}
	labels := []string{f.method + " " + f.path, f.op.get("operationId").scalar()}
	for _, tag := range f.op.get("tags").first(maxInputs) {
		labels = append(labels, tag.scalar())
	}
	return slices.ContainsFunc(r.opts.Only, func(pattern string) bool {
		return slices.ContainsFunc(labels, func(label string) bool { return foreign.Matches(pattern, label) })
	})
}

// resolve returns what a reference leads to, in this document or one below its directory, or n itself. It returns nil,
// and records why, for one that leads elsewhere, nowhere, or in a circle.
func (r *reader) resolve(n *node) *node {
	first := n
	for range maxReferences {
		ref := n.get("$ref")
		if ref == nil || ref.kind != '"' {
			return n
		}
		r.steps++
		from := r.docs.of[n]
		if from == nil {
			from = &document{root: r.root}
		}
		file, pointer, _ := strings.Cut(ref.text, "#")
		doc, why := r.open(from, file)
		if why == "" {
			if n = at(doc.root, pointer); n != nil {
				continue
			}
			why = "leads nowhere"
		}
		r.docs.fail(ref.text, why)
		return nil
	}
	r.docs.fail(first.get("$ref").scalar(), "leads to itself, or through too many others")
	return nil
}

// at returns the value at a JSON pointer (RFC 6901), in a URL's fragment.
func at(n *node, pointer string) *node {
	if pointer == "" {
		return n
	}
	rest, ok := strings.CutPrefix(pointer, "/")
	for depth := 0; ok; depth++ {
		var key string
		key, rest, ok = strings.Cut(rest, "/")
		key = strings.NewReplacer("%7B", "{", "%7b", "{", "%7D", "}", "%7d", "}", "%20", " ", "%25", "%").Replace(key)
		key = strings.NewReplacer("~1", "/", "~0", "~").Replace(key)
		if n = n.get(key); n == nil || depth > maxDepth {
			return nil
		}
	}
	return n
}

// operation returns the operation of a connector, and reports false for one that is left out.
func (r *reader) operation(f found) (scaffold.Operation, bool) {
	op := scaffold.Operation{Method: f.method, Idempotency: "none", Approval: "required"}
	if f.method == "GET" || f.method == "HEAD" || f.method == "OPTIONS" {
		op.Idempotency, op.Approval = "idempotent", ""
	}
	op.Summary = r.prose.text(cmp.Or(f.op.get("summary").scalar(), f.op.get("description").scalar()), maxDescription)
	if f.op.get("deprecated").isTrue() {
		op.Summary = foreign.Clean("Deprecated: "+op.Summary, maxDescription)
	}
	at, why := r.server(f)
	if why != "" {
		r.notes.Add("operations whose "+why, f.where)
		return op, false
	}
	op.Hosts = at.hosts
	if op.Credential, why = r.credential(f.op); why != "" {
		r.notes.Add("operations "+why, f.where)
		return op, false
	}
	in := &inputs{reader: r, found: f, op: &op}
	in.read(at.base)
	if f.op.get("callbacks").size() > 0 {
		r.notes.Add("requests that the service makes (callbacks)", f.where)
	}
	if cut(&r.cutter, &op, schema.MaxLevels) {
		r.notes.Add(fmt.Sprintf("what nests in inputs beyond %d KiB of an operation", schema.MaxSize>>10), f.where)
	}
	if !r.repair(f, &op) || !r.unique(f, &op) {
		return op, false
	}
	setGroup(f, &op)
	r.setApproval(&op)
	if len(op.Inputs) == 0 || !slices.ContainsFunc(op.Inputs, func(i scaffold.Input) bool { return i.In != "" }) {
		op.Query = "declared"
	}
	return op, true
}

// unique sets a name that no other operation has. It reports false if another operation is the same request.
func (r *reader) unique(f found, op *scaffold.Operation) bool {
	if r.shapes == nil {
		r.shapes, r.names = map[string]string{}, map[string]bool{}
	}
	shape := op.Method + " " + shapeOf(op.Path) + " " + strings.Join(op.Hosts, " ")
	if other := r.shapes[shape]; other != "" {
		r.notes.Add("operations that are the same request as another", f.where+" ("+other+")")
		return false
	}
	base := operationName(f)
	op.Name = base
	for i := 2; r.names[strings.ToLower(op.Name)]; i++ {
		op.Name = base + "-" + itoa(i)
	}
	r.names[strings.ToLower(op.Name)], r.shapes[shape] = true, op.Name
	return true
}

// operationName returns the operationId in a form that an operation's name may have, or one that is made of the
// method and the path.
func operationName(f found) string {
	if name := foreign.SafeName(f.op.get("operationId").scalar()); name != "" {
		return name
	}
	var words []string
	for part := range strings.SplitSeq(strings.NewReplacer("{", "", "}", "").Replace(f.path), "/") {
		if word := foreign.SafeName(part); word != "" {
			words = append(words, word)
		}
	}
	return foreign.SafeName(strings.Join(append(words, strings.ToLower(f.method)), "."))
}

// repair leaves out the inputs that package spec does not accept. It reports false if it does not accept the operation
// without them either. So what a connector may declare has one definition.
func (r *reader) repair(f found, op *scaffold.Operation) bool {
	checked := *op
	checked.Name = "x"
	for range 3 {
		faults := checked.Check()
		if len(faults) == 0 {
			op.Inputs = checked.Inputs
			return true
		}
		bad := map[int]bool{}
		for _, fault := range faults {
			i, ok := inputOf(fault)
			if !ok || i >= len(checked.Inputs) || checked.Inputs[i].In == "" {
				r.notes.Add("operations that cannot be declared", f.where+": "+foreign.Clean(fault.Message, 120))
				return false
			}
			bad[i] = true
		}
		var kept []scaffold.Input
		for i, input := range checked.Inputs {
			if !bad[i] {
				kept = append(kept, input)
				continue
			}
			what := "inputs whose name or description a connector cannot have"
			if input.Required {
				what = "required " + what + " (such a request is sent with an HTTP client)"
			}
			r.notes.Add(what, f.where+" "+cmp.Or(foreign.Clean(input.Name, 60), "(empty)"))
		}
		checked.Inputs = kept
	}
	r.notes.Add("operations that cannot be declared", f.where)
	return false
}

// inputOf returns the index of the input that a fault is about.
func inputOf(fault *spec.Diagnostic) (int, bool) {
	_, rest, ok := strings.Cut(fault.Path, ".inputs[")
	digits, _, closed := strings.Cut(rest, "]")
	i, err := strconv.Atoi(digits)
	return i, ok && closed && err == nil
}
