package console

import (
	"io"
	"regexp"
	"strings"

	"github.com/ALRubinger/aileron/internal/termsafe"
)

// message returns a message for stderr as safe lines that fit its terminal, without the end of the last one.
func (c *Console) message(text string) string { return Fitted(termsafe.Line(text), c.MessageColumns()) }

// Messages returns fitted lines, each with its end.
func (c *Console) Messages(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		out.WriteString(Fitted(strings.TrimSuffix(line, "\n"), c.MessageColumns()) + "\n")
	}
	return out.String()
}

// FittedOut returns a writer to stdout that makes lines fit its terminal. The last line must have its end.
func (c *Console) FittedOut() io.Writer {
	columns := c.OutputColumns()
	if columns == 0 {
		return c.Stdout
	}
	return &LineFitter{Out: c.Stdout, Columns: columns}
}

type LineFitter struct {
	Out     io.Writer
	Columns int
	part    string // a line whose end is not written yet
}

func (f *LineFitter) Write(p []byte) (int, error) {
	text := f.part + string(p)
	end := strings.LastIndexByte(text, '\n') + 1
	f.part = text[end:]
	var lines strings.Builder
	for line := range strings.Lines(text[:end]) {
		lines.WriteString(Fitted(strings.TrimRight(line, " \n"), f.Columns) + "\n")
	}
	_, err := io.WriteString(f.Out, lines.String())
	return len(p), err
}

// hanging is the beginning of a line below which its continuation starts: its indentation, and columns that are
// set apart by two spaces or more, or by one behind a name that fills its eleven characters.
var hanging = regexp.MustCompile(`^  \S{11} |^ *(?:\S+(?: \S+)* {2,})*`)

// quoted is a command in a message, up to where the sentence goes on.
var quoted = regexp.MustCompile(`\baileron [a-z][^;,()"]*`)

// Fitted returns one line as lines of so many columns; 0 is no limit. They end between words, and not within a command
// that fits on a line of its own: it is there to be copied.
func Fitted(line string, columns int) string {
	if columns == 0 || DisplayWidth(line) <= columns {
		return line
	}
	head := hanging.FindString(line)
	indent := DisplayWidth(head)
	if indent > columns/2 {
		head, indent = "", 0
	}
	if indent == 0 {
		indent = 2
	}
	rest := quoted.ReplaceAllStringFunc(line[len(head):], func(command string) string {
		trimmed := strings.TrimRight(command, " ")
		if DisplayWidth(trimmed) > columns-indent {
			return command
		}
		return strings.ReplaceAll(trimmed, " ", unbroken) + command[len(trimmed):]
	})
	out, used := head, DisplayWidth(head)
	for i, word := range strings.Split(rest, " ") {
		width := DisplayWidth(word)
		switch {
		case i == 0:
		case used+1+width <= columns:
			out, used = out+" ", used+1
		default:
			out, used = out+"\n"+strings.Repeat(" ", indent), indent
		}
		out, used = out+word, used+width
	}
	return strings.ReplaceAll(out, unbroken, " ")
}

// unbroken is a space at which a line does not end. It is one rune that a safe line does not have.
const unbroken = "\x00"
