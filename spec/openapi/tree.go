package openapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/ALRubinger/aileron/spec/internal/foreign"
)

// The bounds of a document.
const (
	MaxSize  = 16 << 20 // bytes
	maxNodes = 2 << 20  // values
	maxLines = 600_000  // of YAML
	maxDepth = 200
	maxText  = 4 << 10 // bytes of a text or a key; the rest is left out
)

// node is a value of a document. All methods accept nil, which is nothing.
type node struct {
	kind   byte // '{', '[', '"', or 'v' for another scalar
	text   string
	keys   []string // of an object, in its order, without repetitions
	items  []*node
	byKey  map[string]int // of a large object
	merged bool           // YAML: it is being read
}

// largeObject is the number of keys from which on an object has a map of them.
const largeObject = 12

// get returns the value of a key, or nil.
func (n *node) get(key string) *node {
	if n == nil || n.kind != '{' {
		return nil
	}
	if n.byKey != nil {
		if i, ok := n.byKey[key]; ok {
			return n.items[i]
		}
		return nil
	}
	for i, k := range n.keys {
		if k == key {
			return n.items[i]
		}
	}
	return nil
}

// scalar returns the text of a scalar, or "".
func (n *node) scalar() string {
	if n == nil || n.kind == '{' || n.kind == '[' {
		return ""
	}
	return n.text
}

// is reports whether n is the literal true.
func (n *node) isTrue() bool { return n != nil && n.kind == 'v' && strings.EqualFold(n.text, "true") }

// first returns the first entries of a list. Several operations may refer to one list, so what reads a list for each
// operation has a bound.
func (n *node) first(most int) []*node {
	if n == nil || n.kind != '[' {
		return nil
	}
	return n.items[:min(len(n.items), most)]
}

// firstKeys returns the first keys of an object, as first does.
func (n *node) firstKeys(most int) []string {
	keys := n.objectKeys()
	return keys[:min(len(keys), most)]
}

// size returns the number of entries of an object or a list.
func (n *node) size() int {
	if n == nil {
		return 0
	}
	return len(n.items)
}

// put adds a key to an object, and reports false if it has it.
func (n *node) put(key string, v *node) bool {
	if n.get(key) != nil {
		return false
	}
	n.keys, n.items = append(n.keys, key), append(n.items, v)
	switch {
	case n.byKey != nil:
		n.byKey[key] = len(n.keys) - 1
	case len(n.keys) == largeObject:
		n.byKey = map[string]int{}
		for i, k := range n.keys {
			n.byKey[k] = i
		}
	}
	return true
}

// parse returns the document's root.
func (b *builder) parse(data []byte) (*node, error) {
	switch {
	case len(data) > MaxSize:
		return nil, fmt.Errorf("it is larger than %d bytes", MaxSize)
	case !utf8.Valid(data):
		return nil, errors.New("it is not UTF-8")
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	var root *node
	var err error
	if start := bytes.TrimLeft(data, " \t\r\n"); len(start) > 0 && start[0] == '{' {
		root, err = b.json(data)
	} else {
		root, err = b.yaml(data)
	}
	if err == nil && (root == nil || root.kind != '{') {
		err = errors.New("it is not an object")
	}
	return root, err
}

// builder makes the tree of a document.
type builder struct {
	notes *foreign.Notes
	nodes int
	dec   *json.Decoder
	known map[*yaml.Node]*node // of anchors
	refs  func(*node)          // is told of objects with a reference; nil: nothing is
}

// make returns a new node, unless there are too many or too deep ones.
func (b *builder) make(kind byte, depth int) (*node, error) {
	if b.nodes++; b.nodes > maxNodes {
		return nil, fmt.Errorf("it has more than %d values", maxNodes)
	}
	if depth > maxDepth {
		return nil, fmt.Errorf("it is nested more than %d deep", maxDepth)
	}
	return &node{kind: kind}, nil
}

// short returns the beginning of a text. Nothing that a connector declares is longer.
func short(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(strings.Clone(text[:maxText]), "")
}

// put adds a key to an object, and notes one that the object has.
func (b *builder) put(n *node, key string, v *node) {
	if key == "$ref" && b.refs != nil {
		b.refs(n)
	}
	if key = short(key); !n.put(key, v) {
		b.notes.Add("the second value of a key that appears twice", foreign.Clean(key, 60))
	}
}

func (b *builder) json(data []byte) (*node, error) {
	b.dec = json.NewDecoder(bytes.NewReader(data))
	b.dec.UseNumber()
	root, err := b.jsonValue(0)
	if err != nil {
		return nil, err
	}
	if _, err := b.dec.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("there is something after its end, at byte %d", b.dec.InputOffset())
	}
	return root, nil
}

func (b *builder) jsonValue(depth int) (*node, error) {
	token, err := b.dec.Token()
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, errors.New("the JSON ends too early")
	}
	if err != nil {
		return nil, fmt.Errorf("it is not JSON at byte %d: %s", b.dec.InputOffset(), foreign.Clean(err.Error(), 100))
	}
	switch t := token.(type) {
	case json.Delim:
		return b.jsonItems(byte(t), depth)
	case string:
		n, err := b.make('"', depth)
		if err == nil {
			n.text = short(t)
		}
		return n, err
	default:
		n, err := b.make('v', depth)
		if err == nil && t != nil {
			n.text = short(fmt.Sprint(t))
		}
		return n, err
	}
}

func (b *builder) jsonItems(kind byte, depth int) (*node, error) {
	n, err := b.make(kind, depth)
	if err != nil {
		return nil, err
	}
	for b.dec.More() {
		key := ""
		if kind == '{' {
			token, err := b.dec.Token()
			if err != nil {
				return nil, fmt.Errorf("it is not JSON at byte %d: %s", b.dec.InputOffset(), foreign.Clean(err.Error(), 100))
			}
			key, _ = token.(string)
		}
		v, err := b.jsonValue(depth + 1)
		if err != nil {
			return nil, err
		}
		if kind == '{' {
			b.put(n, key, v)
		} else {
			n.items = append(n.items, v)
		}
	}
	if _, err := b.dec.Token(); err != nil {
		return nil, errors.New("the JSON ends too early")
	}
	return n, nil
}

// yaml reads YAML. The parser makes a node of each key and value, but does not expand aliases.
func (b *builder) yaml(data []byte) (*node, error) {
	// A value ends with one of these. The parser has no bound of its own, and needs 700 bytes for a line.
	values := 0
	for _, c := range data {
		switch c {
		case '\n', '\r', ',', '[', '{':
			values++
		}
	}
	if values > maxLines {
		return nil, fmt.Errorf("it has more than %d lines and commas of YAML; convert it to JSON", maxLines)
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, next yaml.Node
	if err := dec.Decode(&doc); err != nil {
		return nil, fmt.Errorf("it is not YAML: %s", foreign.Clean(strings.TrimPrefix(err.Error(), "yaml: "), 200))
	}
	if err := dec.Decode(&next); !errors.Is(err, io.EOF) {
		return nil, errors.New("it is more than one YAML document")
	}
	if len(doc.Content) != 1 {
		return nil, errors.New("it is empty")
	}
	b.known = map[*yaml.Node]*node{}
	return b.yamlValue(doc.Content[0], 0)
}

// yamlValue returns the node of a YAML value. What has an anchor becomes one node, wherever its aliases stand.
func (b *builder) yamlValue(y *yaml.Node, depth int) (*node, error) {
	if y.Kind == yaml.AliasNode {
		y = y.Alias
	}
	if n := b.known[y]; n != nil {
		if n.merged {
			return nil, fmt.Errorf("line %d: an alias is inside its own anchor", y.Line)
		}
		return n, nil
	}
	kind := map[yaml.Kind]byte{yaml.MappingNode: '{', yaml.SequenceNode: '[', yaml.ScalarNode: 'v'}[y.Kind]
	if y.Kind == yaml.ScalarNode && y.ShortTag() == "!!str" {
		kind = '"'
	}
	n, err := b.make(kind, depth)
	if err != nil {
		return nil, fmt.Errorf("line %d: %w", y.Line, err)
	}
	if y.Anchor != "" {
		b.known[y], n.merged = n, true
		defer func() { n.merged = false }()
	}
	switch kind {
	case '[':
		for _, item := range y.Content {
			v, err := b.yamlValue(item, depth+1)
			if err != nil {
				return nil, err
			}
			n.items = append(n.items, v)
		}
	case '{':
		for i := 0; i+1 < len(y.Content); i += 2 {
			v, err := b.yamlValue(y.Content[i+1], depth+1)
			if err != nil {
				return nil, err
			}
			if key := y.Content[i]; key.Kind == yaml.ScalarNode && key.ShortTag() == "!!merge" {
				b.notes.Add("a merge key (<<) of YAML, which OpenAPI does not have", "")
			} else {
				b.put(n, key.Value, v)
			}
		}
	default:
		if y.ShortTag() != "!!null" {
			n.text = short(y.Value)
		}
	}
	return n, nil
}
