package body

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"mime"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/spec/internal/strictjson"
)

// File is the content of a file, with what is said about it.
type File struct {
	Name    string // without a directory
	Type    string // its media type
	Content []byte
}

// The keys of a file in JSON.
const (
	keyText   = "text"
	keyBase64 = "base64"
	keyName   = "filename"
	keyType   = "content_type"
)

// IsFile reports whether a value of JSON can be a file: a text, or an object.
func IsFile(v any) bool {
	switch v.(type) {
	case string, map[string]any:
		return true
	}
	return false
}

// FileOf returns the file that a value of JSON is: a text, or an object with text or base64, and filename and
// content_type, of which neither is needed. input is the name of a file that has none.
func FileOf(input string, v any) (File, *strictjson.Mistake) {
	if s, ok := v.(string); ok {
		v = map[string]any{keyText: s}
	}
	o, _ := v.(map[string]any)
	texts := map[string]string{}
	for key, value := range o {
		s, isText := value.(string)
		switch {
		case key != keyText && key != keyBase64 && key != keyName && key != keyType:
			return File{}, mistake("a file has text or base64, filename and content_type").In(key)
		case !isText:
			return File{}, mistake("it is not a string").In(key)
		}
		texts[key] = s
	}
	content, isText := texts[keyText]
	encoded, isBase64 := texts[keyBase64]
	if isText == isBase64 {
		return File{}, mistake("a file has either text or base64")
	}
	f := File{Name: cmp.Or(texts[keyName], input), Type: cmp.Or(texts[keyType], ContentType(Text)),
		Content: []byte(content)}
	if isBase64 {
		var err error
		f.Content, err = base64.StdEncoding.Strict().DecodeString(encoded)
		if err != nil || strings.ContainsAny(encoded, "\r\n") {
			return File{}, mistake("it is not base64").In(keyBase64)
		}
		f.Type = cmp.Or(texts[keyType], ContentType(Raw))
	}
	if why := badText(content); why != "" {
		return File{}, mistake(why)
	}
	if why := badFilename(f.Name); why != "" {
		return File{}, mistake(why).In(keyName)
	}
	if !IsMediaType(f.Type) {
		return File{}, mistake("it is not a media type, such as image/png").In(keyType)
	}
	return f, nil
}

// badFilename returns why a file cannot have a name in a request, or "" if it can.
func badFilename(name string) string {
	switch {
	case name == "" || len(name) > 255:
		return "it is not 1 to 255 bytes"
	case strings.ContainsAny(name, `/\`) || name == "." || name == "..":
		return "it has a slash or a backslash: a name is without a directory"
	case badText(name) != "", strings.ContainsFunc(name, func(r rune) bool {
		return r < ' ' || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029
	}):
		return "it has a control character, a line break or a broken escape"
	}
	return ""
}

// maxMediaType bounds a media type, in bytes.
const maxMediaType = 200

// IsMediaType reports whether a text is a media type as it stands in a field: type/subtype, with parameters that need
// no quotation marks.
func IsMediaType(s string) bool {
	kind, params, err := mime.ParseMediaType(s)
	return err == nil && len(s) <= maxMediaType && strings.Count(kind, "/") == 1 &&
		mime.FormatMediaType(kind, params) != "" &&
		!strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' })
}

// IsJSON reports whether a media type is one of JSON, without parameters.
func IsJSON(s string) bool {
	kind, params, err := mime.ParseMediaType(s)
	return err == nil && len(params) == 0 && kind == s && (kind == "application/json" || strings.HasSuffix(kind, "+json"))
}

// IsForm reports whether a media type, which is one, is that of a form, or one that servers read as a form.
func IsForm(s string) bool {
	kind, _, err := mime.ParseMediaType(s)
	return err == nil && (kind == ContentType(Form) || strings.HasPrefix(kind, "multipart/"))
}

// Part is a part of a multipart/form-data body.
type Part struct {
	Name string // of an input: letters, digits and ._:-[], with keys in brackets behind it that [NewParts] admits
	File *File  // nil: a value
	// Value is the text of a value, and Type its media type, "" for text.
	Value, Type string
}

// Parts are those of a body of the kind [Multipart], in the order in which they were added.
type Parts struct {
	writer
	list []Part
	left int // bytes
}

// partSize is what a part has beside its name and its content, in bytes: no less than its boundary and its fields.
const partSize = 160

// NewParts returns no parts. A body of them has at most about most bytes.
func NewParts(most int) *Parts {
	p := &Parts{left: most}
	p.writer = writer{put: func(name, value string) { p.add(Part{Name: name, Value: value}) }, badKey: badPartKey}
	return p
}

// List returns the parts.
func (p *Parts) List() []Part { return p.list }

// TooLong reports whether parts are missing because there are too many bytes of them.
func (p *Parts) TooLong() bool { return p.full }

func (p *Parts) add(part Part) {
	size := partSize + len(part.Name) + len(part.Value) + len(part.Type)
	if part.File != nil {
		size += len(part.File.Name) + len(part.File.Type) + len(part.File.Content)
	}
	if p.full = p.full || size > p.left; !p.full {
		p.list, p.left = append(p.list, part), p.left-size
	}
}

// AddFiles adds a file (see [FileOf]), or each of a list. It returns the first mistake in them, nil if there is none.
func (p *Parts) AddFiles(name string, v any) *strictjson.Mistake {
	list, isList := v.([]any)
	if !isList {
		list = []any{v}
	}
	for i := range list {
		f, m := FileOf(name, list[i])
		switch {
		case m != nil && isList:
			return m.At(i)
		case m != nil:
			return m
		}
		p.add(Part{Name: name, File: &f})
	}
	return nil
}

// Add adds the value of an input that is no file: a part for each of a list, scalars as text, and what has properties
// as JSON, as OpenAPI encodes them; or, in the style [Brackets], a part for each scalar. It returns the first mistake.
func (p *Parts) Add(name string, v any, style Style) *strictjson.Mistake {
	if style == Brackets {
		return p.nested(name, v, 0)
	}
	list, isList := v.([]any)
	if !isList {
		return p.value(name, v)
	}
	for i := range list {
		if m := p.value(name, list[i]); m != nil {
			return m.At(i)
		}
	}
	return nil
}

func (p *Parts) value(name string, v any) *strictjson.Mistake {
	switch v.(type) {
	case map[string]any, []any:
		encoded, err := json.Marshal(v)
		if err != nil {
			return mistake("it is not JSON")
		}
		p.add(Part{Name: name, Value: string(encoded), Type: ContentType(JSON)})
		return nil
	}
	return p.scalar(name, v)
}

// badPartKey returns why a key cannot stand in brackets in the name of a part, or "" if it can. Servers do not agree on
// how a quotation mark is escaped there, and some take a semicolon for the end of a name.
func badPartKey(key string) string {
	if strings.ContainsAny(key, "\"\\%;") {
		return `the key has one of " \ % ; which servers do not read alike in the name of a part`
	}
	return badKey(key)
}

// Join returns the body of parts, and its media type with the boundary, which is in none of them. The same parts make
// the same bytes: what a person approved is what is sent again.
func Join(parts []Part) (content []byte, contentType string) {
	sum := sha256.New()
	for _, p := range parts {
		_, _ = sum.Write([]byte(p.Value))
		if p.File != nil {
			_, _ = sum.Write(p.File.Content)
		}
	}
	boundary := ""
	for clash := true; clash; {
		boundary = "aileron-" + hex.EncodeToString(sum.Sum(nil)[:20])
		_, _ = sum.Write([]byte(boundary))
		clash = slices.ContainsFunc(parts, func(p Part) bool { return p.has(boundary) })
	}
	var b bytes.Buffer
	for _, p := range parts {
		b.WriteString("--" + boundary + "\r\n" + p.head() + "\r\n")
		if p.File != nil {
			b.Write(p.File.Content)
		}
		b.WriteString(p.Value + "\r\n")
	}
	b.WriteString("--" + boundary + "--\r\n")
	return b.Bytes(), ContentType(Multipart) + "; boundary=" + boundary
}

// has reports whether the content of the part has a boundary.
func (p Part) has(boundary string) bool {
	return strings.Contains(p.Value, boundary) || p.File != nil && bytes.Contains(p.File.Content, []byte(boundary))
}

// head returns the fields of a part (RFC 7578). A quotation mark in the name of a file is escaped as browsers do it
// (WHATWG HTML, 4.10.21.8), since servers do not agree on a backslash.
func (p Part) head() string {
	head := `Content-Disposition: form-data; name="` + p.Name + `"`
	kind := p.Type
	if p.File != nil {
		head += `; filename="` + strings.ReplaceAll(p.File.Name, `"`, "%22") + `"`
		kind = p.File.Type
	}
	if kind != "" {
		head += "\r\nContent-Type: " + kind
	}
	return head + "\r\n"
}
