package body

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/ALRubinger/aileron/spec/internal/strictjson"
)

// Style is how the value of one input stands in a query or a form.
type Style uint8

// The styles.
const (
	Repeated Style = iota // the name once for each value of a list
	Commas                // the values of a list in one parameter, separated by commas
	Spaces                // by spaces
	Pipes                 // by vertical bars
	Brackets              // the name with a key in brackets for each entry: x[k]=v, x[0]=v
)

// The names that styles have in OpenAPI.
const (
	styleForm   = "form"
	styleSpaces = "spaceDelimited"
	stylePipes  = "pipeDelimited"
	styleDeep   = "deepObject"
)

// StyleNames returns the names of the styles.
func StyleNames() []string { return []string{styleForm, styleSpaces, stylePipes, styleDeep} }

// StyleOf returns the style of a name in OpenAPI, "" is its default, and of explode, nil is the default of the name. It
// reports false for what no style is.
func StyleOf(name string, explode *bool) (s Style, ok bool) {
	exploded := explode != nil && *explode
	switch name {
	case "", styleForm:
		if explode == nil || exploded {
			return Repeated, true
		}
		return Commas, true
	case styleSpaces:
		s, ok = Spaces, true
	case stylePipes:
		s, ok = Pipes, true
	case styleDeep:
		return Brackets, explode == nil || exploded
	}
	if exploded {
		s = Repeated
	}
	return s, ok
}

// String returns a name of the style, "" for [Repeated].
func (s Style) String() string {
	return [...]string{"", "commas", styleSpaces, stylePipes, styleDeep}[s]
}

// delimiter returns what separates the values of a list; "" if each is a parameter.
func (s Style) delimiter() string { return [...]string{"", ",", " ", "|", ""}[s] }

// maxKeys bounds the keys in brackets of one name.
const maxKeys = 16

// Keys returns the keys in the brackets of a parameter of an input. It reports false if the parameter is not one of the
// input.
func (s Style) Keys(input, parameter string) (keys []string, ok bool) {
	rest, ok := strings.CutPrefix(parameter, input)
	if !ok || s != Brackets {
		return nil, ok && rest == ""
	}
	for rest != "" {
		key, after, closed := strings.Cut(rest[1:], "]")
		if rest[0] != '[' || !closed || strings.Contains(key, "[") || len(keys) == maxKeys {
			return nil, false
		}
		keys, rest = append(keys, key), after
	}
	return keys, true
}

// Parameters are those of a query, or of a body of the kind [Form].
type Parameters struct {
	writer
	b     strings.Builder
	plain string // characters beside letters and digits that stand for themselves
	most  int    // bytes
}

// NewQuery returns a query without parameters. It has at most most bytes.
func NewQuery(most int) *Parameters { return newParameters("-._~!$'(),:@/", most) }

// NewForm returns a form without parameters (application/x-www-form-urlencoded). It has at most most bytes.
func NewForm(most int) *Parameters { return newParameters("-._*", most) }

func newParameters(plain string, most int) *Parameters {
	p := &Parameters{plain: plain, most: most}
	p.writer = writer{put: p.write, badKey: badKey}
	return p
}

// String returns the parameters as they are sent.
func (p *Parameters) String() string { return p.b.String() }

// TooLong reports whether parameters are missing because there are too many bytes of them.
func (p *Parameters) TooLong() bool { return p.full }

// write writes one parameter.
func (p *Parameters) write(name, value string) {
	if p.full = p.full || p.b.Len()+len(name)+len(value)+2 > p.most; p.full {
		return
	}
	if p.b.Len() > 0 {
		p.b.WriteByte('&')
	}
	writeEscaped(&p.b, name, p.plain)
	p.b.WriteByte('=')
	writeEscaped(&p.b, value, p.plain)
}

// Add writes the value of an input. It returns the first mistake in it, nil if there is none.
func (p *Parameters) Add(name string, v any, style Style) *strictjson.Mistake {
	switch list, isList := v.([]any); {
	case style == Brackets:
		return p.nested(name, v, 0)
	case isList && style.delimiter() != "":
		return p.joined(name, list, style.delimiter())
	case isList:
		for i := range list {
			if m := p.scalar(name, list[i]); m != nil {
				return m.At(i)
			}
		}
		return nil
	}
	return p.scalar(name, v)
}

// text returns the text of a scalar.
func text(v any) (string, *strictjson.Mistake) {
	s, ok := Scalar(v)
	why := badText(s)
	switch {
	case v == nil:
		return "", mistake("it is null, which only JSON has")
	case !ok:
		return "", mistake("its place takes strings, numbers, booleans, and lists of them")
	case why != "":
		return "", mistake(why)
	}
	return s, nil
}

// joined writes a list as one parameter.
func (p *Parameters) joined(name string, list []any, delimiter string) *strictjson.Mistake {
	all := make([]string, len(list))
	for i, v := range list {
		s, m := text(v)
		switch {
		case m != nil:
			return m.At(i)
		case strings.Contains(s, delimiter):
			return mistake("it has the character that separates the values of the list: " + strconv.Quote(delimiter)).At(i)
		case s == "":
			return mistake("it is empty, which a list in one parameter does not tell from no value").At(i)
		}
		all[i] = s
	}
	if len(all) > 0 {
		p.put(name, strings.Join(all, delimiter))
	}
	return nil
}

// The bounds of what has keys in brackets. An empty list writes nothing, and its name is made all the same.
const (
	maxName  = 4096   // bytes of the name of a parameter
	maxLists = 10_000 // lists and objects in each other or beside each other
)

// writer divides a value into those that stand in a body.
type writer struct {
	put    func(name, value string)
	badKey func(key string) string // returns why a key cannot stand in brackets, or ""
	full   bool                    // put has no room
	lists  int                     // and objects that were visited
}

func (w *writer) scalar(name string, v any) *strictjson.Mistake {
	s, m := text(v)
	if m == nil {
		w.put(name, s)
	}
	return m
}

// nested writes a value with its keys in brackets.
func (w *writer) nested(name string, v any, depth int) *strictjson.Mistake {
	switch {
	case depth > maxKeys:
		return mistake("it is nested more than " + strconv.Itoa(maxKeys) + " deep")
	case len(name) > maxName:
		return mistake("with the keys above it, it has a name of more than " + strconv.Itoa(maxName) + " bytes")
	}
	switch v.(type) {
	case map[string]any, []any:
		if w.lists++; w.lists > maxLists {
			return mistake("there are more than " + strconv.Itoa(maxLists) + " lists and objects before it")
		}
	}
	switch t := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(t)) {
			if why := w.badKey(key); why != "" {
				return mistake(why).In(key)
			}
			if w.full {
				return nil
			}
			if m := w.nested(name+"["+key+"]", t[key], depth+1); m != nil {
				return m.In(key)
			}
		}
		return nil
	case []any:
		for i := range t {
			if w.full {
				return nil
			}
			if m := w.nested(name+"["+strconv.Itoa(i)+"]", t[i], depth+1); m != nil {
				return m.At(i)
			}
		}
		return nil
	}
	return w.scalar(name, v)
}

// badKey returns why a key cannot stand in brackets, or "" if it can: a server would read another one.
func badKey(key string) string {
	switch {
	case key == "":
		return "the key is empty"
	case strings.ContainsAny(key, "[]"):
		return "the key has a bracket, by which the name of a parameter is divided"
	case strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r == 0x7f }) || badText(key) != "":
		return "the key has a control character or a broken escape"
	}
	return ""
}

// Escape returns text with every byte escaped that is neither a letter, a digit nor among plain.
func Escape(text, plain string) string {
	var b strings.Builder
	writeEscaped(&b, text, plain)
	return b.String()
}

func writeEscaped(b *strings.Builder, text, plain string) {
	const hex = "0123456789ABCDEF"
	for i := range len(text) {
		c := text[i]
		alnum := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if alnum || strings.IndexByte(plain, c) >= 0 {
			b.WriteByte(c)
		} else {
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		}
	}
}
