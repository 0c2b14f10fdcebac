package actions

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/ALRubinger/aileron/internal/connectors"
	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/spec/action"
	"github.com/ALRubinger/aileron/spec/store"
)

// Show prints what an action does where a person is asked about it. On a terminal, no line begins with what its
// author wrote, but for the first three.
func Show(c *console.Console, s *store.Store, f *action.Action) {
	columns := 0
	if c.MessagesOnTerminal() {
		columns = c.Columns()
	}
	var text strings.Builder
	Print(&text, s, f)
	_, _ = io.WriteString(console.Folding(c.Stderr, columns), text.String())
}

// maxShownArgs is how many characters of the arguments of a call are printed. Of more, what follows could not be seen
// on a terminal.
const maxShownArgs = 600

// shortened returns the first n characters of text, and how many follow.
func shortened(text string, n int) string {
	runes := []rune(text)
	if len(runes) <= n {
		return text
	}
	return fmt.Sprintf("%s… (and %d further characters: read the file)", string(runes[:n]), len(runes)-n)
}

// Print prints what an action does.
func Print(out io.Writer, s *store.Store, f *action.Action) {
	fmt.Fprintf(out, "%s %s\n%s\n%s\n", f.Name, f.Version, f.Hash, f.Description)
	if len(f.Inputs) > 0 {
		fmt.Fprintf(out, "\ninputs:\n")
		w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		for _, in := range f.Inputs {
			need := "optional"
			if in.Required {
				need = "required"
			}
			text := in.Description
			if len(in.Values) > 0 {
				text = strings.TrimSpace(text + " (one of " + strings.Join(in.Values, ", ") + ")")
			}
			if text != "" {
				need += "\t" + text
			}
			fmt.Fprintf(w, "  %s\t%s\t%s\n", in.Name, in.Type, need)
		}
		_ = w.Flush()
	}
	fmt.Fprintf(out, "\nuses:\n")
	for _, p := range f.Requires {
		fmt.Fprintf(out, "  %s %s: %s\n", p, connectors.ShortHash(p.Hash), strings.Join(p.Capabilities, ", "))
	}
	fmt.Fprintf(out, "\nsends:\n")
	for _, step := range f.Steps {
		fmt.Fprintf(out, "  %s %s  %s\n", step.Tool, step.Operation, shortened(step.Args(), maxShownArgs))
	}
	fmt.Fprintf(out, "\ncalls:\n")
	linked, err := Link(s, f)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for i, step := range f.Steps {
		if err != nil {
			fmt.Fprintf(w, "  %s %s\n", step.Tool, step.Operation)
			continue
		}
		op := linked.Operations[i]
		fmt.Fprintf(w, "  %s %s\t%s\t%s%s\t%s\n", op.Tool, op.Name, connectors.AnyMethod(op.Method),
			strings.TrimSuffix(connectors.HostNames(op.Hosts)[0], ":443"), op.Path, connectors.Traits(op))
	}
	_ = w.Flush()
	if err != nil {
		fmt.Fprintf(out, "\nit cannot be run yet: %s\n", JSON{}.failed(err).Error)
	}
}
