package openapi

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxNotes    = 60 // lines
	maxExamples = 3  // in a line
)

// notes are what was left out, in the order in which it was found.
type notes struct {
	kinds []string
	of    map[string]*note
	more  int // of kinds beyond maxNotes
}

type note struct {
	count    int
	examples []string
}

// add notes something of a kind, at a place, which may be "".
func (n *notes) add(kind, place string) {
	if n.of == nil {
		n.of = map[string]*note{}
	}
	entry := n.of[kind]
	if entry == nil {
		if len(n.kinds) == maxNotes {
			n.more++
			return
		}
		entry = &note{}
		n.kinds, n.of[kind] = append(n.kinds, kind), entry
	}
	if place != "" && slices.Contains(entry.examples, place) {
		return
	}
	entry.count++
	if len(entry.examples) < maxExamples && place != "" {
		entry.examples = append(entry.examples, place)
	}
}

// lines returns a line for each kind.
func (n *notes) lines() []string {
	var lines []string
	for _, kind := range n.kinds {
		entry := n.of[kind]
		line := kind
		if len(entry.examples) > 0 {
			line += ": " + strings.Join(entry.examples, ", ")
		}
		if rest := entry.count - len(entry.examples); rest > 0 && len(entry.examples) > 0 {
			line += fmt.Sprintf(" and %d more", rest)
		}
		lines = append(lines, line)
	}
	if n.more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more things", n.more))
	}
	return lines
}

// clean returns text on one line, of at most most bytes, without characters that control a terminal or are invisible.
func clean(text string, most int) string {
	if len(text) > 8*most+64 {
		text = text[:8*most+64]
	}
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case r == utf8.RuneError, !unicode.IsPrint(r):
			return -1
		}
		return r
	}, text)
	text = strings.Join(strings.Fields(text), " ")
	if len(text) <= most {
		return text
	}
	if most < len("…") {
		return ""
	}
	text = text[:most-len("…")]
	for !utf8.ValidString(text) {
		text = text[:len(text)-1]
	}
	return strings.TrimRight(text, " ") + "…"
}
