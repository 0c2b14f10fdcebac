package console

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"

	"github.com/ALRubinger/aileron/internal/termsafe"
)

// DisplayWidth returns how many columns of a terminal a text takes: two for a wide character, none for a combining one.
// The text must be safe to print.
func DisplayWidth(text string) (n int) {
	for _, r := range text {
		n += runeWidth(r)
	}
	return n
}

func runeWidth(r rune) int {
	if r < 0x300 {
		return 1
	}
	if unicode.In(r, unicode.Mn, unicode.Me) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// Fitting returns how many of the runes fit in n columns.
func Fitting(text []rune, n int) int {
	used := 0
	for i, r := range text {
		if used += runeWidth(r); used > n {
			return i
		}
	}
	return len(text)
}

// Padded returns text with spaces behind it, in n columns or more.
func Padded(text string, n int) string {
	return text + strings.Repeat(" ", max(0, n-DisplayWidth(text)))
}

// Table is aligned text with a name for each column. A terminal that is too narrow for it gets each row as a name,
// which is the first cell, with the others below it.
type Table struct {
	Heads []string
	Rows  [][]string
}

// Print writes the table for a terminal of so many columns; 0 is none.
func (t Table) Print(out io.Writer, columns int) error {
	widths := make([]int, len(t.Heads))
	all := append([][]string{t.Heads}, t.Rows...)
	for _, row := range all {
		for i, cell := range row {
			cell = termsafe.Line(cell) // once more is no change
			row[i] = cell
			widths[i] = max(widths[i], DisplayWidth(cell))
		}
	}
	total := 2 * (len(widths) - 1)
	for _, n := range widths {
		total += n
	}
	if columns > 0 && total > columns {
		return t.printStacked(out, columns)
	}
	for _, row := range all {
		var line strings.Builder
		for i, cell := range row {
			if line.WriteString(cell); i < len(row)-1 {
				line.WriteString(strings.Repeat(" ", widths[i]+2-DisplayWidth(cell)))
			}
		}
		if _, err := fmt.Fprintln(out, line.String()); err != nil {
			return err
		}
	}
	return nil
}

// printStacked writes each row as several lines.
func (t Table) printStacked(out io.Writer, columns int) error {
	for _, row := range t.Rows {
		lines := Folded(row[0], columns)
		var pairs []string
		for i, cell := range row[1:] {
			if cell != "" && cell != "-" {
				pairs = append(pairs, t.Heads[i+1]+" "+cell)
			}
		}
		for _, line := range Filled(pairs, columns-2) {
			lines = append(lines, "  "+line)
		}
		if _, err := fmt.Fprintln(out, strings.Join(lines, "\n")); err != nil {
			return err
		}
	}
	return nil
}

// Filled returns texts in lines of n columns at most, two spaces between them. One that is longer has lines of its own.
func Filled(texts []string, n int) (lines []string) {
	for _, text := range texts {
		last := len(lines) - 1
		if last >= 0 && DisplayWidth(lines[last])+2+DisplayWidth(text) <= n {
			lines[last] += "  " + text
			continue
		}
		lines = append(lines, Folded(text, n)...)
	}
	return lines
}

// Folding returns a writer that folds lines for a terminal of so many columns; 0 is none.
func Folding(out io.Writer, columns int) io.Writer {
	if columns == 0 {
		return out
	}
	return foldingWriter{out, columns}
}

// foldingWriter folds lines that are written whole.
type foldingWriter struct {
	out     io.Writer
	columns int
}

func (f foldingWriter) Write(p []byte) (int, error) {
	var lines []string
	for line := range strings.Lines(string(p)) {
		parts := Folded(strings.TrimSuffix(line, "\n"), f.columns)
		if len(parts) > 1 {
			parts = slices.Concat(parts[:1], indented(Folded(strings.Join(parts[1:], " "), f.columns-2)))
		}
		lines = append(lines, strings.Join(parts, "\n")+"\n")
	}
	_, err := io.WriteString(f.out, strings.Join(lines, ""))
	return len(p), err
}

// indented returns lines with two spaces in front.
func indented(lines []string) (all []string) {
	for _, line := range lines {
		all = append(all, "  "+line)
	}
	return all
}

// Folded returns text in lines of at most n columns, which end at spaces where there are any.
func Folded(text string, n int) (lines []string) {
	for left := []rune(text); len(left) > 0; {
		end := max(1, Fitting(left, n))
		if end < len(left) && left[end] != ' ' {
			if space := lastSpace(left[:end]); space > end/2 {
				end = space
			}
		}
		lines = append(lines, strings.TrimRight(string(left[:end]), " "))
		left = []rune(strings.TrimLeft(string(left[end:]), " "))
	}
	return lines
}

// lastSpace returns the position of the last space in text, or -1.
func lastSpace(text []rune) int {
	for i, r := range slices.Backward(text) {
		if r == ' ' {
			return i
		}
	}
	return -1
}

// Wrapped returns the words of text in lines of at most width characters. A longer word has a line of its own.
func Wrapped(text string, width int) (lines []string) {
	for _, word := range strings.Fields(text) {
		last := len(lines) - 1
		if last < 0 || utf8.RuneCountInString(lines[last])+1+utf8.RuneCountInString(word) > width {
			lines = append(lines, word)
			continue
		}
		lines[last] += " " + word
	}
	return lines
}
