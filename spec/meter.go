package spec

import (
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/spec/internal/plain"
)

// Meter is a number in an operation's responses that says what a request has used up. Those of one name add up.
type Meter struct {
	Name   string
	Source []string   // the keys that lead to it, in a JSON response and in the data of an event
	Events [][]string // other places of it, in the data of an event
}

const (
	maxMeters     = 8 // of an operation
	maxMeterPaths = 4 // of a meter, in events
	maxMeterKeys  = 8 // of a path
	maxMeterKey   = 64
)

// budgetNames are the names of what every request uses.
var budgetNames = []string{"requests", "bytes"}

// readMeters reads the list "meter".
func (op *Operation) readMeters(n node) {
	if _, has := n.o.Get("meter"); has && op.Upgrade != "" {
		n.diags.add(n.at("meter"), "an operation with an \"upgrade\" has none: its messages are not read")
	}
	for i, v := range n.list("meter", false, maxMeters) {
		a, ok := n.diags.open(v, n.item("meter", i), "name", "source", "events", "description")
		if !ok {
			continue
		}
		m := Meter{Name: a.text("name", true)}
		switch {
		case m.Name == "":
		case !IsMeter(m.Name):
			n.diags.add(a.at("name"), "%q is not a name of lower-case letters, digits and underscores", m.Name)
		case slices.Contains(budgetNames, m.Name):
			n.diags.add(a.at("name"), "%q is counted of every request; choose another name", m.Name)
		}
		m.Source, m.Events = a.meterPlaces()
		if op.Meters = append(op.Meters, m); !slices.Contains(op.MeterNames, m.Name) {
			op.MeterNames = append(op.MeterNames, m.Name)
		}
	}
}

// meterPlaces reads where a value is, in responses and in events.
func (a node) meterPlaces() (keys []string, events [][]string) {
	a.text("description", false)
	source := a.text("source", true)
	inner, ok := strings.CutPrefix(source, "response.body.")
	if keys = strings.Split(inner, "."); source != "" && (!ok || !areMeterKeys(keys)) {
		a.diags.add(a.at("source"), "%q is not response.body.PATH, of at most %d plain keys", source, maxMeterKeys)
	}
	for j, v := range a.list("events", false, maxMeterPaths) {
		text, _ := v.(string)
		keys := strings.Split(text, ".")
		if !areMeterKeys(keys) {
			a.diags.add(a.item("events", j), "%q is not a path of at most %d plain keys", text, maxMeterKeys)
		}
		events = append(events, keys)
	}
	return keys, events
}

// readMeterModel reads "meter_model".
func (op *Operation) readMeterModel(n node) {
	v, has := n.o.Get("meter_model")
	if !has {
		return
	}
	if a, ok := n.diags.open(v, n.at("meter_model"), "source", "events", "description"); ok {
		if op.MeterModel.Source, op.MeterModel.Events = a.meterPlaces(); len(op.Meters) == 0 {
			n.diags.add(n.at("meter_model"), "it is for an operation with a \"meter\"")
		}
	}
}

// IsMeter reports whether a meter may have the name.
func IsMeter(s string) bool {
	other := func(c rune) bool { return (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' }
	return s != "" && len(s) <= maxMeterKey && s[0] >= 'a' && s[0] <= 'z' && !strings.ContainsFunc(s, other)
}

// areMeterKeys reports whether a reader can look for a path: its keys are letters, digits, underscores and dashes.
func areMeterKeys(keys []string) bool {
	plain := func(key string) bool { return len(key) <= maxMeterKey && plain.IsName(key, "_-") }
	return len(keys) <= maxMeterKeys && !slices.ContainsFunc(keys, func(key string) bool { return !plain(key) })
}
