package audit

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/review"
	"github.com/ALRubinger/aileron/internal/termsafe"
)

// rowPrinter prints events: as objects with --json, as an aligned table to a terminal, and otherwise as lines of
// columns that do not depend on where they go.
type rowPrinter struct {
	a       *cli.App
	agents  review.Agents
	explain func(audit.Row) string // for -v; nil: nothing is explained

	out     io.Writer
	width   int // of the terminal; 0: it is none
	colours map[string]int
	colour  bool
	day     string // of the line before
}

// newRowPrinter returns a printer to stdout. open is for [review.Agents].
func newRowPrinter(a *cli.App, open func() (*audit.Log, error)) *rowPrinter {
	p := &rowPrinter{a: a, agents: review.Agents{Open: open}, out: a.Stdout}
	if p.width = a.OutputColumns(); p.width > 0 {
		// https://no-color.org. The cells themselves are escaped.
		p.out, p.colour, p.colours = a.Child.Stdout, a.Getenv("NO_COLOR") == "", map[string]int{}
	}
	return p
}

// print prints one event.
func (p *rowPrinter) print(ctx context.Context, r audit.Row) error {
	if p.a.JSON {
		return p.a.PrintJSON(r)
	}
	why := ""
	if p.explain != nil {
		why = termsafe.Line(review.Cut(p.explain(r), MaxRowText))
	}
	text := p.line(ctx, r, why)
	if p.width > 0 {
		text = p.row(ctx, r, why)
	}
	_, err := io.WriteString(p.out, text)
	return err
}

// line returns an event as columns that two spaces separate. Those before the decision have no space and are never
// empty.
func (p *rowPrinter) line(ctx context.Context, r audit.Row, why string) string {
	line := fmt.Sprintf("%s  %-14s  %-12s  %-8s  %-20s  %9s  %6s  %-9s %3s  %s",
		r.TS.Local().Format("2006-01-02T15:04:05.000Z07:00"), review.Word(review.ShortRow(r.ID)),
		review.Word(review.ShortSession(r.SessionID)), review.Word(p.agents.Of(ctx, r)), review.Word(r.Binding),
		cmp.Or(byteText(r), "-"),
		cmp.Or(milliText(r), "-"), decisionText(r), statusText(r), detail(r))
	if why != "" {
		line += "  " + why
	}
	return strings.TrimRight(termsafe.Line(line), " ") + "\n"
}

// The columns of the table, which fit into the 80 of a common terminal. What follows them begins in the same line if it
// fits there, and otherwise in the next one. A terminal of fewer columns gets them below the time and the session.
const (
	fullTable   = 80
	tableColumn = "%-8s %s %-14s %9s %6s %-11s %3s"
	tableWidth  = 8 + 1 + 12 + 1 + 8 + 1 + 14 + 1 + 9 + 1 + 6 + 1 + 11 + 1 + 3
	tableIndent = "         "
)

// row returns an event as a row of the table, after the date and the names of the columns where they are due.
func (p *rowPrinter) row(ctx context.Context, r audit.Row, why string) string {
	var out strings.Builder
	at := r.TS.Local()
	if day := at.Format("Monday, 2006-01-02 MST (Z07:00)"); day != p.day {
		if p.day == "" && p.width >= fullTable {
			out.WriteString("time     session      agent    id              sent/got     ms decision\n")
		}
		fmt.Fprintf(&out, "%s\n", strings.Join(console.Folded(day, p.width), "\n"))
		p.day = day
	}
	decision, rest := decisionText(r), detail(r)
	if len(decision) > 11 { // an event that is no request
		decision, rest = "", decision+"  "+rest
	}
	if r.Binding != "" && r.Binding != review.Subject(r) {
		rest = r.Binding + "  " + rest
	}
	rest = strings.TrimRight(termsafe.Line(rest), " ")
	who := p.paint(r.SessionID,
		fmt.Sprintf("%s %s", Fit(review.ShortSession(r.SessionID), 12), Fit(p.agents.Of(ctx, r), 8)))
	if p.width < fullTable {
		fmt.Fprintf(&out, "%-8s %s\n", at.Format(time.TimeOnly), who)
		p.narrow(&out, r, decision, rest, why)
		return out.String()
	}
	line := fmt.Sprintf(tableColumn, at.Format(time.TimeOnly), who, Fit(review.ShortRow(r.ID), 14),
		byteText(r), milliText(r), decision, statusText(r))
	if console.DisplayWidth(rest) < p.width-tableWidth-1 {
		out.WriteString(strings.TrimRight(line+"  "+rest, " ") + "\n")
		rest = ""
	} else {
		out.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	for _, text := range []string{rest, why} {
		for _, part := range console.Folded(text, p.width-len(tableIndent)) {
			out.WriteString(tableIndent + part + "\n")
		}
	}
	return out.String()
}

// narrow writes what does not fit beside the time and the session of an event.
func (p *rowPrinter) narrow(out *strings.Builder, r audit.Row, decision, rest, why string) {
	var cells []string
	for _, cell := range []string{strings.TrimSpace(decision + " " + statusText(r)), review.ShortRow(r.ID), byteText(r)} {
		if cell != "" {
			cells = append(cells, termsafe.Line(cell))
		}
	}
	if ms := milliText(r); ms != "" {
		cells = append(cells, ms+" ms")
	}
	for _, lines := range [][]string{console.Filled(cells, p.width-2), console.Folded(rest, p.width-2), console.Folded(why,
		p.width-2)} {
		for _, line := range lines {
			out.WriteString("  " + line + "\n")
		}
	}
}

// Fit returns text, safe to print, in exactly n columns.
func Fit(text string, n int) string {
	text = termsafe.Line(review.Cut(text, 200))
	if console.DisplayWidth(text) > n {
		runes := []rune(text)
		text = string(runes[:console.Fitting(runes, n-1)]) + "…"
	}
	return console.Padded(text, n)
}

// paint returns text in the colour of a session. Colours are assigned in the order in which sessions appear.
func (p *rowPrinter) paint(session, text string) string {
	if !p.colour || session == "" {
		return text
	}
	palette := [...]int{36, 33, 35, 32, 34, 96, 93, 95, 92, 94}
	n, ok := p.colours[session]
	if !ok {
		n = len(p.colours)
		p.colours[session] = n
	}
	return fmt.Sprintf("\x1b[%dm%s\x1b[0m", palette[n%len(palette)], text)
}

// byteText returns how much was sent and received, or "" if nothing was.
func byteText(r audit.Row) string {
	if r.RequestBytes == 0 && r.ResponseBytes == 0 {
		return ""
	}
	return byteCount(r.RequestBytes) + "/" + byteCount(r.ResponseBytes)
}

// byteCount returns a number of bytes in at most four characters.
func byteCount(n int64) string {
	if n < 1000 {
		return strconv.FormatInt(n, 10)
	}
	value := float64(n)
	for _, unit := range "kMGTPE" {
		switch value /= 1000; {
		case value < 9.95:
			return fmt.Sprintf("%.1f%c", value, unit)
		case value < 999.5:
			return fmt.Sprintf("%.0f%c", value, unit)
		}
	}
	return ">1E"
}

// milliText returns the duration of a request in milliseconds, or "" if it has none.
func milliText(r audit.Row) string {
	switch {
	case r.DurationUS <= 0:
		return ""
	case r.DurationUS < 10_000:
		return strconv.FormatFloat(float64(r.DurationUS)/1000, 'f', 1, 64)
	}
	return strconv.FormatInt(r.DurationUS/1000, 10)
}
