package judge

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxKeys bounds the keys of an object that is judged.
const maxKeys = 64

// member is a key of an object, and its value as it stands there.
type member struct {
	key   string
	value []byte
}

// object is the members of an object, each key once.
type object []member

// get returns the value of a key; nil: there is none.
func (o object) get(key string) []byte {
	for _, m := range o {
		if m.key == key {
			return m.value
		}
	}
	return nil
}

// checkJSON checks that a body is one value of JSON in UTF-8.
func checkJSON(body []byte) error {
	switch {
	case !utf8.Valid(body):
		return undecidable("it is not UTF-8")
	case !json.Valid(body): // a byte order mark, a comment and what follows the value included
		return undecidable("it is not one value of JSON")
	}
	return nil
}

// inherited are keys by which an object of JavaScript may get members that are not its own.
var inherited = []string{"__proto__", "constructor", "prototype"}

// readObject reads the members of an object. raw is valid JSON, and place is what it is called in an error. A key that
// is there twice, or is one of those known in another case, is undecidable: some parsers take the first, some the last,
// and some ignore the case.
func readObject(raw []byte, place string, known ...string) (object, error) {
	at := skipSpace(raw, 0)
	if at == len(raw) || raw[at] != '{' {
		return nil, undecidable("%s is not an object", place)
	}
	var o object
	for at = skipSpace(raw, at+1); raw[at] != '}'; {
		end := skipValue(raw, at)
		key, ok := text(raw[at:end])
		if !ok {
			return nil, undecidable("%s has a key with a broken escape", place)
		}
		begin := skipSpace(raw, skipSpace(raw, end)+1) // past the colon
		end = skipValue(raw, begin)
		if err := o.add(member{key, raw[begin:end]}, place, known); err != nil {
			return nil, err
		}
		if at = skipSpace(raw, end); raw[at] == ',' {
			at = skipSpace(raw, at+1)
		}
	}
	return o, nil
}

func (o *object) add(m member, place string, known []string) error {
	if slices.Contains(inherited, m.key) {
		return undecidable("%s has the key %q", place, m.key)
	}
	i := slices.IndexFunc(known, func(k string) bool { return strings.EqualFold(k, m.key) })
	switch {
	case len(*o) == maxKeys:
		return undecidable("%s has more than %d keys", place, maxKeys)
	case i >= 0 && known[i] != m.key:
		return undecidable("%s has the key %q in another case", place, known[i])
	case o.get(m.key) == nil:
		*o = append(*o, m)
		return nil
	case i >= 0:
		return undecidable("%s has the key %q twice", place, known[i])
	}
	return undecidable("%s has a key twice", place)
}

// text returns the string that raw is. What has a broken escape, which parsers read differently, is none.
func text(raw []byte) (s string, ok bool) {
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	if slices.Index(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1]), true
	}
	if s, ok = unescape(raw[1 : len(raw)-1]); !ok && json.Unmarshal(raw, &s) != nil ||
		strings.ContainsRune(s, utf8.RuneError) || strings.ContainsRune(s, 0) {
		return "", false
	}
	return s, true
}

// short are the escapes of one letter in JSON, and what they stand for.
const short, escaped = `"\/bfnrt`, "\"\\/\b\f\n\r\t"

// unescape returns the string that the inside of a valid one is. ok is false where an escape is in hexadecimal digits.
func unescape(raw []byte) (s string, ok bool) {
	var b strings.Builder
	b.Grow(len(raw))
	for {
		at := bytes.IndexByte(raw, '\\')
		if at < 0 {
			b.Write(raw)
			return b.String(), true
		}
		i := strings.IndexByte(short, raw[at+1])
		if i < 0 {
			return "", false
		}
		b.Write(raw[:at])
		b.WriteByte(escaped[i])
		raw = raw[at+2:]
	}
}

// skipSpace returns where the next thing of valid JSON begins.
func skipSpace(raw []byte, at int) int {
	for at < len(raw) && (raw[at] == ' ' || raw[at] == '\t' || raw[at] == '\n' || raw[at] == '\r') {
		at++
	}
	return at
}

// skipValue returns the end of the value of valid JSON that begins at a place.
func skipValue(raw []byte, at int) int {
	depth := 0
	for ; at < len(raw); at++ {
		switch raw[at] {
		case '"':
			for at++; raw[at] != '"'; at++ {
				if raw[at] == '\\' {
					at++
				}
			}
			if depth == 0 {
				return at + 1
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth < 0 {
				return at // the end of what is around a number or a word
			}
			if depth == 0 {
				return at + 1
			}
		case ',', ':', ' ', '\t', '\n', '\r':
			if depth == 0 {
				return at
			}
		}
	}
	return at
}
