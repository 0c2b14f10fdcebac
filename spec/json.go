package spec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"unicode/utf8"
)

// maxSpec bounds a spec or a manifest in bytes, maxDepth its nesting.
const (
	maxSpec  = 1 << 20
	maxDepth = 16
)

// object is a JSON object whose keys were each there once.
type object map[string]any

// readJSON decodes strictly: UTF-8, one value, no repeated key.
// encoding/json would take the last of two equal keys, and match keys
// whatever their case, so that a reviewer and the program could read two
// different specs.
func readJSON(data []byte) (any, error) {
	if len(data) > maxSpec {
		return nil, fmt.Errorf("it is larger than %d bytes", maxSpec)
	}
	if !utf8.Valid(data) {
		return nil, errors.New("it is not UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	v, err := readValue(dec, "", 0)
	if err != nil {
		return nil, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errors.New("there is something after the end of the JSON value")
	}
	return v, nil
}

func readValue(dec *json.Decoder, path string, depth int) (any, error) {
	if depth > maxDepth {
		return nil, at(path, "it is nested too deeply")
	}
	token, err := dec.Token()
	if err != nil {
		return nil, syntaxError(path, err)
	}
	delim, ok := token.(json.Delim)
	if !ok {
		return token, nil
	}
	if delim == '[' {
		list := []any{}
		for dec.More() {
			v, err := readValue(dec, path+"["+strconv.Itoa(len(list))+"]", depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err := dec.Token()
		return list, syntaxError(path, err)
	}
	o := object{}
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return nil, syntaxError(path, err)
		}
		key, ok := token.(string)
		if !ok {
			return nil, at(path, "a key is not a string")
		}
		if _, twice := o[key]; twice {
			return nil, at(join(path, key), "the key is there twice")
		}
		if o[key], err = readValue(dec, join(path, key), depth+1); err != nil {
			return nil, err
		}
	}
	_, err = dec.Token()
	return o, syntaxError(path, err)
}

func syntaxError(path string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return at(path, "the JSON ends too early")
	}
	return at(path, "%v", err)
}

// Fault is one thing that is wrong with a spec, and where.
type Fault struct {
	Path string // the JSON path; "" is the whole
	What string
}

func (f *Fault) Error() string {
	if f.Path == "" {
		return f.What
	}
	return f.Path + ": " + f.What
}

func at(path, format string, args ...any) *Fault {
	return &Fault{Path: path, What: fmt.Sprintf(format, args...)}
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// faults collects what is wrong, so that an author sees all of it at once.
type faults struct{ list []error }

func (f *faults) add(path, format string, args ...any) {
	f.list = append(f.list, at(path, format, args...))
}

func (f *faults) err() error { return errors.Join(f.list...) }

// node is one object of a spec under reading.
type node struct {
	f    *faults
	path string
	o    object
}

// open checks that v is an object with no key but those allowed.
func (f *faults) open(v any, path string, allowed ...string) (node, bool) {
	o, ok := v.(object)
	if !ok {
		f.add(path, "it is not an object")
		return node{}, false
	}
	var unknown []string
	for k := range o {
		if !slices.Contains(allowed, k) {
			unknown = append(unknown, k)
		}
	}
	slices.Sort(unknown)
	for _, k := range unknown {
		f.add(join(path, strconv.Quote(k)), "the key is not known")
	}
	return node{f, path, o}, true
}

func (n node) text(key string, required bool) string {
	v, ok := n.o[key]
	if !ok {
		if required {
			n.f.add(join(n.path, key), "it is missing")
		}
		return ""
	}
	s, ok := v.(string)
	switch {
	case !ok:
		n.f.add(join(n.path, key), "it is not a string")
	case required && s == "":
		n.f.add(join(n.path, key), "it is empty")
	case len(s) > 4096:
		n.f.add(join(n.path, key), "it is longer than 4096 bytes")
	case hasControl(s):
		n.f.add(join(n.path, key), "it has a control character")
	}
	return s
}

func (n node) flag(key string) bool {
	v, ok := n.o[key]
	b, isBool := v.(bool)
	if ok && !isBool {
		n.f.add(join(n.path, key), "it is not true or false")
	}
	return b
}

func (n node) list(key string, required bool) []any {
	v, ok := n.o[key]
	l, isList := v.([]any)
	switch {
	case ok && !isList:
		n.f.add(join(n.path, key), "it is not a list")
	case required && len(l) == 0:
		n.f.add(join(n.path, key), "it has no entry")
	}
	return l
}

func (n node) item(key string, i int) string { return join(n.path, key) + "[" + strconv.Itoa(i) + "]" }

// hasControl reports C0 and C1 controls, DEL, and the characters that turn or
// break lines in a terminal.
func hasControl(s string) bool {
	for _, r := range s {
		if r < 0x20 || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
			return true
		}
	}
	return false
}
