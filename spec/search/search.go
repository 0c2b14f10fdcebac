// Package search finds operations of connectors by words, and lists the groups of a tool:
//
//	words, err := search.Words("issue create")
//	if err != nil {
//		return err
//	}
//	hits := search.Find(ctx, connectors, search.Query{Words: words})
//
// There is no index: three thousand operations are read in a few milliseconds, and connectors change while a session
// runs. The order of the hits depends on the connectors and the words alone.
package search

import (
	"cmp"
	"context"
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
// that order alone. If ctx ends, it returns what it has found so far.
func Find(ctx context.Context, connectors []*spec.Connector, q Query) []Hit {
	var hits []Hit
	for _, c := range connectors {
		if q.FQN != "" && c.FQN != q.FQN {
			continue
		}
		for _, t := range c.Tools {
			if q.Tool != "" && t.Name != q.Tool {
				continue
			}
			shared := ofTool(c, t, q.Words)
			for _, op := range t.Operations {
				if ctx.Err() != nil {
					return hits
				}
				if q.Group != "" && !strings.EqualFold(op.Group, q.Group) {
					continue
				}
				if score, ok := score(op, shared, q.Words); ok {
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

// maxText is how many bytes of a text are searched.
const maxText = 4 << 10

// folded is an operation with its texts in lower case.
type folded struct {
	name, lower                        string
	group, summary, text, method, path string
	inputs                             []string
}

func fold(op *spec.Operation) *folded {
	f := &folded{name: op.Name, lower: asciiLower(op.Name), group: lower(op.Group), summary: lower(op.Summary),
		text: lower(op.Description), method: lower(op.Method), path: lower(op.Path.String())}
	for i := range op.Inputs {
		f.inputs = append(f.inputs, lower(op.Inputs[i].Name))
	}
	return f
}

// ofTool reports for each word whether what is the same for all operations of a tool has it.
func ofTool(c *spec.Connector, t spec.Tool, words []string) []bool {
	name, text, fqn := lower(t.Name), lower(t.Description), lower(string(c.FQN))
	has := make([]bool, len(words))
	for i, w := range words {
		has[i] = strings.Contains(name, w) || strings.Contains(text, w) || strings.Contains(fqn, w)
	}
	return has
}

// score returns how close an operation is to the words, and false if it has not all of them. tool is that of [ofTool].
func score(op *spec.Operation, tool []bool, words []string) (sum int, ok bool) {
	if len(words) == 0 {
		return 0, true
	}
	f := fold(op)
	for i, w := range words {
		worth := f.worthOf(w)
		if worth == 0 && tool[i] {
			worth = inInputs
		}
		if worth == 0 {
			return 0, false
		}
		sum += worth
	}
	return sum, true
}

func (f *folded) worthOf(word string) int {
	switch at := strings.Index(f.lower, word); {
	case at >= 0 && len(word) == len(f.name):
		return wholeName
	case at >= 0 && isPart(f.name, at, at+len(word)):
		return partOf
	case at >= 0:
		return inName
	case strings.Contains(f.group, word):
		return inGroup
	case strings.Contains(f.summary, word), strings.Contains(f.text, word):
		return inText
	case strings.Contains(f.method, word), strings.Contains(f.path, word):
		return inPath
	}
	for _, name := range f.inputs {
		if strings.Contains(name, word) {
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

// lower returns what is searched of a text, in lower case.
func lower(text string) string { return strings.ToLower(text[:min(len(text), maxText)]) }

// asciiLower returns a name in lower case, with each byte where it was.
func asciiLower(name string) string {
	b := []byte(name)
	for i, c := range b {
		if isUpper(c) {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}
