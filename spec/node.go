package spec

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ALRubinger/aileron/spec/internal/plain"

	"github.com/ALRubinger/aileron/spec/internal/strictjson"
)

const (
	// MaxSize is the size in bytes of the largest invocation that is read.
	MaxSize = 1 << 20
	// MaxSpecSize is that of a specification.
	MaxSpecSize = 2 << 20
)

// maxDepth bounds the nesting of an invocation, and maxSpecDepth of a specification, in which schemas of inputs nest.
const (
	maxDepth     = 16
	maxSpecDepth = 32
)

// readJSON returns the value in data, with each mistake in d. It reports false if data cannot be read to its end.
func readJSON(data []byte, most strictjson.Bounds, d *diagnostics) (any, bool) {
	return strictjson.Read(data, most, d.report)
}

// report adds a mistake.
func (d *diagnostics) report(path, message string) { d.add(path, "%s", message) }

func isString(v any) bool {
	_, ok := v.(string)
	return ok
}

// node is an object of a specification that is being read.
type node struct {
	diags *diagnostics
	path  string
	o     strictjson.Object
}

// open checks that v is an object that has no key but those allowed. It reports
// false if v is not an object at all.
func (d *diagnostics) open(v any, path string, allowed ...string) (node, bool) {
	o, ok := v.(strictjson.Object)
	if !ok {
		d.add(path, "%s", missingOr(v, "an object"))
		return node{d, path, nil}, false
	}
	var unknown []string
	for i := range o {
		if k := o[i].Key; !slices.Contains(allowed, k) {
			unknown = append(unknown, k)
		}
	}
	slices.Sort(unknown)
	for _, k := range unknown {
		i := slices.IndexFunc(allowed, func(a string) bool { return strings.EqualFold(a, k) })
		if i >= 0 {
			d.add(strictjson.Join(path, k), "unknown key; use %q, in exactly that case", allowed[i])
			continue
		}
		d.add(strictjson.Join(path, k), "unknown key")
	}
	return node{d, path, o}, true
}

func missingOr(v any, what string) string {
	if v == nil {
		return "it is missing or null, and must be " + what
	}
	return "it is not " + what
}

// at returns the path of a key.
func (n node) at(key string) string {
	if n.diags.pathless {
		return ""
	}
	return strictjson.Join(n.path, key)
}

// item returns the path of an entry of a list.
func (n node) item(key string, i int) string {
	if n.diags.pathless {
		return ""
	}
	return n.at(key) + "[" + strconv.Itoa(i) + "]"
}

// maxString bounds a string of a specification.
const maxString = 4096

func (n node) text(key string, required bool) string {
	v, ok := n.o.Get(key)
	if !ok {
		if required {
			n.diags.add(n.at(key), "it is missing")
		}
		return ""
	}
	s, ok := v.(string)
	switch {
	case !ok:
		n.diags.add(n.at(key), "it is not a string")
	case required && s == "":
		n.diags.add(n.at(key), "it is empty")
	case len(s) > maxString:
		n.diags.add(n.at(key), "it is longer than %d bytes", maxString)
		return ""
	case plain.HasControl(s):
		n.diags.add(n.at(key), "it has a line break, a control character or a broken escape")
		return ""
	}
	return s
}

func (n node) flag(key string) bool {
	v, ok := n.o.Get(key)
	b, isBool := v.(bool)
	if ok && !isBool {
		n.diags.add(n.at(key), "it is not true or false")
	}
	return b
}

// maxItems bounds a list within an operation, and that of the placeholders.
const maxItems = 256

// list reads a list of at most most entries; 0 means no limit.
func (n node) list(key string, required bool, most int) []any {
	v, ok := n.o.Get(key)
	l, isList := v.([]any)
	switch {
	case most > 0 && len(l) > most:
		n.diags.add(n.at(key), "it has more than %d entries", most)
		return l[:most]
	case ok && !isList:
		n.diags.add(n.at(key), "it is not a list")
	case required && len(l) == 0:
		n.diags.add(n.at(key), "it has no entry")
	}
	return l
}

// choice reads a string that must be one of those allowed; "" if the key is absent.
func (n node) choice(key string, allowed ...string) string {
	s := n.text(key, false)
	if v, _ := n.o.Get(key); isString(v) && !slices.Contains(allowed, s) {
		n.diags.add(n.at(key), "%q is not %s", s, plain.Either(allowed))
		return ""
	}
	return s
}

// joined returns the words as one list for a message.
func joined[S ~string](words []S) string {
	text := ""
	for i, w := range words {
		if i > 0 {
			text += ", "
		}
		text += string(w)
	}
	return text
}

// Diagnostic is an error at one place of a connector's file.
type Diagnostic struct {
	File    string // "" when the caller knows it
	Path    string // the JSON path, or the line and key of the TOML; "": the whole file
	Message string
}

func (d *Diagnostic) Error() string {
	s := d.Message
	if d.Path != "" {
		s = d.Path + ": " + s
	}
	if d.File != "" {
		s = d.File + ": " + s
	}
	return s
}

// Diagnostics returns every diagnostic in the tree of an error of this package,
// in order.
func Diagnostics(err error) []*Diagnostic {
	var list []*Diagnostic
	switch e := err.(type) { //nolint:errorlint // this is the walk over the tree that errors.As does
	case nil:
	case *Diagnostic:
		list = append(list, e)
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			list = append(list, Diagnostics(inner)...)
		}
	case interface{ Unwrap() error }:
		list = Diagnostics(e.Unwrap())
	}
	return list
}

func newDiagnostic(path, format string, args ...any) *Diagnostic {
	return &Diagnostic{Path: path, Message: fmt.Sprintf(format, args...)}
}

// maxDiagnostics bounds the diagnostics of one file; the others are counted.
const maxDiagnostics = 100

// diagnostics collects the mistakes in a file, so that its author sees them all.
type diagnostics struct {
	list []error
	more int
	// pathless is for a reading that only finds out whether there is a mistake: the paths of its nodes are not made.
	pathless bool
}

func (d *diagnostics) add(path, format string, args ...any) {
	if len(d.list) == maxDiagnostics {
		d.more++
		return
	}
	d.list = append(d.list, newDiagnostic(path, format, args...))
}

func (d *diagnostics) err() error {
	if d.more > 0 {
		d.list = append(d.list, newDiagnostic("", "and %d more errors", d.more))
		d.more = 0
	}
	return errors.Join(d.list...)
}
