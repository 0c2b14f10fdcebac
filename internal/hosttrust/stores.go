package hosttrust

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/ca"
	"github.com/ALRubinger/aileron/internal/hint"
)

// Choose returns the trust stores of this host of these kinds, or of all if none is named, and what those are skipped
// for that cannot be changed.
func Choose(kinds []string) (stores []ca.Store, skipped []Outcome, err error) {
	user, err := os.UserHomeDir()
	if err != nil {
		return nil, nil, hint.New(fmt.Errorf("find the trust stores: %w", err), "set HOME")
	}
	for _, f := range ca.FindStores(user, os.Getenv) {
		switch {
		case len(kinds) > 0 && !slices.Contains(kinds, string(f.Kind)):
		case f.Err != nil:
			skipped = append(skipped, Outcome{Store: f.Store, State: "skipped", Error: f.Err.Error(),
				Hint: hint.Of(f.Err)})
		default:
			stores = append(stores, f.Store)
		}
	}
	if len(stores) > 0 {
		return stores, skipped, nil
	}
	var why []string
	for _, s := range skipped {
		why = append(why, s.Error)
	}
	return nil, nil, hint.New(fmt.Errorf("trust the session's root: there is no store that it can be added to: %s",
		strings.Join(why, "; ")), "%s", skipped[0].Hint)
}

// Text returns a store with what is wrong about it, and the fix, as one line.
func (o Outcome) Text() string {
	text := string(o.Kind)
	if o.Path != "" && !strings.Contains(o.Error, o.Path) {
		text += " " + o.Path
	}
	if o.Error != "" {
		text += ": " + asLine(o.Error)
	}
	if o.Hint != "" {
		text += " (" + asLine(o.Hint) + ")"
	}
	return text
}

// LeftHint returns what can be done about the root of a session after an interruption.
func LeftHint(id string, outcomes []Outcome) string {
	if slices.ContainsFunc(outcomes, func(o Outcome) bool { return o.Left }) {
		return "some stores may have it: aileron ca untrust " + id
	}
	return "no store has it"
}

// asLine returns text as one line.
func asLine(text string) string { return strings.Join(strings.Fields(text), " ") }
