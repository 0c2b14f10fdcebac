package judge

import (
	"strconv"
	"strings"
)

// overrideKeys finds the parameter as a key of the object that a body of JSON is: Laravel takes that for a form, and so
// does Rack with a parser of JSON. Both read the name as it is, so only its case and escapes are ignored. The keys of
// what is inside the object are none of its.
type overrideKeys struct {
	depth   int    // of braces and brackets
	quoted  bool   // within a string
	escaped bool   // within an escape
	escape  []byte // what has come of it
	text    []byte // the beginning of the string
	named   bool   // the last string was the parameter's name
}

// scan reports whether no key in a piece of the body overrides the method.
func (k *overrideKeys) scan(piece []byte, _ bool) bool {
	for len(piece) > 0 {
		if k.quoted {
			piece = k.inString(piece)
			continue
		}
		switch c := piece[0]; c {
		case '"':
			k.quoted, k.named, k.text = true, false, k.text[:0]
		case ':':
			if k.named {
				return false
			}
		case '{', '[':
			k.depth, k.named = k.depth+1, false
		case '}', ']':
			k.depth, k.named = k.depth-1, false
		case ' ', '\t', '\n', '\r':
		default:
			k.named = false
		}
		piece = piece[1:]
	}
	return true
}

// inString reads of a string, and returns what follows.
func (k *overrideKeys) inString(piece []byte) []byte {
	if k.escaped {
		k.escape = append(k.escape, piece[0])
		k.endEscape()
		return piece[1:]
	}
	end := 0
	for end < len(piece) && piece[end] != '"' && piece[end] != '\\' {
		end++
	}
	k.add(piece[:end])
	switch {
	case end == len(piece):
		return nil
	case piece[end] == '\\':
		k.escaped, k.escape = true, k.escape[:0]
	default:
		k.quoted, k.named = false, k.depth == 1 && strings.EqualFold(string(k.text), methodOverride.Name)
	}
	return piece[end+1:]
}

// endEscape ends an escape that is whole.
func (k *overrideKeys) endEscape() {
	switch {
	case k.escape[0] != 'u':
		k.add([]byte{0}) // no letter has another escape
	case len(k.escape) < len("u005f"):
		return
	default:
		n, err := strconv.ParseUint(string(k.escape[1:]), 16, 8)
		if err != nil {
			n = 0
		}
		k.add([]byte{byte(n)})
	}
	k.escaped = false
}

// add adds to the text of a string as much as makes it another name.
func (k *overrideKeys) add(piece []byte) {
	most := len(methodOverride.Name) + 1 - len(k.text)
	k.text = append(k.text, piece[:min(len(piece), most)]...)
}
