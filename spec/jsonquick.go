package spec

import (
	"encoding/json"
	"strings"
)

// quickReader reads JSON that has no mistake, which is what is read at each start, several times as fast as a
// [json.Decoder] does. What it does not take, jsonReader reads once more, for the words.
type quickReader struct {
	text string
	at   int
	// The values of lists and objects that are not read to their end.
	values []any
	fields []field
}

// readQuickly returns the value in text, which is UTF-8. It reports false where there may be a mistake.
func readQuickly(text string) (any, bool) {
	r := quickReader{text: text}
	v, ok := r.value(0)
	r.space()
	return v, ok && r.at == len(text)
}

// space skips what stands between values, and returns the next byte, 0 at the end.
func (r *quickReader) space() byte {
	for ; r.at < len(r.text); r.at++ {
		switch c := r.text[r.at]; c {
		case ' ', '\n', '\t', '\r':
		default:
			return c
		}
	}
	return 0
}

func (r *quickReader) value(depth int) (any, bool) {
	if depth > maxDepth {
		return nil, false
	}
	switch c := r.space(); c {
	case '"':
		return r.string()
	case '{':
		return r.object(depth)
	case '[':
		return r.list(depth)
	case 't':
		return true, r.word("true")
	case 'f':
		return false, r.word("false")
	case 'n':
		return nil, r.word("null")
	}
	return r.number()
}

func (r *quickReader) word(word string) bool {
	if !strings.HasPrefix(r.text[r.at:], word) {
		return false
	}
	r.at += len(word)
	return true
}

// next skips a comma, or the byte that ends a list or an object. It reports false where neither stands.
func (r *quickReader) next(end byte) (more, ok bool) {
	c := r.space()
	if c != ',' && c != end {
		return false, false
	}
	r.at++
	return c == ',', true
}

func (r *quickReader) list(depth int) (any, bool) {
	r.at++
	begin := len(r.values)
	for more := r.space() != ']'; more; {
		v, isValue := r.value(depth + 1)
		if !isValue {
			return nil, false
		}
		r.values = append(r.values, v)
		var ok bool
		if more, ok = r.next(']'); !ok {
			return nil, false
		} else if !more {
			r.at-- // it is skipped below
		}
	}
	r.at++
	list := append([]any{}, r.values[begin:]...)
	r.values = r.values[:begin]
	return list, true
}

func (r *quickReader) object(depth int) (any, bool) {
	r.at++
	begin := len(r.fields)
	var seen map[string]bool // of an object with many keys
	for more := r.space() != '}'; more; {
		if r.space() != '"' {
			return nil, false
		}
		key, isKey := r.string()
		if !isKey || r.space() != ':' {
			return nil, false
		}
		r.at++
		v, isValue := r.value(depth + 1)
		if !isValue || isTwice(object(r.fields[begin:]), key, &seen) {
			return nil, false
		}
		r.fields = append(r.fields, field{key, v})
		var ok bool
		if more, ok = r.next('}'); !ok {
			return nil, false
		} else if !more {
			r.at--
		}
	}
	r.at++
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

// string reads a string, which begins here. One with an escape is left to the decoder.
func (r *quickReader) string() (string, bool) {
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

func (r *quickReader) escaped() (s string, ok bool) {
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
func (r *quickReader) number() (any, bool) {
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
