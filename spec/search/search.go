// Package search finds operations of connectors by words, and lists the groups of a tool:
//
//	words, err := search.Words("issue create")
//	if err != nil {
//		return err
//	}
//	hits := search.Find(connectors, search.Query{Words: words})
//
// There is no index: three thousand operations are read in a few milliseconds, and connectors change while a session
// runs. The order of the hits depends on the connectors and the words alone.
package search

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/spec"
)

// The bounds of a search.
const (
	MaxWords = 16  // words of a search
	MaxWord  = 100 // bytes of a word
)

// Query selects operations. Its zero value selects all.
type Query struct {
	Words []string // of [Words]; an operation has all of them in its name, texts, path or inputs
	Group string   // "": any; in any case
	Tool  string   // "": any
	FQN   spec.FQN // "": any
}

// Hit is an operation that was found.
type Hit struct {
	Connector *spec.Connector
	Operation *spec.Operation
	score     int
}

// Words returns the words of texts in lower case, each once. It returns an error if they are too many or too long.
func Words(text ...string) ([]string, error) {
	var words []string
	n := 0
	for _, t := range text {
		for _, w := range strings.Fields(strings.ToLower(t)) {
			if len(w) > MaxWord {
				return nil, fmt.Errorf("a word has more than %d bytes", MaxWord)
			}
			if n++; n > MaxWords {
				return nil, fmt.Errorf("there are more than %d words", MaxWords)
			}
			if !slices.Contains(words, w) {
				words = append(words, w)
			}
		}
	}
	return words, nil
}

// Find returns the operations that q selects, the closest first. Of two that are equally close, the one with the
// shorter name is first; then it is the order of the connectors, and that of their operations. Without words it is
// that order alone.
func Find(connectors []*spec.Connector, q Query) []Hit {
	var hits []Hit
	for _, c := range connectors {
		if q.FQN != "" && c.FQN != q.FQN {
			continue
		}
		for _, t := range c.Tools {
			if q.Tool != "" && t.Name != q.Tool {
				continue
			}
			for _, op := range t.Operations {
				if q.Group != "" && !strings.EqualFold(op.Group, q.Group) {
					continue
				}
				if score, ok := score(op, t.Description, q.Words); ok {
					hits = append(hits, Hit{c, op, score})
				}
			}
		}
	}
	if len(q.Words) > 0 {
		slices.SortStableFunc(hits, func(a, b Hit) int {
			return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(len(a.Operation.Name), len(b.Operation.Name)))
		})
	}
	return hits
}

// What a word is worth, by the closest place in which an operation has it.
const (
	inInputs  = 1
	inPath    = 2
	inText    = 4
	inGroup   = 5
	inName    = 7
	partOf    = 10 // a whole part of the name
	wholeName = 30
)

// score returns how close an operation is to the words, and false if it has not all of them.
func score(op *spec.Operation, toolText string, words []string) (sum int, ok bool) {
	for _, w := range words {
		worth := worthOf(op, toolText, w)
		if worth == 0 {
			return 0, false
		}
		sum += worth
	}
	return sum, true
}

func worthOf(op *spec.Operation, toolText, word string) int {
	switch at := index(op.Name, word); {
	case at >= 0 && len(word) == len(op.Name):
		return wholeName
	case at >= 0 && isPart(op.Name, at, at+len(word)):
		return partOf
	case at >= 0:
		return inName
	case has(op.Group, word):
		return inGroup
	case has(op.Summary, word), has(op.Description, word):
		return inText
	case has(op.Method, word), has(op.Path.String(), word):
		return inPath
	case has(op.Tool, word), has(toolText, word), has(string(op.Connector.FQN), word):
		return inInputs
	}
	for i := range op.Inputs {
		if has(op.Inputs[i].Name, word) {
			return inInputs
		}
	}
	return 0
}

// isPart reports whether what is from one place to another in a name is between separators, or ends of it. A capital
// letter begins a part, too.
func isPart(name string, from, to int) bool {
	begins := from == 0 || isSeparator(name[from-1]) || isUpper(name[from]) && !isUpper(name[from-1])
	return begins && (to == len(name) || isSeparator(name[to]) || isUpper(name[to]) && !isUpper(name[to-1]))
}

func isSeparator(c byte) bool { return strings.IndexByte("._:-", c) >= 0 }

func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }

func has(text, word string) bool { return index(text, word) >= 0 }

// index returns where a text has a word, which is in lower case, or -1. It allocates nothing unless the word has other
// characters than those of ASCII.
func index(text, word string) int {
	if len(word) == 0 || len(text) < len(word) {
		return -1
	}
	first := word[0]
	for i := 0; i <= len(text)-len(word); i++ {
		if lower(text[i]) == first && isLower(text[i:i+len(word)], word) {
			return i
		}
	}
	if slices.ContainsFunc([]byte(word), func(c byte) bool { return c >= 0x80 }) {
		return strings.Index(strings.ToLower(text), word)
	}
	return -1
}

// isLower reports whether a text is a word of its length, in any case.
func isLower(text, word string) bool {
	for i := range len(word) {
		if lower(text[i]) != word[i] {
			return false
		}
	}
	return true
}

func lower(c byte) byte {
	if isUpper(c) {
		return c + 'a' - 'A'
	}
	return c
}
