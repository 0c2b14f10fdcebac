package shims

import (
	"bytes"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/search"
)

const (
	maxListed = 300 // operations of a group
	maxFound  = 25  // operations of a search
)

// Lookup returns what TOOL --help WORD... prints, which the command asks the session for: the help of the operation of
// that name, else the operations of the group of that name, else those that have all of the words, the closest first.
// name is that of the command. Without words it is the page of TOOL --help. It returns an error for words that are too
// many or too long. The text does not repeat them, and has at most some hundred KiB; an author's texts are in it as in
// all help.
func Lookup(ctx context.Context, name string, c *spec.Connector, t spec.Tool, words []string) ([]byte, error) {
	var b bytes.Buffer
	if len(words) == 0 {
		toolHelp(&b, name, c, t)
		b.WriteString(exits)
		return b.Bytes(), nil
	}
	if op := operationOf(t, words); op != nil {
		operationHelp(&b, name, op, nil)
		b.WriteString(exits)
		return b.Bytes(), nil
	}
	if g, ok := search.FindGroup(search.Groups(t.Operations), words...); ok {
		put(&b, "Group ", g.Name, " of ", name, ", ", count(len(g.Operations), "operation"), ":\n")
		writeOperations(&b, g.Operations[:min(len(g.Operations), maxListed)])
		if more := len(g.Operations) - maxListed; more > 0 {
			put(&b, "  and ", strconv.Itoa(more), " more: ", name, " --help WORD... finds them\n")
		}
		put(&b, "\nThe arguments of one, and an example: ", name, " OPERATION --help\n")
		return b.Bytes(), nil
	}
	return found(ctx, name, c, t, words)
}

// found returns the operations that have all of the words.
func found(ctx context.Context, name string, c *spec.Connector, t spec.Tool, words []string) ([]byte, error) {
	words, err := search.Words(words...)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	hits := search.Find(ctx, []*spec.Connector{c}, search.Query{Words: words, Tool: t.Name})
	if len(hits) == 0 {
		put(&b, "No operation of ", name, " has all of the words.\nSearch with fewer or other words; ", name,
			" --help lists ")
		if len(t.Operations) > few {
			put(&b, "the groups.\n")
		} else {
			put(&b, "all of them.\n")
		}
		return b.Bytes(), nil
	}
	has := "have"
	if len(hits) == 1 {
		has = "has"
	}
	put(&b, count(len(hits), "operation"), " of ", name, " ", has, " all of the words, the closest first:\n")
	for _, h := range hits[:min(len(hits), maxFound)] {
		op := h.Operation
		put(&b, "  ", op.Name, asks(op), "\n      ", method(op), " ", op.Path.String(), "\n")
		if text := plain(op.Summary); text != "" {
			put(&b, "      ", text, "\n")
		}
	}
	if more := len(hits) - maxFound; more > 0 {
		put(&b, "  and ", strconv.Itoa(more), " more: search with more words\n")
	}
	put(&b, "\nThe arguments of one, and an example: ", name, " OPERATION --help\n")
	return b.Bytes(), nil
}

// operationOf returns the operation that words name, nil if they name none.
func operationOf(t spec.Tool, words []string) *spec.Operation {
	if len(words) != 1 {
		return nil
	}
	i := slices.IndexFunc(t.Operations, func(op *spec.Operation) bool { return strings.EqualFold(op.Name, words[0]) })
	if i < 0 {
		return nil
	}
	return t.Operations[i]
}

// count returns a number of things.
func count(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return strconv.Itoa(n) + " " + thing
}
