package action

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/ALRubinger/aileron/spec"
)

// value is a value of a step's args. fill returns it with the arguments in their places; without is true if it stands
// for an optional argument that is not given.
type value interface {
	fill(args *arguments) (v any, without bool, err error)
	names(into map[string]bool)
}

// arguments are those of one run of an action. An action may use one in many places, and what that makes is bounded.
type arguments struct {
	values map[string]any
	sizes  map[string]int // as JSON
	left   int            // bytes that may still be filled in
}

func newArguments(values map[string]any) *arguments {
	a := &arguments{values: values, sizes: map[string]int{}, left: spec.MaxSize}
	for name, v := range values {
		raw, _ := json.Marshal(v) // it was read from JSON
		a.sizes[name] = len(raw)
	}
	return a
}

func (a *arguments) spend(n int) error {
	if a.left -= n; a.left < 0 {
		return fmt.Errorf("args: with them in all their places the calls have more than %d bytes", spec.MaxSize)
	}
	return nil
}

// literal is a value without arguments.
type literal struct{ v any }

func (l literal) fill(*arguments) (any, bool, error) { return l.v, false, nil }
func (literal) names(map[string]bool)                {}

// whole is an argument that is a whole value, and keeps its type.
type whole struct{ name string }

func (w whole) fill(args *arguments) (any, bool, error) {
	v, has := args.values[w.name]
	return v, !has, args.spend(args.sizes[w.name])
}
func (w whole) names(into map[string]bool) { into[w.name] = true }

// text is a string with arguments in it. Names and literal pieces alternate, a piece first.
type text struct{ pieces, args []string }

func (t text) fill(args *arguments) (any, bool, error) {
	var b strings.Builder
	for i, piece := range t.pieces {
		b.WriteString(piece)
		if i == len(t.args) {
			break
		}
		s, ok := spec.Scalar(args.values[t.args[i]])
		if !ok {
			return nil, false, fmt.Errorf("args.%s: it is part of a longer text, and no string, number or boolean", t.args[i])
		}
		if err := args.spend(len(s)); err != nil {
			return nil, false, err
		}
		b.WriteString(s)
	}
	return b.String(), false, nil
}

func (t text) names(into map[string]bool) {
	for _, name := range t.args {
		into[name] = true
	}
}

// list is an array.
type list []value

func (l list) fill(args *arguments) (any, bool, error) {
	out := make([]any, 0, len(l))
	for _, entry := range l {
		v, _, err := entry.fill(args) // optional arguments are no entries: see builder
		if err != nil {
			return nil, false, err
		}
		out = append(out, v)
	}
	return out, false, nil
}

func (l list) names(into map[string]bool) {
	for _, entry := range l {
		entry.names(into)
	}
}

// table is an object. Its keys are literal.
type table map[string]value

func (t *table) fill(args *arguments) (any, bool, error) {
	out := make(map[string]any, len(*t))
	for _, key := range slices.Sorted(maps.Keys(*t)) {
		v, without, err := (*t)[key].fill(args)
		if err != nil {
			return nil, false, err
		}
		if !without {
			out[key] = v
		}
	}
	return out, false, nil
}

func (t *table) names(into map[string]bool) {
	for _, entry := range *t {
		entry.names(into)
	}
}

// builder makes the values of args.
type builder struct {
	r      *reader
	inputs []spec.Input
}

func (b builder) table(v any, path string, depth int) *table {
	keys, ok := v.(map[string]any)
	switch {
	case !ok:
		b.r.add(path, "it is not a table")
		return nil
	case depth > maxArgsDepth:
		b.r.add(path, "it is nested more than %d deep", maxArgsDepth)
		return nil
	case len(keys) > maxItems:
		b.r.add(path, "it has more than %d entries", maxItems)
		return nil
	}
	t := table{}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		at := tableOf{path: path}.at(key)
		if strings.Contains(key, "${") || !spec.IsLine(key) || len(key) > maxString {
			b.r.add(at, "an argument fills a value, never a key")
			continue
		}
		t[key] = b.value(keys[key], at, depth+1)
	}
	return &t
}

func (b builder) value(v any, path string, depth int) value {
	switch v := v.(type) {
	case string:
		return b.text(v, path)
	case bool:
		return literal{v}
	case int64:
		return literal{json.Number(strconv.FormatInt(v, 10))}
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			b.r.add(path, "it is not a number of JSON")
		}
		return literal{json.Number(strconv.FormatFloat(v, 'g', -1, 64))}
	case map[string]any:
		if t := b.table(v, path, depth); t != nil {
			return t
		}
		return literal{}
	case []map[string]any:
		entries := make([]any, 0, len(v))
		for _, entry := range v {
			entries = append(entries, entry)
		}
		return b.list(entries, path, depth)
	case []any:
		return b.list(v, path, depth)
	}
	b.r.add(path, "it is neither a string, a number, a boolean, a list nor a table; write a date as a string")
	return literal{}
}

func (b builder) list(entries []any, path string, depth int) value {
	if depth > maxArgsDepth || len(entries) > maxItems {
		b.r.add(path, "it is nested more than %d deep, or has more than %d entries", maxArgsDepth, maxItems)
		return literal{}
	}
	l := list{}
	for i, entry := range entries {
		at := fmt.Sprintf("%s[%d]", path, i)
		v := b.value(entry, at, depth+1)
		if w, ok := v.(whole); ok {
			b.needsRequired(w.name, at, "an entry of a list")
		}
		l = append(l, v)
	}
	return l
}

// text reads a string: ${args.NAME} stands for an argument, $${ for ${, and any other ${ is a mistake.
func (b builder) text(s, path string) value {
	if len(s) > maxString {
		b.r.add(path, "it is longer than %d bytes", maxString)
		return literal{}
	}
	t := text{pieces: []string{""}}
	last := func() *string { return &t.pieces[len(t.pieces)-1] }
	for rest := s; rest != ""; {
		at := strings.Index(rest, "${")
		if at < 0 {
			*last() += rest
			break
		}
		if at > 0 && rest[at-1] == '$' {
			*last() += rest[:at-1] + "${"
			rest = rest[at+2:]
			continue
		}
		*last() += rest[:at]
		name, after, ended := strings.Cut(rest[at+2:], "}")
		name, isArg := strings.CutPrefix(name, "args.")
		if !ended || !isArg {
			b.r.add(path, "only ${args.NAME} is replaced; write $${ for the characters ${")
			return literal{}
		}
		if !b.declared(name, path) {
			return literal{}
		}
		t.pieces, t.args, rest = append(t.pieces, ""), append(t.args, name), after
	}
	switch {
	case len(t.args) == 0:
		return literal{t.pieces[0]}
	case len(t.args) == 1 && t.pieces[0] == "" && t.pieces[1] == "":
		return whole{t.args[0]}
	}
	for _, name := range t.args {
		b.needsRequired(name, path, "part of a longer text")
	}
	return t
}

func (b builder) find(name string) (spec.Input, bool) {
	i := slices.IndexFunc(b.inputs, func(in spec.Input) bool { return in.Name == name })
	if i < 0 {
		return spec.Input{}, false
	}
	return b.inputs[i], true
}

func (b builder) declared(name, path string) bool {
	if _, ok := b.find(name); ok {
		return true
	}
	b.r.add(path, "there is no input %s; declare it with [[inputs]]", strconv.QuoteToASCII(name[:min(len(name), 100)]))
	return false
}

// needsRequired records a mistake if an argument that may be missing stands where something must.
func (b builder) needsRequired(name, path, where string) {
	if in, ok := b.find(name); ok && !in.Required {
		b.r.add(path, "the input %s is optional and %s; make it required, or the whole value of a key", name, where)
	}
}
