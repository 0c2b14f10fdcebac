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
func limits(in spec.Input) string {
	text := in.Name + "=" + strings.Join(in.Values[:min(len(in.Values), fewValues)], "|")
	if more := len(in.Values) - fewValues; more > 0 {
		text += fmt.Sprintf("|… (%d more, below)", more)
	}
	return text
}

// printLimits prints the values of inputs that have more than stand beside their operations: all of them are granted.
func printLimits(out io.Writer, c *spec.Connector) {
	var printed []string
	for _, t := range c.Tools {
		for _, op := range t.Operations {
			for _, in := range op.Inputs {
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
