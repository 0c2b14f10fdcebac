// Package body writes the arguments of a call as the bytes of a query or a body, in one way for every caller:
//
//	f := body.NewForm(body.MaxSize)
//	if m := f.Add("metadata", map[string]any{"a": "b"}, body.Brackets); m != nil {
//		return fmt.Errorf("args.metadata%s: %s", m.Place, m.Text)
//	}
//	text := f.String() // metadata%5Ba%5D=b
//
// No value becomes two parameters, and none the name of another: what a server could split, rename or decode
// otherwise is a mistake, with its place, and never repaired.
//
// form.go has queries and forms, multipart.go bodies of several parts.
package body

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ALRubinger/aileron/spec/internal/strictjson"
)

// The kinds of bodies.
const (
	JSON      = "json"
	Form      = "form"
	Multipart = "multipart"
	Text      = "text"
	Raw       = "raw"
)

// Kinds returns the kinds of bodies; the first is the default.
func Kinds() []string { return []string{JSON, Form, Multipart, Text, Raw} }

// ContentType returns the media type of a kind of body. That of a [Multipart] has its boundary beside it.
func ContentType(kind string) string {
	switch kind {
	case Form:
		return "application/x-www-form-urlencoded"
	case Multipart:
		return "multipart/form-data"
	case Text:
		return "text/plain; charset=utf-8"
	case Raw:
		return "application/octet-stream"
	}
	return "application/json"
}

// MaxSize bounds what is made of the arguments of a call, in bytes: escapes and names make them longer.
const MaxSize = 4 << 20

// Scalar returns the text of a string, number or boolean of JSON.
func Scalar(v any) (text string, ok bool) {
	switch t := v.(type) {
	case string:
		return t, true
	case json.Number:
		return t.String(), true
	case bool:
		return strconv.FormatBool(t), true
	}
	return "", false
}

func mistake(text string) *strictjson.Mistake { return &strictjson.Mistake{Text: text} }

// badText returns why a text cannot stand in a body, or "" if it can.
func badText(text string) string {
	if strings.ContainsRune(text, utf8.RuneError) || strings.ContainsRune(text, 0) {
		return "it has a NUL or a broken escape"
	}
	return ""
}
