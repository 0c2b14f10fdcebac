package review

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/termsafe"
)

// RowTable prints events: as an aligned table to a terminal, and otherwise as lines of columns that do not depend on
// where they go. A column is as wide as what is shown in it: the first lines are held until that is known, and later
// ones may widen it. The caller flushes. [NewRowTable] makes one.
type RowTable struct {
	Agents  Agents
	Explain func(audit.Row) string // why an event was refused; nil: nothing is explained

	out     io.Writer
	width   int // of the terminal; 0: it is none
	colours map[string]int
	colour  bool
	held    []shownLine
	widths  []int  // of the columns so far; 0: nothing was shown in it
	day     string // of the line before
}

// maxHeld is how many lines are held.
const maxHeld = 128

// shownLine is an event as it is printed.
type shownLine struct {
	at        time.Time
	session   string
	cells     []string // of the columns, safe to print
	rest, why string
	narrow    []string // what a narrow terminal gets below the time and the session
}

// column is one of the table. A cell that is wider than most does not widen it.
type column struct {
	head  string
	most  int
	right bool
}

// columns returns those of the lines, behind the time.
func (p *RowTable) columns() []column {
	session, id := column{"session", 12, false}, column{"id", 14, false}
	agent, sizes := column{"agent", 16, false}, []column{{"sent/got", 12, true}, {"ms", 12, true}}
	decision := []column{{"decision", 11, false}, {"", 3, true}}
	if p.width > 0 {
		return append(append([]column{session, agent, id}, sizes...), decision...)
	}
	return append(append([]column{id, session, agent, {"", 40, false}}, sizes...), decision...)
}

// NewRowTable returns a table to out, which is a terminal of width columns; 0: it is none. It has colours if colour.
func NewRowTable(out io.Writer, width int, colour bool, agents Agents) *RowTable {
	p := &RowTable{Agents: agents, out: out, width: width}
	if p.colour = colour; colour {
		p.colours = map[string]int{}
	}
	p.widths = make([]int, len(p.columns()))
	return p
}

// Print prints one event, with a decision in place of its own, unless it is empty.
func (p *RowTable) Print(ctx context.Context, r audit.Row, decision string) error {
	p.held = append(p.held, p.lineOf(ctx, r, decision))
	if len(p.held) < maxHeld {
		return nil
	}
	return p.Flush()
}

// Flush prints what is held.
func (p *RowTable) Flush() error {
	for i, c := range p.columns() {
		for _, l := range p.held {
			if n := console.DisplayWidth(l.cells[i]); n <= c.most && n > p.widths[i] {
				p.widths[i] = n
				if p.width > 0 {
					p.widths[i] = max(n, len(c.head))
				}
			}
		}
	}
	var out strings.Builder
	for _, l := range p.held {
		if p.width > 0 {
			p.writeRow(&out, l)
			continue
		}
		line := l.at.Format("2006-01-02T15:04:05.000Z07:00") + "  " + strings.Join(p.aligned(l.cells), "  ") + "  " + l.rest
		if l.why != "" {
			line += "  " + l.why
		}
		out.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	p.held = nil
	_, err := io.WriteString(p.out, out.String())
	return err
}

// aligned returns the cells in their columns. A column in which nothing was shown is left out.
func (p *RowTable) aligned(cells []string) (parts []string) {
	for i, c := range p.columns() {
		pad := strings.Repeat(" ", max(0, p.widths[i]-console.DisplayWidth(cells[i])))
		switch {
		case p.widths[i] == 0 && cells[i] == "":
		case c.right:
			parts = append(parts, pad+cells[i])
		default:
			parts = append(parts, cells[i]+pad)
		}
	}
	return parts
}

// lineOf returns an event as it is printed. In a pipe, the columns before the decision have no space and are never
// empty.
func (p *RowTable) lineOf(ctx context.Context, r audit.Row, decided string) shownLine {
	l := shownLine{at: r.TS.Local(), session: r.SessionID}
	if p.Explain != nil {
		l.why = termsafe.Line(Cut(p.Explain(r), MaxRowText))
	}
	decision, rest, milli := cmp.Or(decided, DecisionText(r)), Detail(r), MilliText(r.DurationUS)
	if decided == Waiting {
		milli = MilliText(time.Since(r.TS).Microseconds())
	}
	id, session, agent := ShortRow(r.ID), ShortSession(r.SessionID), p.Agents.Of(ctx, r)
	if p.width == 0 {
		l.rest = termsafe.Line(rest)
		for _, cell := range []string{Word(id), Word(session), Word(agent), Word(r.Binding),
			cmp.Or(ByteText(r), "-"), cmp.Or(milli, "-"), decision, StatusText(r)} {
			l.cells = append(l.cells, termsafe.Line(cell))
		}
		return l
	}
	if len(decision) > 11 { // an event that is no request
		decision, rest = "", decision+"  "+rest
	}
	if r.Binding != "" && r.Binding != Subject(r) {
		rest = r.Binding + "  " + rest
	}
	l.rest = strings.TrimRight(termsafe.Line(rest), " ")
	room := 8
	if p.width >= wideTable {
		room = 16
	}
	l.cells = []string{strings.TrimRight(Fit(session, 12), " "), strings.TrimRight(Fit(agent, room), " "),
		strings.TrimRight(Fit(id, 14), " "), ByteText(r), milli, termsafe.Line(decision), StatusText(r)}
	if milli != "" {
		milli += " ms"
	}
	outcome := strings.TrimSpace(decision + " " + StatusText(r))
	for _, cell := range []string{outcome, id, ByteText(r), milli} {
		if cell != "" {
			l.narrow = append(l.narrow, termsafe.Line(cell))
		}
	}
	return l
}

// The table fits into the 80 columns of a common terminal. What follows its columns begins in the same line if it fits
// there, and otherwise in the next one. A terminal of fewer columns gets them below the time and the session.
const (
	fullTable   = 80
	wideTable   = 100
	tableIndent = "         "
)

// writeRow writes an event as a row of the table, after the date and the names of the columns where they are due.
func (p *RowTable) writeRow(out *strings.Builder, l shownLine) {
	if day := l.at.Format("Monday, 2006-01-02 MST (Z07:00)"); day != p.day {
		if p.day == "" && p.width >= fullTable {
			var heads []string
			for i, c := range p.columns() {
				if heads = append(heads, ""); p.widths[i] > 0 {
					heads[i] = c.head
				}
			}
			out.WriteString("time     " + strings.TrimRight(strings.Join(p.aligned(heads), " "), " ") + "\n")
		}
		fmt.Fprintf(out, "%s\n", strings.Join(console.Folded(day, p.width), "\n"))
		p.day = day
	}
	if p.width < fullTable {
		who := p.paint(l.session, console.Padded(l.cells[0], 12)+" "+l.cells[1])
		fmt.Fprintf(out, "%-8s %s\n", l.at.Format(time.TimeOnly), who)
		for _, lines := range [][]string{console.Filled(l.narrow, p.width-2), console.Folded(l.rest, p.width-2),
			console.Folded(l.why, p.width-2)} {
			for _, line := range lines {
				out.WriteString("  " + line + "\n")
			}
		}
		return
	}
	cells, who, rest := p.aligned(l.cells), 0, l.rest
	for i := range 2 { // the session and its agent
		if p.widths[i] > 0 {
			who++
		}
	}
	line := strings.Join(cells[who:], " ")
	if used := console.DisplayWidth(tableIndent + strings.Join(cells, " ") + "  " + rest); used < p.width {
		line, rest = line+"  "+rest, ""
	}
	line = l.at.Format(time.TimeOnly) + " " + p.paint(l.session, strings.Join(cells[:who], " ")) + " " + line
	out.WriteString(strings.TrimRight(line, " ") + "\n")
	for _, text := range []string{rest, l.why} {
		for _, part := range console.Folded(text, p.width-len(tableIndent)) {
			out.WriteString(tableIndent + part + "\n")
		}
	}
}

// Fit returns text, safe to print, in exactly n columns.
func Fit(text string, n int) string {
	text = termsafe.Line(Cut(text, 200))
	if console.DisplayWidth(text) > n {
		runes := []rune(text)
		text = string(runes[:console.Fitting(runes, n-1)]) + "…"
	}
	return console.Padded(text, n)
}

// paint returns text in the colour of a session. Colours are assigned in the order in which sessions appear.
func (p *RowTable) paint(session, text string) string {
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
