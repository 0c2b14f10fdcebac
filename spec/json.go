package spec

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
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

// jsonReader decodes strictly: UTF-8, one value, no repeated key. encoding/json
// uses the last of two equal keys and ignores the case of keys, so that a
// reviewer and the program could read two different specifications.
type jsonReader struct {
	dec   *json.Decoder
	diags *diagnostics
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
	if v, ok := readQuickly(string(data)); ok {
		return v, true
	}
	return readForMistakes(data, d)
}

// readForMistakes returns what readQuickly does, and finds out what is wrong.
func readForMistakes(data []byte, d *diagnostics) (any, bool) {
	r := jsonReader{json.NewDecoder(bytes.NewReader(data)), d}
	r.dec.UseNumber()
	v, ok := r.value("", 0)
	if !ok {
		return nil, false
	}
	if _, err := r.dec.Token(); err != io.EOF {
		d.add("", "there is something after the end of the JSON value")
		return nil, false
	}
	return v, true
}

func (r jsonReader) value(path string, depth int) (any, bool) {
	if depth > maxDepth {
		r.diags.add(path, "it is nested more than %d deep", maxDepth)
		return nil, false
	}
	token, err := r.dec.Token()
	if err != nil {
		return nil, r.broken(path, err)
	}
	switch token {
	case json.Delim('['):
		return r.array(path, depth)
	case json.Delim('{'):
		return r.object(path, depth)
	}
	return token, true
}

func (r jsonReader) array(path string, depth int) (any, bool) {
	list := []any{}
	for r.dec.More() {
		v, ok := r.value(path+"["+strconv.Itoa(len(list))+"]", depth+1)
		if !ok {
			return nil, false
		}
		list = append(list, v)
	}
	if _, err := r.dec.Token(); err != nil {
		return nil, r.broken(path, err)
	}
	return list, true
}

func (r jsonReader) object(path string, depth int) (any, bool) {
	o, seen := object{}, map[string]bool{}
	for r.dec.More() {
		token, err := r.dec.Token()
		if err != nil {
			return nil, r.broken(path, err)
		}
		key, ok := token.(string)
		if !ok {
			r.diags.add(path, "a key is not a string")
			return nil, false
		}
		twice := seen[key]
		seen[key] = true
		if twice {
			r.diags.add(join(path, key), "duplicate key")
		}
		v, ok := r.value(join(path, key), depth+1)
		if !ok {
			return nil, false
		}
		if !twice {
			o = append(o, field{key, v})
		}
	}
	if _, err := r.dec.Token(); err != nil {
		return nil, r.broken(path, err)
	}
	return o, true
}

// broken records a syntax error. It always returns false, for the caller to return.
func (r jsonReader) broken(path string, err error) bool {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		r.diags.add(path, "the JSON ends too early")
		return false
	}
	r.diags.add(path, "it is not JSON at byte %d: %v", r.dec.InputOffset(), err)
	return false
}
