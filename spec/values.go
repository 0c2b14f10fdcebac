package spec

import (
	"errors"
	"slices"
	"strings"
)

// ReadObject reads a JSON object as strictly as an invocation: UTF-8, at most [MaxSize] bytes, no key but those named,
// if any are, and none twice, and nothing that is no JSON, such as NaN. A number is a [json.Number]. The error is about
// the first mistake, and has no value of the object.
func ReadObject(data []byte, keys ...string) (map[string]any, error) {
	var d diagnostics
	v, ok := readJSON(data, &d)
	if !ok || len(d.list) > 0 {
		return nil, firstOf(&d)
	}
	o, ok := v.(object)
	switch {
	case !ok:
		d.add("", "it is not an object")
	case len(keys) > 0:
		d.open(v, "", keys...)
	}
	if len(d.list) > 0 {
		return nil, firstOf(&d)
	}
	return o.plain(), nil
}

// Scalar returns the text of a string, number or boolean of JSON.
func Scalar(v any) (text string, ok bool) { return scalar(v) }

// CheckInputs checks arguments against inputs without a place in a request: the names, the types, the values, and that
// none is missing. The error is about the first mistake, and has no value of an argument.
func CheckInputs(inputs []Input, args map[string]any) error {
	var d diagnostics
	var unknown []string
	for name := range args {
		if !slices.ContainsFunc(inputs, func(in Input) bool { return in.Name == name }) {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	for _, name := range unknown {
		d.add(join("args", name), "there is no such input")
	}
	for i := range inputs {
		in := &inputs[i]
		v, has := args[in.Name]
		text, _ := scalar(v)
		switch {
		case !has && in.Required:
			d.add(join("args", in.Name), "it is missing")
		case !has:
		case v == nil:
			d.add(join("args", in.Name), "it is null")
		case !in.hasType(v):
			d.add(join("args", in.Name), "it is not %s", in.wants())
		case len(in.Values) > 0 && !slices.Contains(in.Values, text):
			d.add(join("args", in.Name), "it is not one of %s", strings.Join(in.Values, ", "))
		}
	}
	if len(d.list) > 0 {
		return firstOf(&d)
	}
	return nil
}

// InputTypes returns the types that an input may have.
func InputTypes() []string {
	return []string{"string", "integer", "number", "boolean", "array", "object"}
}

// IsLine reports whether s is text that can be printed as part of a line: it has no control character, no line break,
// and no character that is invisible or turns the text.
func IsLine(s string) bool { return !hasControl(s) }

// IsInputName reports whether s can be the name of an input.
func IsInputName(s string) bool { return isName(strings.TrimLeft(s, "_"), "._:-") }

// IsOperationName reports whether s can be the name of an operation.
func IsOperationName(s string) bool { return isName(s, "._:-") }

// IsVersion reports whether s is strict SemVer 2.0.0 without a leading v.
func IsVersion(s string) bool { return isVersion(s) }

// IsDigest reports whether s is "sha256:" and 64 hexadecimal digits.
func IsDigest(s string) bool { return isDigest(s) }

// CheckCommandName returns an error if a command in a sandbox cannot have that name.
func CheckCommandName(s string) error {
	if why := badToolName(s); why != "" {
		return errors.New(quote(s) + " " + why)
	}
	return nil
}
