package review

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/termsafe"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/catalog"
)

// PrintUses prints a line for each credential, for a terminal of so many columns; 0 is none.
func PrintUses(out io.Writer, uses []Use, columns int) error {
	t := console.Table{Heads: []string{"binding", "connectors", "sessions", "agents", "sent", "refused", "first", "last",
		"for"}}
	for _, u := range uses {
		t.Rows = append(t.Rows, []string{Word(cmp.Or(u.Binding, "(none)")),
			termsafe.Line(some(shortNames(u.Connectors), 3)), strconv.Itoa(len(u.Sessions)),
			termsafe.Line(some(u.Agents, 3)), strconv.FormatInt(u.Sent, 10), strconv.FormatInt(u.Refused, 10),
			MomentText(u.First), MomentText(u.Last), termsafe.Line(useText(u))})
	}
	return t.Print(out, columns)
}

// PrintUsed prints the uses of a credential, and those of each session.
func PrintUsed(out io.Writer, used Used, columns int) error {
	if err := PrintUses(out, []Use{used.Use}, columns); err != nil {
		return err
	}
	fmt.Fprintln(out)
	t := console.Table{Heads: []string{"session", "agent", "sent", "refused", "first", "last", "for"}}
	for _, s := range used.BySession {
		t.Rows = append(t.Rows, []string{Word(some(s.Sessions, 1)), Word(some(s.Agents, 1)),
			strconv.FormatInt(s.Sent, 10), strconv.FormatInt(s.Refused, 10), MomentText(s.First), MomentText(s.Last),
			termsafe.Line(useText(s))})
	}
	return t.Print(out, columns)
}

// useText returns the operations of what was sent and the reasons of what was refused.
func useText(u Use) string {
	var parts []string
	for _, o := range u.Operations {
		name := cmp.Or(o.Operation, "passthrough")
		parts = append(parts, fmt.Sprintf("%s %d", Cut(name, 80), o.Requests))
	}
	text := some(parts, 4)
	parts = nil
	for _, r := range u.Reasons {
		parts = append(parts, fmt.Sprintf("%s %d", Cut(cmp.Or(r.Name, "no reason"), 80), r.Requests))
	}
	if len(parts) > 0 {
		text = strings.TrimPrefix(text+"; refused: "+some(parts, 3), "-; ")
	}
	if u.Unknown > 0 {
		text += fmt.Sprintf("; unknown outcomes: %d", u.Unknown)
	}
	return text
}

// some returns the first names as a list, and how many more there are; "-" if there are none.
func some(names []string, most int) string {
	if len(names) == 0 {
		return "-"
	}
	text := strings.Join(names[:min(len(names), most)], ", ")
	if len(names) > most {
		text += fmt.Sprintf(", +%d", len(names)-most)
	}
	return text
}

// shortNames returns the short names of connectors.
func shortNames(fqns []string) (names []string) {
	for _, fqn := range fqns {
		name, known := catalog.Name(spec.FQN(fqn))
		if !known {
			name = fqn[strings.LastIndexByte(fqn, '/')+1:]
		}
		names = append(names, name)
	}
	return names
}

// MomentText returns a time for a table.
func MomentText(t time.Time) string { return t.Local().Format(momentFormat) }

// momentFormat is a time with its date and zone.
const momentFormat = "2006-01-02T15:04:05Z07:00"

// Word returns text as a column without a space.
func Word(text string) string {
	if text == "" {
		return "-"
	}
	return strings.Join(strings.Fields(Cut(text, 200)), "_")
}

// Cut returns text, or its beginning if it is longer than most bytes.
func Cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
