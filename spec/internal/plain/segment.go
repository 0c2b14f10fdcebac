package plain

import "strings"

// IsSegment reports whether s has only characters that a segment of a path has without an escape (RFC 3986, 3.3).
func IsSegment(s string) bool {
	for _, c := range []byte(s) {
		if !IsAlnum(c) && strings.IndexByte("-._~!$&'()*+,=:@", c) < 0 {
			return false
		}
	}
	return true
}

// IsValue reports whether a segment of a path, escaped as on the wire, may be the value of a variable: whatever a
// server does with it, it remains one segment and the same one. Dots, slashes, backslashes and NULs are refused in
// their escaped forms too, and so is ';', where some servers end the segment.
func IsValue(s string) bool {
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

// IsSlashed reports whether a segment is values of variables with escaped slashes between: a server that reads a slash
// there has plain segments, none of them empty or of dots.
func IsSlashed(s string) bool {
	if !HasEscapedSlash(s) {
		return false
	}
	for len(s) > 0 {
		i := escapedSlash(s)
		if i < 0 {
			return IsValue(s)
		}
		if !IsValue(s[:i]) {
			return false
		}
		s = s[i+len("%2F"):]
	}
	return false
}

// HasEscapedSlash reports whether an escape of s is that of a slash.
func HasEscapedSlash(s string) bool { return escapedSlash(s) >= 0 }

// escapedSlash returns where the first escaped slash is, -1 if there is none.
func escapedSlash(s string) int {
	for i := 0; i+2 < len(s); i++ {
		if s[i] == '%' && s[i+1] == '2' && (s[i+2] == 'F' || s[i+2] == 'f') {
			return i
		}
	}
	return -1
}

// Affix is what stands around the variable of a segment, as ".json" behind that of {id}.json.
type Affix struct{ Before, After string }

// Value returns the value of the variable in a segment, escaped as on the wire, and reports whether it has one. An
// escape is never divided: in "a%20" no 20 stands behind a value.
func (a Affix) Value(segment string) (value string, ok bool) {
	value, before := strings.CutPrefix(segment, a.Before)
	value, after := strings.CutSuffix(value, a.After)
	if i := strings.LastIndexByte(value, '%'); i >= 0 && i+len("%20") > len(value) {
		return "", false
	}
	return value, before && after && IsValue(value)
}

// Overlaps reports whether one segment has a value in both.
func (a Affix) Overlaps(b Affix) bool {
	return (strings.HasPrefix(a.Before, b.Before) || strings.HasPrefix(b.Before, a.Before)) &&
		(strings.HasSuffix(a.After, b.After) || strings.HasSuffix(b.After, a.After))
}

// Compare orders affixes of which one segment may have several: the one that says most of it goes first.
func (a Affix) Compare(b Affix) int {
	if c := len(b.Before) + len(b.After) - len(a.Before) - len(a.After); c != 0 {
		return c
	}
	if c := len(b.Before) - len(a.Before); c != 0 {
		return c
	}
	return strings.Compare(a.Before+"{}"+a.After, b.Before+"{}"+b.After)
}

// Fold returns a in lower case.
func (a Affix) Fold() Affix { return Affix{strings.ToLower(a.Before), strings.ToLower(a.After)} }
