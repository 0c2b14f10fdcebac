package learn

import (
	"strconv"
	"strings"
)

// Template returns the path of an operation in the syntax of connectors: /repos/{repo}/issues/{issue}. It is "" where
// the operation is for every path.
func (op Operation) Template() string {
	var b strings.Builder
	for _, s := range op.Segments {
		b.WriteByte('/')
		if s.Kind == Literal {
			b.WriteString(s.Literal)
		} else {
			b.WriteString("{" + s.Name + "}")
		}
	}
	return b.String()
}

// Name returns a name for an operation: its literals, and its method.
func (op Operation) Name() string {
	var words []string
	for _, s := range op.Segments {
		if w := word(s.Literal); w != "" {
			words = append(words, w)
		}
	}
	const most = 4
	if len(words) > most {
		words = words[len(words)-most:]
	}
	return strings.Join(append(words, strings.ToLower(op.Method)), ".")
}

// named returns segments whose variables have names: after the literal before, or else after what they look like.
func named(segments []Segment) []Segment {
	out := make([]Segment, len(segments))
	taken, last := map[string]bool{}, ""
	for i, s := range segments {
		out[i] = s
		if s.Kind == Literal {
			last = s.Literal
			continue
		}
		name := singular(word(last))
		if name == "" || isAPIVersion(name, "", 1) {
			name = map[Kind]string{Number: "id", ID: "id", Hash: "hash", Date: "date", Version: "version",
				Token: "token"}[s.Kind]
		}
		if name == "" {
			name = "name"
		}
		base := name
		for n := 2; taken[name]; n++ {
			name = base + strconv.Itoa(n)
		}
		taken[name], out[i].Name = true, name
	}
	return out
}

// word returns a literal as a word of a name: letters, digits and underscores, a letter first. It may be "".
func word(literal string) string {
	var b strings.Builder
	for _, c := range []byte(strings.ToLower(literal)) {
		switch {
		case isLetter(c), isDigit(c) && b.Len() > 0:
			b.WriteByte(c)
		case b.Len() > 0 && strings.IndexByte("-_.:", c) >= 0:
			b.WriteByte('_')
		}
	}
	text := b.String()
	return strings.Trim(text[:min(len(text), 32)], "_")
}

// singular returns the singular of a word, if it has a regular one.
func singular(w string) string {
	switch {
	case strings.HasSuffix(w, "ies") && len(w) > 4:
		return strings.TrimSuffix(w, "ies") + "y"
	case strings.HasSuffix(w, "sses"), strings.HasSuffix(w, "xes"), strings.HasSuffix(w, "ches"):
		return strings.TrimSuffix(w, "es")
	case strings.HasSuffix(w, "s") && !strings.HasSuffix(w, "ss") && !strings.HasSuffix(w, "us") && len(w) > 3:
		return strings.TrimSuffix(w, "s")
	}
	return w
}

// escapesNeedlessly reports whether a path escapes a character that needs no escape (RFC 3986 section 2.4).
func escapesNeedlessly(path string) bool {
	for i := 0; i+2 < len(path); i++ {
		if path[i] != '%' {
			continue
		}
		c, err := strconv.ParseUint(path[i+1:i+3], 16, 8)
		if b := byte(c); err == nil && (isLetter(b) || isDigit(b) || strings.IndexByte("-_~", b) >= 0) {
			return true
		}
	}
	return false
}

// Shape returns a path whose values are replaced by {}: what may be written down beside the audit log.
func Shape(path string) string {
	parts := strings.Split(strings.TrimPrefix(path[:min(len(path), maxPath)], "/"), "/")
	parts = parts[:min(len(parts), maxSegments)]
	shaped := make([]string, len(parts))
	for i, p := range parts {
		if shaped[i] = p; KindOf(p, parts[:i]) != Literal {
			shaped[i] = "{}"
		}
	}
	return "/" + strings.Join(shaped, "/")
}

// covers reports whether the segments of a shape are of the template.
func (op Operation) covers(shape []string) bool {
	if len(op.Segments) == 0 {
		return true
	}
	if len(shape) != len(op.Segments) {
		return false
	}
	for i, s := range op.Segments {
		if s.Kind == Literal && s.Literal != shape[i] || s.Kind != Literal && shape[i] == "" {
			return false
		}
	}
	return true
}
