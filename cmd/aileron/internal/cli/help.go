package cli

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/internal/console"
)

// WrapHelp makes help fit the terminal that it is printed on.
func (a *App) WrapHelp(root *cobra.Command) {
	whole := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		columns := a.OutputColumns()
		if columns == 0 {
			whole(cmd, args)
			return
		}
		var text bytes.Buffer
		cmd.SetOut(&text)
		whole(cmd, args)
		cmd.SetOut(a.Stdout)
		printHelp(a.Stdout, text.String(), columns)
	})
}

// printHelp prints help in lines of so many columns. Paragraphs are filled anew; of the examples, a comment that does
// not fit stands above its command, and a command stays whole, so that it can be copied.
func printHelp(out io.Writer, help string, columns int) {
	var paragraph []string
	flush := func() {
		if len(paragraph) > 0 {
			fmt.Fprintln(out, strings.Join(console.Wrapped(strings.Join(paragraph, " "), columns), "\n"))
			paragraph = nil
		}
	}
	isProse, inExamples := true, false
	for line := range strings.Lines(help) {
		line = strings.TrimRight(line, " \n")
		if isTitle := strings.HasSuffix(line, ":") && !strings.Contains(line, " ") ||
			line == "Available Commands:" || line == "Global Flags:"; isTitle {
			isProse, inExamples = false, line == "Examples:"
		}
		if isProse && line != "" && line[0] != ' ' {
			paragraph = append(paragraph, line)
			continue
		}
		flush()
		switch {
		case isProse || !inExamples:
			fmt.Fprintln(out, console.Fitted(line, columns))
		case console.DisplayWidth(line) <= columns:
			fmt.Fprintln(out, line)
		default:
			if command, comment, ok := strings.Cut(line, "  #"); ok {
				fmt.Fprintln(out, console.Fitted("  #"+comment, columns))
				line = strings.TrimRight(command, " ")
			}
			fmt.Fprintln(out, line)
		}
	}
	flush()
}
