package connectors

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/spec"
)

// fewValues is how many values of an input stand beside its operation.
const fewValues = 5

// limits returns what an input may be, in a few words.
func limits(in spec.Input) string { return few(in.Name+"=", in.Values) }

// few returns the first values of a list behind a word, or "" if there is none.
func few(word string, values []string) string {
	if len(values) == 0 {
		return ""
	}
	text := word + strings.Join(values[:min(len(values), fewValues)], "|")
	if more := len(values) - fewValues; more > 0 {
		text += fmt.Sprintf("|… (%d more, below)", more)
	}
	return text
}

// printLimits prints the values of inputs that have more than stand beside their operations: all of them are granted.
func printLimits(out io.Writer, c *spec.Connector) {
	var printed []string
	for _, t := range c.Tools {
		for _, op := range t.Operations {
			inputs := op.Inputs
			if m := op.MCP; m != nil {
				inputs = append(slices.Clip(inputs), spec.Input{Name: "a tool of " + op.Name, Values: m.Tools},
					spec.Input{Name: "a method of " + op.Name, Values: m.Methods})
			}
			if g := op.GraphQL; g != nil {
				inputs = append(slices.Clip(inputs), spec.Input{Name: "a field of " + op.Name, Values: g.Fields},
					spec.Input{Name: "a stored document of " + op.Name, Values: g.Hashes})
			}
			for _, in := range inputs {
				text := in.Name + " is one of " + strings.Join(in.Values, ", ")
				if len(in.Values) <= fewValues || slices.Contains(printed, text) {
					continue
				}
				printed = append(printed, text)
				fmt.Fprintf(out, "\n%s\n", text)
			}
		}
	}
}
