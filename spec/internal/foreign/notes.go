// Package foreign has what the readers of descriptions of APIs share, which are written by others: [Notes] of what a
// connector cannot have, [Clean] for the texts of a description, [Matches] and [SafeName].
//
// See packages openapi and graphql.
package foreign

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	MaxNotes    = 60 // lines
	maxExamples = 3  // in a line
)

// Notes are what was left out of a description, in the order in which it was found. The zero value is empty.
type Notes struct {
	kinds []string
	of    map[string]*note
	more  int // of kinds beyond MaxNotes

	// Each is told of each note; nil: nothing is.
	Each func(kind, place string)
}

type note struct {
	count    int
	examples []string
}

// Add notes something of a kind, at a place, which may be "".
func (n *Notes) Add(kind, place string) {
	if n.Each != nil {
		n.Each(kind, place)
	}
	if n.of == nil {
		n.of = map[string]*note{}
	}
	entry := n.of[kind]
	if entry == nil {
		if len(n.kinds) == MaxNotes {
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

// Lines returns a line for each kind.
func (n *Notes) Lines() []string {
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

// Clean returns text on one line, of at most most bytes, without characters that control a terminal or are invisible.
func Clean(text string, most int) string {
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
