// Package template has patterns of paths, with a variable for a segment or a part of one:
//
//	t, err := template.Parse("/v1/projects/{project}/files/{path...}")
//
// [Template.Match] returns the variables of a path. A path is compared as it is on the wire, byte by byte.
package template

import (
	"errors"
	"strconv"
	"strings"

	"github.com/ALRubinger/aileron/spec/internal/plain"
)

// Param is a variable and its escaped value.
type Param struct{ Name, Value string }

// Template is a path pattern in the syntax of net/http's ServeMux: literal
// segments, {name} for one segment, {name...} at the end for the rest, {$} at
// the end for nothing. Unlike there, a slash at the end is just an empty last
// segment and never a whole subtree, and text may stand before and behind the
// {name} of a segment, as in {id}.json. The zero value stands for every path.
type Template struct {
	text     string
	segments []Segment
	optional bool // a path without the slash at the end is covered, too
}

// Segment is one of a Template: a literal, or a variable.
type Segment struct {
	Literal string // all of it; of a variable, the text before it
	Name    string // of the variable; "": it is a literal
	After   string // the text behind the variable
	Rest    bool   // the variable takes the rest of the path
	Slash   bool   // its value may have an escaped slash
}

// maxSegments bounds a template's depth.
const maxSegments = 64

// Parse reads a path template. A literal is written as on the wire, in
// characters that need no escape.
func Parse(s string) (Template, error) {
	if !strings.HasPrefix(s, "/") {
		return Template{}, errors.New("it does not begin with a slash")
	}
	t := Template{text: s}
	var room [16]string
	parts := AppendSegments(room[:0], strings.TrimSuffix(s, "{$}"))
	if strings.HasSuffix(s, "{$}") && parts[len(parts)-1] != "" {
		return Template{}, errors.New("{$} stands alone in the last segment")
	}
	if len(parts) > maxSegments {
		return Template{}, errors.New("it has too many segments")
	}
	t.segments = make([]Segment, 0, len(parts))
	for i, p := range parts {
		last := i == len(parts)-1
		before, name, isVariable := strings.Cut(p, "{")
		if !isVariable {
			if p == "" && !last || p == "." || p == ".." || !plain.IsSegment(p) {
				return Template{}, errors.New("the segment " + strconv.Quote(p) + " is not plain")
			}
			t.segments = append(t.segments, Segment{Literal: p})
			continue
		}
		name, after, ok := strings.Cut(name, "}")
		name, rest := strings.CutSuffix(name, "...")
		switch {
		case !ok || !plain.IsName(name, "_-.") || !plain.IsSegment(before+after):
			return Template{}, errors.New("the variable " + strconv.Quote(p) +
				" is not {name}, with plain text around it or none, or {name...}")
		case rest && before+after != "":
			return Template{}, errors.New("the variable " + strconv.Quote(p) + " takes the rest and does not stand alone")
		case rest && !last:
			return Template{}, errors.New("the variable " + strconv.Quote(p) + " takes the rest and does not stand at the end")
		case t.Has(name):
			return Template{}, errors.New("the variable " + strconv.Quote(name) + " appears twice")
		}
		t.segments = append(t.segments, Segment{Literal: before, Name: name, After: after, Rest: rest})
	}
	return t, nil
}

// Segments returns the segments, which must not be changed.
func (t Template) Segments() []Segment { return t.segments }

// String returns the template as it was written, or "" for the zero value.
func (t Template) String() string { return t.text }

// IsZero reports whether t is the zero value, which covers every path.
func (t Template) IsZero() bool { return t.text == "" }

// Has reports whether t has a variable of that name.
func (t Template) Has(name string) bool {
	for i := range t.segments {
		if t.segments[i].Name == name && name != "" {
			return true
		}
	}
	return false
}

// Match returns the variables of an escaped path, and reports whether t covers
// the path. A variable takes at least one byte, and never what could be read as
// another segment.
func (t Template) Match(path string) ([]Param, bool) {
	if path == "" || path[0] != '/' {
		return nil, false
	}
	if t.IsZero() {
		return nil, true
	}
	var room [16]string
	parts := AppendSegments(room[:0], path)
	segments, params := t.segments, []Param(nil)
	if t.optional && len(parts) == len(segments)-1 {
		segments = segments[:len(parts)]
	}
	for i, s := range segments {
		if i >= len(parts) {
			return nil, false
		}
		switch {
		case s.Rest:
			rest := strings.Join(parts[i:], "/")
			for _, p := range parts[i:] {
				if _, ok := s.value(p); !ok && p != "" {
					return nil, false
				}
			}
			return append(params, Param{s.Name, rest}), true
		case s.Name != "":
			value, ok := s.value(parts[i])
			if !ok {
				return nil, false
			}
			params = append(params, Param{s.Name, value})
		case s.Literal != parts[i]:
			return nil, false
		}
	}
	return params, len(parts) == len(segments)
}

// AppendSegments appends the segments of path, which begins with a slash. Each
// request is split, most in a few segments: the caller's room spares an allocation.
func AppendSegments(parts []string, path string) []string {
	for rest, more := path[1:], true; more; {
		var part string
		part, rest, more = strings.Cut(rest, "/")
		parts = append(parts, part)
	}
	return parts
}

// value returns the value of the segment's variable, or a part of it, in a segment of a path, and reports whether it
// has one.
func (s Segment) value(part string) (string, bool) {
	if s.Literal != "" || s.After != "" {
		return s.Affix().Value(part)
	}
	return part, plain.IsValue(part) || s.Slash && plain.IsSlashed(part)
}

// Affix returns what stands around the variable.
func (s Segment) Affix() plain.Affix { return plain.Affix{Before: s.Literal, After: s.After} }

// IsAlone reports whether the segment is a variable and nothing else.
func (s Segment) IsAlone() bool { return s.Name != "" && s.Literal == "" && s.After == "" }

// AdmitSlash allows escaped slashes in the value of a variable, with "" of each.
func (t *Template) AdmitSlash(name string) {
	for i, s := range t.segments {
		t.segments[i].Slash = s.Slash || s.IsAlone() && (name == "" || s.Name == name)
	}
}

// Slashed returns the variables whose value may have an escaped slash.
func (t Template) Slashed() []string {
	var names []string
	for _, s := range t.segments {
		if s.Slash {
			names = append(names, s.Name)
		}
	}
	return names
}

// With returns the text of the template with a value in the place of a variable.
func (t Template) With(name, value string) string {
	return strings.Replace(t.text, "{"+name+"}", value, 1)
}

// HasOptionalSlash reports whether t covers paths without the slash at its end, too.
func (t Template) HasOptionalSlash() bool { return t.optional }

// AdmitNoSlash covers paths without the slash at the end, too. It reports false if t has none behind a segment.
func (t *Template) AdmitNoSlash() bool {
	last := len(t.segments) - 1
	t.optional = last > 0 && t.segments[last] == Segment{}
	return t.optional
}

// Replace returns path with the value of a variable replaced by an escaped
// one. It reports false if t does not cover path or has no such variable.
func (t Template) Replace(path, name, value string) (replaced string, ok bool) {
	if _, ok := t.Match(path); !ok || !t.Has(name) {
		return "", false
	}
	parts := strings.Split(path[1:], "/")
	for i, s := range t.segments {
		if s.Name == name {
			if s.Rest {
				parts = parts[:i+1]
			}
			parts[i] = s.Literal + value + s.After
		}
	}
	return "/" + strings.Join(parts, "/"), true
}

// Resembles reports whether some path of t and some path of other are equal but for their case, a last slash, and
// escapes of slashes.
func (t Template) Resembles(other Template) bool {
	if t.IsZero() || other.IsZero() {
		return true
	}
	a, b, differ := t.withoutSlash(), other.withoutSlash(), map[[2]int]bool{}
	var from func(i, j int) bool
	from = func(i, j int) bool {
		switch {
		case i < len(a) && a[i].Rest, j < len(b) && b[j].Rest, i == len(a) && j == len(b):
			return true
		case i == len(a), j == len(b), differ[[2]int{i, j}], !a[i].resembles(b[j]):
			return false
		}
		differ[[2]int{i, j}] = true // or true is returned
		// A variable that may have an escaped slash stands for one segment or more.
		return from(i+1, j+1) || a[i].Slash && from(i, j+1) || b[j].Slash && from(i+1, j)
	}
	return from(0, 0)
}

// resembles reports whether some segment of a path and one of other are equal but for their case.
func (s Segment) resembles(other Segment) bool {
	switch {
	case s.Name == "" && other.Name == "":
		return strings.EqualFold(s.Literal, other.Literal)
	case s.Name == "":
		return other.resembles(s)
	case other.Name == "":
		_, ok := s.Affix().Fold().Value(strings.ToLower(other.Literal))
		return ok || s.IsAlone()
	}
	return s.Affix().Fold().Overlaps(other.Affix().Fold())
}

// withoutSlash returns the segments of t without an empty last one.
func (t Template) withoutSlash() []Segment {
	if last := len(t.segments) - 1; last >= 0 && t.segments[last] == (Segment{}) {
		return t.segments[:last]
	}
	return t.segments
}
