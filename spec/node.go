package spec

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// node is an object of a specification that is being read.
type node struct {
	diags *diagnostics
	path  string
	o     object
}

// open checks that v is an object that has no key but those allowed. It reports
// false if v is not an object at all.
func (d *diagnostics) open(v any, path string, allowed ...string) (node, bool) {
	o, ok := v.(object)
	if !ok {
		d.add(path, "%s", missingOr(v, "an object"))
		return node{d, path, nil}, false
	}
	var unknown []string
	for i := range o {
		if k := o[i].key; !slices.Contains(allowed, k) {
			unknown = append(unknown, k)
		}
	}
	slices.Sort(unknown)
	for _, k := range unknown {
		i := slices.IndexFunc(allowed, func(a string) bool { return strings.EqualFold(a, k) })
		if i >= 0 {
			d.add(join(path, k), "unknown key; use %q, in exactly that case", allowed[i])
			continue
		}
		d.add(join(path, k), "unknown key")
	}
	return node{d, path, o}, true
}

func missingOr(v any, what string) string {
	if v == nil {
		return "it is missing or null, and must be " + what
	}
	return "it is not " + what
}

// at returns the path of a key.
func (n node) at(key string) string {
	if n.diags.pathless {
		return ""
	}
	return join(n.path, key)
}

// item returns the path of an entry of a list.
func (n node) item(key string, i int) string {
	if n.diags.pathless {
		return ""
	}
	return n.at(key) + "[" + strconv.Itoa(i) + "]"
}

// maxString bounds a string of a specification.
const maxString = 4096

func (n node) text(key string, required bool) string {
	v, ok := n.o.get(key)
	if !ok {
		if required {
			n.diags.add(n.at(key), "it is missing")
		}
		return ""
	}
	s, ok := v.(string)
	switch {
	case !ok:
		n.diags.add(n.at(key), "it is not a string")
	case required && s == "":
		n.diags.add(n.at(key), "it is empty")
	case len(s) > maxString:
		n.diags.add(n.at(key), "it is longer than %d bytes", maxString)
		return ""
	case hasControl(s):
		n.diags.add(n.at(key), "it has a line break, a control character or a broken escape")
		return ""
	}
	return s
}

func (n node) flag(key string) bool {
	v, ok := n.o.get(key)
	b, isBool := v.(bool)
	if ok && !isBool {
		n.diags.add(n.at(key), "it is not true or false")
	}
	return b
}

// maxItems bounds a list within an operation, and that of the placeholders.
const maxItems = 256

// list reads a list of at most most entries; 0 means no limit.
func (n node) list(key string, required bool, most int) []any {
	v, ok := n.o.get(key)
	l, isList := v.([]any)
	switch {
	case most > 0 && len(l) > most:
		n.diags.add(n.at(key), "it has more than %d entries", most)
		return l[:most]
	case ok && !isList:
		n.diags.add(n.at(key), "it is not a list")
	case required && len(l) == 0:
		n.diags.add(n.at(key), "it has no entry")
	}
	return l
}

// choice reads a string that must be one of those allowed; "" if the key is absent.
func (n node) choice(key string, allowed ...string) string {
	s := n.text(key, false)
	if v, _ := n.o.get(key); isString(v) && !slices.Contains(allowed, s) {
		n.diags.add(n.at(key), "%q is not %s", s, either(allowed))
		return ""
	}
	return s
}

func either(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = strconv.Quote(w)
	}
	return strings.Join(quoted, " or ")
}

// hasControl reports whether s has a character that must not be part of a printed
// line: C0 and C1 controls, DEL, characters that break or turn lines or are
// invisible, and the mark that the JSON decoder leaves for half a surrogate pair.
func hasControl(s string) bool {
	plain := true
	for i := range len(s) {
		if s[i] < 0x20 || s[i] > 0x7e {
			plain = false
			break
		}
	}
	return !plain && strings.ContainsFunc(s, func(r rune) bool {
		switch {
		case r < 0x20, r >= 0x7f && r < 0xa0, r == utf8.RuneError:
			return true
		case r >= 0x200b && r <= 0x200f, r >= 0x2028 && r <= 0x202e, r >= 0x2060 && r <= 0x2069, r == 0xfeff:
			return true
		}
		return r >= 0xe0000 && r <= 0xe007f // tags: invisible to people, text to models
	})
}

// isName reports whether s is 1 to 100 ASCII letters, digits and extra characters
// and begins with a letter or digit.
func isName(s, extra string) bool {
	if s == "" || len(s) > 100 {
		return false
	}
	for i, c := range []byte(s) {
		if !isAlnum(c) && (i == 0 || strings.IndexByte(extra, c) < 0) {
			return false
		}
	}
	return true
}

func isAlnum(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// joined returns the words as one list for a message.
func joined[S ~string](words []S) string {
	text := ""
	for i, w := range words {
		if i > 0 {
			text += ", "
		}
		text += string(w)
	}
	return text
}
