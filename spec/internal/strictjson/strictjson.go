// Package strictjson reads JSON in which a reviewer and a program cannot read two different things: UTF-8, one value,
// no repeated key, a bounded size and depth.
//
//	v, ok := strictjson.Read(data, strictjson.Bounds{Size: 1 << 20, Depth: 16}, func(path, message string) { … })
//
// encoding/json uses the last of two equal keys and ignores the case of keys.
package strictjson

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Bounds are those of a text.
type Bounds struct {
	Size  int // bytes
	Depth int // of nested lists and objects
}

// Object is a JSON object: its fields in their order, no two of one key.
type Object []Field

// Field is a key of an object with its value.
type Field struct {
	Key   string // in its exact spelling
	Value any    // a string, json.Number or bool, nil, []any or Object
}

// Get returns the value of a key, and whether there is one.
func (o Object) Get(key string) (any, bool) {
	for i := range o {
		if o[i].Key == key {
			return o[i].Value, true
		}
	}
	return nil, false
}

// Plain returns the object as a map, with all objects in it.
func (o Object) Plain() map[string]any {
	m := make(map[string]any, len(o))
	for _, f := range o {
		m[f.Key] = Plain(f.Value)
	}
	return m
}

// Plain returns a value whose objects are maps.
func Plain(v any) any {
	switch t := v.(type) {
	case Object:
		return t.Plain()
	case []any:
		list := make([]any, len(t))
		for i, v := range t {
			list[i] = Plain(v)
		}
		return list
	}
	return v
}

// Join returns the path of a key of the value at path. A key that is not a plain name is quoted, so that it cannot pass
// for another path or move a terminal's cursor.
func Join(path, key string) string {
	if !isPlainKey(key) {
		key = strconv.QuoteToASCII(key[:min(len(key), 100)])
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

// isPlainKey reports whether a key is 1 to 100 letters, digits, dashes and underscores, and begins with none of the
// last two.
func isPlainKey(key string) bool {
	for i, c := range []byte(key) {
		alnum := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !alnum && (i == 0 || c != '_' && c != '-') {
			return false
		}
	}
	return key != "" && len(key) <= 100
}

// reader reads a text. All specifications of a home are read at each start: several times as fast as by a
// [json.Decoder].
type reader struct {
	text   string
	at     int
	depth  int // at most
	report func(path, message string)
	way    []step // to the value that is read
	// The values of lists and objects that are not read to their end.
	values []any
	fields []Field
	// Where the values of those that are read have their place, one behind the other.
	listed []any
	placed []Field
}

// maxSlab bounds what is allocated at once for the values of lists and objects, in values.
const maxSlab = 1024

// place returns a copy of values, in the slab, which it makes larger if it is full.
func place[T any](slab *[]T, values []T) []T {
	if len(values) == 0 {
		return []T{}
	}
	n := len(*slab)
	if cap(*slab)-n < len(values) {
		*slab, n = make([]T, 0, max(len(values), min(max(2*cap(*slab), 8), maxSlab))), 0
	}
	*slab = append(*slab, values...)
	return (*slab)[n:len(*slab):len(*slab)]
}

// step leads to a field of an object, or to an entry of a list.
type step struct {
	key   string
	index int // -1: a field
}

// Read returns the value in data. Each mistake is reported with its path, "" for the whole. ok is false if data cannot
// be read to its end, and true in spite of a repeated key.
func Read(data []byte, most Bounds, report func(path, message string)) (v any, ok bool) {
	if len(data) > most.Size {
		data = data[:most.Size+1] // no more is looked at
	}
	return ReadText(string(data), most, report)
}

// ReadText is [Read] of a text. The strings of the value are parts of it.
func ReadText(text string, most Bounds, report func(path, message string)) (v any, ok bool) {
	if len(text) > most.Size {
		report("", fmt.Sprintf("it is larger than %d bytes", most.Size))
		return nil, false
	}
	if !utf8.ValidString(text) {
		report("", "it is not UTF-8")
		return nil, false
	}
	r := reader{text: text, depth: most.Depth, report: report}
	v, ok = r.value()
	if !ok && len(r.way) <= r.depth {
		r.broken()
	}
	if r.space(); ok && r.at < len(text) {
		report("", "there is something after the end of the JSON value")
		return nil, false
	}
	return v, ok
}

// broken records a syntax error in the words of encoding/json.
func (r *reader) broken() {
	err := json.Unmarshal([]byte(r.text), new(any))
	if err == nil || strings.HasPrefix(err.Error(), "unexpected end") {
		r.report(r.path(), "the JSON ends too early")
		return
	}
	r.report(r.path(), fmt.Sprintf("it is not JSON at byte %d: %v", r.at, err))
}

// path returns the place of the value that is read.
func (r *reader) path() string {
	path := ""
	for _, s := range r.way {
		if s.index < 0 {
			path = Join(path, s.key)
		} else {
			path += "[" + strconv.Itoa(s.index) + "]"
		}
	}
	return path
}

// space skips what stands between values, and returns the next byte, 0 at the end.
func (r *reader) space() byte {
	for ; r.at < len(r.text); r.at++ {
		switch c := r.text[r.at]; c {
		case ' ', '\n', '\t', '\r':
		default:
			return c
		}
	}
	return 0
}

func (r *reader) value() (any, bool) {
	if len(r.way) > r.depth {
		r.report(r.path(), fmt.Sprintf("it is nested more than %d deep", r.depth))
		return nil, false
	}
	switch c := r.space(); c {
	case '"':
		return r.string()
	case '{':
		return r.object()
	case '[':
		return r.list()
	case 't':
		return true, r.word("true")
	case 'f':
		return false, r.word("false")
	case 'n':
		return nil, r.word("null")
	}
	return r.number()
}

func (r *reader) word(word string) bool {
	if !strings.HasPrefix(r.text[r.at:], word) {
		return false
	}
	r.at += len(word)
	return true
}

// inside reads the value to which a step leads. If it cannot be read, the way to it stays for the message.
func (r *reader) inside(s step) (any, bool) {
	r.way = append(r.way, s)
	v, ok := r.value()
	if ok {
		r.way = r.way[:len(r.way)-1]
	}
	return v, ok
}

// next skips a comma, or the byte that ends a list or an object. It reports false where neither stands.
func (r *reader) next(end byte) (more, ok bool) {
	c := r.space()
	if c != ',' && c != end {
		return false, false
	}
	r.at++
	return c == ',', true
}

// begin skips the byte that begins a list or an object, and the end of an empty one.
func (r *reader) begin(end byte) (more bool) {
	r.at++
	if r.space() == end {
		r.at++
		return false
	}
	return true
}

func (r *reader) list() (any, bool) {
	begin := len(r.values)
	for more := r.begin(']'); more; {
		v, ok := r.inside(step{index: len(r.values) - begin})
		if !ok {
			return nil, false
		}
		r.values = append(r.values, v)
		if more, ok = r.next(']'); !ok {
			return nil, false
		}
	}
	list := place(&r.listed, r.values[begin:])
	r.values = r.values[:begin]
	return list, true
}

func (r *reader) object() (any, bool) {
	begin := len(r.fields)
	var seen map[string]bool // of an object with many keys
	for more := r.begin('}'); more; {
		if r.space() != '"' {
			return nil, false
		}
		key, ok := r.string()
		if !ok || r.space() != ':' {
			return nil, false
		}
		r.at++
		twice := isTwice(Object(r.fields[begin:]), key, &seen)
		v, ok := r.inside(step{key, -1})
		switch {
		case !ok:
			return nil, false
		case twice:
			r.report(Join(r.path(), key), "duplicate key")
		default:
			r.fields = append(r.fields, Field{key, v})
		}
		if more, ok = r.next('}'); !ok {
			return nil, false
		}
	}
	o := Object(place(&r.placed, r.fields[begin:]))
	r.fields = r.fields[:begin]
	return o, true
}

// isTwice reports whether an object has a key already.
func isTwice(o Object, key string, seen *map[string]bool) bool {
	const many = 32
	if len(o) < many {
		_, twice := o.Get(key)
		return twice
	}
	if *seen == nil {
		*seen = map[string]bool{}
		for _, f := range o {
			(*seen)[f.Key] = true
		}
	}
	twice := (*seen)[key]
	(*seen)[key] = true
	return twice
}

// string reads a string, which begins here.
func (r *reader) string() (string, bool) {
	begin := r.at + 1
	for i := begin; i < len(r.text); i++ {
		switch c := r.text[i]; {
		case c == '"':
			r.at = i + 1
			return r.text[begin:i], true
		case c == '\\':
			return r.escaped()
		case c < ' ':
			return "", false
		}
	}
	return "", false
}

// escaped reads a string that has an escape.
func (r *reader) escaped() (s string, ok bool) {
	for i := r.at + 1; i < len(r.text); i++ {
		switch r.text[i] {
		case '\\':
			i++
		case '"':
			ok = json.Unmarshal([]byte(r.text[r.at:i+1]), &s) == nil
			r.at = i + 1
			return s, ok
		}
	}
	return "", false
}

// number reads a number as RFC 8259 section 6 has it.
func (r *reader) number() (any, bool) {
	begin := r.at
	digits := func() bool {
		first := r.at
		for r.at < len(r.text) && r.text[r.at] >= '0' && r.text[r.at] <= '9' {
			r.at++
		}
		return r.at > first
	}
	skip := func(any string) bool {
		if r.at < len(r.text) && strings.IndexByte(any, r.text[r.at]) >= 0 {
			r.at++
			return true
		}
		return false
	}
	skip("-")
	if !skip("0") && !digits() {
		return nil, false
	}
	if skip(".") && !digits() {
		return nil, false
	}
	if skip("eE") {
		skip("+-")
		if !digits() {
			return nil, false
		}
	}
	return json.Number(r.text[begin:r.at]), true
}

// Mistake is a mistake at a place in a value.
type Mistake struct {
	Place string // below the value, such as ".items[2].price"; "": the value itself
	Text  string
}

// In returns the mistake as one in the value of a key.
func (m *Mistake) In(key string) *Mistake {
	if m != nil {
		m.Place = Join("x", key)[len("x"):] + m.Place
	}
	return m
}

// At returns the mistake as one in an entry of a list.
func (m *Mistake) At(i int) *Mistake {
	if m != nil {
		m.Place = "[" + strconv.Itoa(i) + "]" + m.Place
	}
	return m
}
