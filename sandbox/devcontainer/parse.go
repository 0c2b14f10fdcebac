package devcontainer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/tailscale/hujson"
)

// document is a configuration: objects are map[string]any, lists []any, and numbers [json.Number].
type document struct {
	root  map[string]any
	lines map[string]int // of each property, by its path with points
	text  []byte
}

// parse reads JSON with comments. An error has the line and the column of what it is about.
func parse(data []byte) (*document, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if at := tooDeep(data); at >= 0 { // before the parser, which calls itself
		return nil, placed(data, at, fmt.Errorf("more than %d levels", maxDepth))
	}
	value, err := hujson.Parse(data)
	if err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "hujson: "))
	}
	d := &document{lines: map[string]int{}, text: data}
	root, err := d.tree(&value, "")
	if err != nil {
		return nil, err
	}
	object, ok := root.(map[string]any)
	if !ok {
		return nil, placed(data, value.StartOffset, errors.New("it is no object"))
	}
	d.root = object
	return d, nil
}

// tree returns a value and notes where its properties are.
func (d *document) tree(v *hujson.Value, at string) (any, error) {
	switch v2 := v.Value.(type) {
	case *hujson.Object:
		object := make(map[string]any, len(v2.Members))
		for i := range v2.Members {
			m := &v2.Members[i]
			name := m.Name.Value.(hujson.Literal).String()
			if _, twice := object[name]; twice {
				return nil, placed(d.text, m.Name.StartOffset, fmt.Errorf("%q is there twice", name))
			}
			path := at + name
			d.lines[path], _ = lineColumn(d.text, m.Name.StartOffset)
			value, err := d.tree(&m.Value, path+".")
			if err != nil {
				return nil, err
			}
			object[name] = value
		}
		return object, nil
	case *hujson.Array:
		list := make([]any, 0, len(v2.Elements))
		for i := range v2.Elements {
			value, err := d.tree(&v2.Elements[i], at)
			if err != nil {
				return nil, err
			}
			list = append(list, value)
		}
		return list, nil
	case hujson.Literal:
		switch v2.Kind() {
		case '"':
			return v2.String(), nil
		case 't', 'f':
			return v2.Bool(), nil
		case '0':
			return json.Number(string(v2)), nil
		}
	}
	return nil, nil //nolint:nilnil // null
}

// placed adds the line and the column of an offset to an error.
func placed(data []byte, offset int, err error) error {
	line, column := lineColumn(data, offset)
	return fmt.Errorf("line %d, column %d: %w", line, column, err)
}

func lineColumn(data []byte, offset int) (line, column int) {
	before := data[:offset]
	return 1 + bytes.Count(before, []byte("\n")), offset - bytes.LastIndexByte(before, '\n')
}

// tooDeep returns the offset of the first bracket that is deeper than a configuration is, or -1.
func tooDeep(data []byte) int {
	depth := 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			for i++; i < len(data) && data[i] != '"'; i++ {
				if data[i] == '\\' {
					i++
				}
			}
		case '/':
			i += commentLen(data[i:])
		case '{', '[':
			if depth++; depth > maxDepth {
				return i
			}
		case '}', ']':
			depth--
		}
	}
	return -1
}

// commentLen returns how many bytes follow the first one of a comment; 0 for none.
func commentLen(data []byte) int {
	end, least := "\n", 0
	switch {
	case bytes.HasPrefix(data, []byte("//")):
	case bytes.HasPrefix(data, []byte("/*")):
		end, least = "*/", 2
	default:
		return 0
	}
	at := bytes.Index(data[least:], []byte(end))
	if at < 0 {
		return len(data)
	}
	return least + at + len(end) - 1
}
