package spec

import (
	"errors"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/spec/internal/plain"
)

// Template is a path pattern in the syntax of net/http's ServeMux: literal
// segments, {name} for one segment, {name...} at the end for the rest, {$} at
// the end for nothing. Unlike there, a slash at the end is just an empty last
// segment and never a whole subtree. The zero value stands for every path.
type Template struct {
	text     string
	segments []segment
}

type segment struct {
	literal string // when name is empty
	name    string
	rest    bool
	slash   bool // its value may have an escaped slash
}

// maxSegments bounds a template's depth.
const maxSegments = 64

// ParseTemplate reads a path template. A literal is written as on the wire, in
// characters that need no escape.
func ParseTemplate(s string) (Template, error) {
	if !strings.HasPrefix(s, "/") {
		return Template{}, errors.New("it does not begin with a slash")
	}
	t := Template{text: s}
	parts := strings.Split(strings.TrimSuffix(s[1:], "{$}"), "/")
	if strings.HasSuffix(s, "{$}") && parts[len(parts)-1] != "" {
		return Template{}, errors.New("{$} stands alone in the last segment")
	}
	if len(parts) > maxSegments {
		return Template{}, errors.New("it has too many segments")
	}
	seen := map[string]bool{}
	t.segments = make([]segment, 0, len(parts))
	for i, p := range parts {
		last := i == len(parts)-1
		name, ok := strings.CutPrefix(p, "{")
		if !ok {
			if p == "" && !last || p == "." || p == ".." || !plain.IsSegment(p) {
				return Template{}, errors.New("the segment " + quote(p) + " is not plain")
			}
			t.segments = append(t.segments, segment{literal: p})
			continue
		}
		name, ok = strings.CutSuffix(name, "}")
		rest := false
		if trimmed, found := strings.CutSuffix(name, "..."); found {
			name, rest = trimmed, true
		}
		switch {
		case !ok || !plain.IsName(name, "_-."):
			return Template{}, errors.New("the variable " + quote(p) + " is not {name} or {name...}")
		case rest && !last:
			return Template{}, errors.New("the variable " + quote(p) + " takes the rest and does not stand at the end")
		case seen[name]:
			return Template{}, errors.New("the variable " + quote(name) + " appears twice")
		}
		seen[name] = true
		t.segments = append(t.segments, segment{name: name, rest: rest})
	}
	return t, nil
}

// String returns the template as it was written, or "" for the zero value.
func (t Template) String() string { return t.text }

// IsZero reports whether t is the zero value, which covers every path.
func (t Template) IsZero() bool { return t.text == "" }

// Has reports whether t has a variable of that name.
func (t Template) Has(name string) bool {
	return slices.ContainsFunc(t.segments, func(s segment) bool { return s.name == name && name != "" })
}

// match returns the variables of an escaped path, and reports whether t covers
// the path. A variable takes at least one byte, and never what could be read as
// another segment.
func (t Template) match(path string) ([]Param, bool) {
	if path == "" || path[0] != '/' {
		return nil, false
	}
	if t.IsZero() {
		return nil, true
	}
	var room [16]string
	parts := appendSegments(room[:0], path)
	var params []Param
	for i, s := range t.segments {
		if i >= len(parts) {
			return nil, false
		}
		switch {
		case s.rest:
			rest := strings.Join(parts[i:], "/")
			for _, p := range parts[i:] {
				if !s.takes(p) && p != "" {
					return nil, false
				}
			}
			return append(params, Param{s.name, rest}), true
		case s.name != "":
			if !s.takes(parts[i]) {
				return nil, false
			}
			params = append(params, Param{s.name, parts[i]})
		case s.literal != parts[i]:
			return nil, false
		}
	}
	return params, len(parts) == len(t.segments)
}

// appendSegments appends the segments of path, which begins with a slash. Each
// request is split, most in a few segments: the caller's room spares an allocation.
func appendSegments(parts []string, path string) []string {
	for rest, more := path[1:], true; more; {
		var part string
		part, rest, more = strings.Cut(rest, "/")
		parts = append(parts, part)
	}
	return parts
}

// isValue reports whether a segment may be the value of a variable: whatever a
// server does with it, it remains one segment and the same one. Dots, slashes,
// backslashes and NULs are refused in their escaped forms too, and so is ';',
// where some servers end the segment.
func isValue(s string) bool {
	if s == "" || s == "." || s == ".." || strings.ContainsAny(s, "\\;") {
		return false
	}
	for i := 0; i+2 < len(s); i++ {
		if s[i] != '%' {
			continue
		}
		switch strings.ToLower(s[i+1 : i+3]) {
		case "2e", "2f", "5c", "00", "3b", "25":
			return false
		}
	}
	return true
}

// takes reports whether a segment of a path may be the value of a variable, or a part of it.
func (s segment) takes(part string) bool { return isValue(part) || s.slash && isSlashed(part) }

// isSlashed reports whether a segment is values of variables with escaped slashes between: a server that reads a slash
// there has plain segments, none of them empty or of dots.
func isSlashed(s string) bool {
	if !hasEscapedSlash(s) {
		return false
	}
	for len(s) > 0 {
		i := escapedSlash(s)
		if i < 0 {
			return isValue(s)
		}
		if !isValue(s[:i]) {
			return false
		}
		s = s[i+len("%2F"):]
	}
	return false
}

// escapedSlash returns where the first escaped slash is, -1 if there is none.
func escapedSlash(s string) int {
	for i := 0; i+2 < len(s); i++ {
		if s[i] == '%' && s[i+1] == '2' && (s[i+2] == 'F' || s[i+2] == 'f') {
			return i
		}
	}
	return -1
}

func hasEscapedSlash(s string) bool { return escapedSlash(s) >= 0 }

// admitSlash allows escaped slashes in the value of a variable, with "" of each.
func (t *Template) admitSlash(name string) {
	for i, s := range t.segments {
		t.segments[i].slash = s.slash || s.name != "" && (name == "" || s.name == name)
	}
}

// Slashed returns the variables whose value may have an escaped slash.
func (t Template) Slashed() []string {
	var names []string
	for _, s := range t.segments {
		if s.slash {
			names = append(names, s.name)
		}
	}
	return names
}

// with returns the text of the template with a value in the place of a variable.
func (t Template) with(name, value string) string {
	return strings.Replace(t.text, "{"+name+"}", value, 1)
}

// Replace returns path with the segment of a variable replaced by an escaped
// value. It reports false if t does not cover path or has no such variable.
func (t Template) Replace(path, name, value string) (replaced string, ok bool) {
	if _, ok := t.match(path); !ok || !t.Has(name) {
		return "", false
	}
	parts := strings.Split(path[1:], "/")
	for i, s := range t.segments {
		if s.name == name {
			if s.rest {
				parts = parts[:i+1]
			}
			parts[i] = value
		}
	}
	return "/" + strings.Join(parts, "/"), true
}
