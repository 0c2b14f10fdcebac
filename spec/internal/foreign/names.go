package foreign

import "strings"

// Matches reports whether text is what the pattern stands for, in which "*" is any text.
func Matches(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == text
	}
	rest, ok := strings.CutPrefix(text, parts[0])
	if !ok {
		return false
	}
	for _, part := range parts[1 : len(parts)-1] {
		_, after, ok := strings.Cut(rest, part)
		if !ok {
			return false
		}
		rest = after
	}
	return strings.HasSuffix(rest, parts[len(parts)-1])
}

// SafeName returns text with other characters than a name may have replaced, a slash by a dot. It is "" if nothing
// is left.
func SafeName(text string) string {
	if len(text) > 400 {
		text = text[:400]
	}
	text = strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.ContainsRune("._:-", c):
			return c
		case c == '/':
			return '.'
		}
		return '-'
	}, text)
	for strings.Contains(text, "--") {
		text = strings.ReplaceAll(text, "--", "-")
	}
	text = strings.TrimLeft(text, "._:-")
	return strings.TrimRight(text[:min(len(text), 90)], "._:-")
}
