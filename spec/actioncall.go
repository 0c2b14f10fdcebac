package spec

import (
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// ActionCall is a request by name of an action, which calls operations.
type ActionCall struct {
	Action string
	Args   map[string]any // string, json.Number, bool, nil, []any or map[string]any
}

// ParseActionCall reads the call of an action, a JSON object with the keys action and args, as [ParseInvocation] reads
// an invocation.
func ParseActionCall(data []byte) (ActionCall, error) {
	var d diagnostics
	v, ok := readJSON(data, &d)
	if !ok || len(d.list) > 0 {
		return ActionCall{}, firstOf(&d)
	}
	n, _ := d.open(v, "", "action", "args")
	call := ActionCall{Action: n.text("action", true), Args: map[string]any{}}
	if args, has := n.o.get("args"); has {
		if o, ok := args.(object); ok {
			call.Args = o.plain()
		} else {
			d.add("args", "it is not an object")
		}
	}
	if len(d.list) > 0 {
		return ActionCall{}, firstOf(&d)
	}
	return call, nil
}

// plain returns the object as a map.
func (o object) plain() map[string]any {
	m := make(map[string]any, len(o))
	for _, f := range o {
		m[f.key] = plain(f.value)
	}
	return m
}

// plain returns a value whose objects are maps.
func plain(v any) any {
	switch t := v.(type) {
	case object:
		return t.plain()
	case []any:
		list := make([]any, len(t))
		for i, v := range t {
			list[i] = plain(v)
		}
		return list
	}
	return v
}

// NewInvocation returns the invocation of an operation with arguments that a program has composed: strings, booleans,
// int64, float64 and json.Number, nil, and lists and maps of these. Any other value is an error, and so is what JSON
// cannot say.
func NewInvocation(connector, tool, operation string, args map[string]any) (Invocation, error) {
	v, err := argument(args, 0)
	if err != nil {
		return Invocation{}, err
	}
	return Invocation{Connector: connector, Tool: tool, Operation: operation, args: v.(map[string]any)}, nil
}

// argument returns a value as [ParseInvocation] would have read it.
func argument(v any, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("args: nested more than %d deep", maxDepth)
	}
	switch t := v.(type) {
	case nil, bool:
		return t, nil
	case string:
		if !utf8.ValidString(t) {
			return nil, errors.New("args: a text is not UTF-8")
		}
		return t, nil
	case json.Number, int64, int, float64:
		number, err := json.Marshal(t)
		if err != nil {
			return nil, errors.New("args: a number is none of JSON")
		}
		return json.Number(number), nil
	case []any:
		list := make([]any, len(t))
		var err error
		for i := range t {
			if list[i], err = argument(t[i], depth+1); err != nil {
				return nil, err
			}
		}
		return list, nil
	case map[string]any:
		o := make(map[string]any, len(t))
		var err error
		for k := range t {
			if o[k], err = argument(t[k], depth+1); err != nil {
				return nil, err
			}
		}
		return o, nil
	}
	return nil, fmt.Errorf("args: a value of type %T stands for none of JSON", v)
}
