// Package preview reads what the preview of a request is called with: for each argument a text, or one input of the
// request as a whole.
//
//	a, err := preview.Read("owner", "${path.owner}")
//
// [Values] returns the arguments for a request. The package knows no operations: which inputs there are, and of what
// types, is its caller's.
package preview

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// The bounds of a preview.
const (
	MaxArguments = 16
	MaxRendered  = 16  // paths
	MaxText      = 200 // bytes of an argument, or of a path
)

// Argument is an argument of a preview's operation: a text, or an input of the request that is asked about.
type Argument struct {
	Name, Text string
	In, Of     string // the place and the name of the input; "": it is text
}

// MaxMatched is how many inputs a preview may be compared with.
const MaxMatched = 4

// Match is an input of the request, by its place and name, that must be what a plain gjson path of the response is.
type Match struct{ In, Name, Path string }

// ReadMatch reads a match of JSON: body.NAME, query.NAME or path.NAME, and the path.
func ReadMatch(key string, v any) (Match, error) {
	in, name, dotted := strings.Cut(key, ".")
	path, isText := v.(string)
	if !dotted || !isText || len(path) > MaxText {
		return Match{}, fmt.Errorf(`%q is no input with a path, as in "body.sha": "head.sha"`, key)
	}
	return Match{in, name, path}, nil
}

// ErrNoInput is the error of an argument that names no input of the operation in that place.
var ErrNoInput = errors.New("it names no input of this operation in that place")

// Read reads an argument of JSON: ${path.NAME}, ${query.NAME} or ${body.NAME}, as a whole, or a text.
func Read(name string, v any) (Argument, error) {
	text, isText := v.(string)
	if !isText || len(text) > MaxText || strings.ContainsFunc(text, unicode.IsControl) {
		return Argument{}, fmt.Errorf("it is not a text of at most %d bytes", MaxText)
	}
	inner, begins := strings.CutPrefix(text, "${")
	inner, ends := strings.CutSuffix(inner, "}")
	in, of, dotted := strings.Cut(inner, ".")
	switch {
	case !strings.Contains(text, "${"):
		return Argument{Name: name, Text: text}, nil
	case !begins || !ends || !dotted || strings.Contains(inner, "${"):
		return Argument{}, fmt.Errorf(`%q is neither a text nor one input as a whole, such as "${path.owner}"`, text)
	}
	return Argument{Name: name, Text: text, In: in, Of: of}, nil
}

// ErrNone is wrapped by the errors of [Values].
var ErrNone = errors.New("it cannot be fetched")

// Values returns arguments for a request whose inputs input returns, each by its place and its name, as values of the
// types that kinds has by their names. The error has no value of the request.
func Values(all []Argument, input func(in, name string) (string, bool), kinds map[string]string) (map[string]any,
	error) {
	args := map[string]any{}
	for _, a := range all {
		text := a.Text
		if a.In != "" {
			var ok bool
			if text, ok = input(a.In, a.Of); !ok {
				return nil, fmt.Errorf("%w: the request has no single %s %s", ErrNone, a.In, a.Of)
			}
		}
		args[a.Name] = Typed(kinds[a.Name], text)
	}
	return args, nil
}

// Typed returns a text as a value of a type of inputs, or as it is if it is none.
func Typed(kind, text string) any {
	switch kind {
	case "integer", "number":
		if json.Valid([]byte(text)) && strings.Trim(text, "+-.0123456789eE") == "" {
			return json.Number(text)
		}
	case "boolean":
		if b, err := strconv.ParseBool(text); err == nil && strconv.FormatBool(b) == text {
			return b
		}
	}
	return text
}
