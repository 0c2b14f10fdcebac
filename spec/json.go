package spec

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// MaxSize is the size in bytes of the largest specification that is read.
const MaxSize = 1 << 20

// maxDepth bounds the nesting of a specification.
const maxDepth = 16

// object is a JSON object: its fields in their order, no two of one key.
type object []field

type field struct {
	key   string // in its exact spelling
	value any    // a string, json.Number or bool, nil, []any or object
}

// get returns the value of a key, and whether there is one.
func (o object) get(key string) (any, bool) {
	for i := range o {
		if o[i].key == key {
			return o[i].value, true
		}
	}
	return nil, false
}

func isString(v any) bool {
	_, ok := v.(string)
	return ok
}

// jsonReader reads strictly: UTF-8, one value, no repeated key. encoding/json uses the last of two equal keys and
// ignores the case of keys, so that a reviewer and the program could read two different specifications. All of a home's
// are read at each start: several times as fast as by a [json.Decoder].
type jsonReader struct {
	text  string
	at    int
	diags *diagnostics
	way   []step // to the value that is read
	// The values of lists and objects that are not read to their end.
	values []any
	fields []field
}

// step leads to a field of an object, or to an entry of a list.
type step struct {
	key   string
	index int // -1: a field
}

// readJSON returns the value in data. It reports false, and the reason to d, if
// data cannot be read to its end.
func readJSON(data []byte, d *diagnostics) (any, bool) {
	if len(data) > MaxSize {
		d.add("", "it is larger than %d bytes", MaxSize)
		return nil, false
	}
	if !utf8.Valid(data) {
		d.add("", "it is not UTF-8")
		return nil, false
	}
	r := jsonReader{text: string(data), diags: d}
	v, ok := r.value()
	if !ok && len(r.way) <= maxDepth {
		r.broken()
	}
	if r.space(); ok && r.at < len(data) {
		d.add("", "there is something after the end of the JSON value")
		return nil, false
	}
	return v, ok
}

// broken records a syntax error in the words of encoding/json.
func (r *jsonReader) broken() {
	err := json.Unmarshal([]byte(r.text), new(any))
	if err == nil || strings.HasPrefix(err.Error(), "unexpected end") {
		r.diags.add(r.path(), "the JSON ends too early")
		return
	}
	r.diags.add(r.path(), "it is not JSON at byte %d: %v", r.at, err)
}

// path returns the place of the value that is read.
func (r *jsonReader) path() string {
	path := ""
	for _, s := range r.way {
		if s.index < 0 {
			path = join(path, s.key)
		} else {
			path += "[" + strconv.Itoa(s.index) + "]"
		}
	}
	return path
}

// space skips what stands between values, and returns the next byte, 0 at the end.
func (r *jsonReader) space() byte {
	for ; r.at < len(r.text); r.at++ {
		switch c := r.text[r.at]; c {
		case ' ', '\n', '\t', '\r':
		default:
			return c
		}
	}
	return 0
}

func (r *jsonReader) value() (any, bool) {
	if len(r.way) > maxDepth {
		r.diags.add(r.path(), "it is nested more than %d deep", maxDepth)
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

func (r *jsonReader) word(word string) bool {
	if !strings.HasPrefix(r.text[r.at:], word) {
		return false
	}
	r.at += len(word)
	return true
}

// inside reads the value to which a step leads. If it cannot be read, the way to it stays for the message.
func (r *jsonReader) inside(s step) (any, bool) {
	r.way = append(r.way, s)
	v, ok := r.value()
	if ok {
		r.way = r.way[:len(r.way)-1]
	}
	return v, ok
}

// next skips a comma, or the byte that ends a list or an object. It reports false where neither stands.
func (r *jsonReader) next(end byte) (more, ok bool) {
	c := r.space()
	if c != ',' && c != end {
		return false, false
	}
	r.at++
	return c == ',', true
}

// begin skips the byte that begins a list or an object, and the end of an empty one.
func (r *jsonReader) begin(end byte) (more bool) {
	r.at++
	if r.space() == end {
		r.at++
		return false
	}
	return true
}

func (r *jsonReader) list() (any, bool) {
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
	list := append([]any{}, r.values[begin:]...)
	r.values = r.values[:begin]
	return list, true
}

func (r *jsonReader) object() (any, bool) {
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
		twice := isTwice(object(r.fields[begin:]), key, &seen)
		v, ok := r.inside(step{key, -1})
		switch {
		case !ok:
			return nil, false
		case twice:
			r.diags.add(join(r.path(), key), "duplicate key")
		default:
			r.fields = append(r.fields, field{key, v})
		}
		if more, ok = r.next('}'); !ok {
			return nil, false
		}
	}
	o := append(object{}, r.fields[begin:]...)
	r.fields = r.fields[:begin]
	return o, true
}

// isTwice reports whether an object has a key already.
func isTwice(o object, key string, seen *map[string]bool) bool {
	const many = 32
	if len(o) < many {
		_, twice := o.get(key)
		return twice
	}
	if *seen == nil {
		*seen = map[string]bool{}
		for _, f := range o {
			(*seen)[f.key] = true
		}
	}
	twice := (*seen)[key]
	(*seen)[key] = true
	return twice
}

// string reads a string, which begins here.
func (r *jsonReader) string() (string, bool) {
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
func (r *jsonReader) escaped() (s string, ok bool) {
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
func (r *jsonReader) number() (any, bool) {
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
