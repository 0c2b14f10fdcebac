package spending

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/termsafe"
)

// maxColumns bounds the meters that have a column of their own.
const maxColumns = 8

// Print prints a line for each use, for a terminal of so many columns; 0 is none. by is what the names are.
func Print(out io.Writer, by string, uses []Use, columns int) error {
	t := console.Table{Heads: []string{by, "requests", "bytes"}}
	meters := map[string]bool{}
	currency, costs := "", false
	for _, u := range uses {
		for name := range u.Meters {
			meters[name] = true
		}
		if u.Cost != nil {
			currency, costs = u.Currency, true
		}
	}
	names := slices.Sorted(maps.Keys(meters))
	names = names[:min(len(names), maxColumns)]
	t.Heads = append(t.Heads, names...)
	if costs {
		t.Heads = append(t.Heads, strings.TrimSpace("cost "+currency))
	}
	for _, u := range uses {
		row := []string{Word(u.Name), strconv.FormatInt(u.Requests, 10), strconv.FormatInt(u.Bytes, 10)}
		for _, name := range names {
			row = append(row, strconv.FormatInt(u.Meters[name], 10))
		}
		if costs {
			row = append(row, u.CostText())
		}
		t.Rows = append(t.Rows, row)
	}
	return t.Print(out, columns)
}

// Word returns a name as a column without a space.
func Word(name string) string {
	if name == "" {
		return "(none)"
	}
	return strings.Join(strings.Fields(termsafe.Line(name[:min(len(name), 200)])), "_")
}

// CostText returns what a use costs, with a + behind it if a part has no price; "-" if nothing has.
func (u Use) CostText() string {
	if u.Cost == nil {
		return "-"
	}
	text := strconv.FormatFloat(*u.Cost, 'f', 2, 64)
	if *u.Cost < 0.1 && *u.Cost > 0 {
		text = strconv.FormatFloat(*u.Cost, 'f', 6, 64)
	}
	if u.Unpriced {
		text += "+"
	}
	return text
}

// Text returns a use as a sentence: requests, meters and cost.
func (u Use) Text() string {
	parts := []string{hint.Plural(int(u.Requests), "request")}
	for _, name := range slices.Sorted(maps.Keys(u.Meters)) {
		if u.Meters[name] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", u.Meters[name], name))
		}
	}
	if u.Cost != nil {
		parts = append(parts, strings.TrimSpace(u.CostText()+" "+u.Currency))
	}
	return strings.Join(parts, ", ")
}
