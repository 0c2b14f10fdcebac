package actions

import (
	"errors"
	"slices"

	"github.com/ALRubinger/aileron/internal/connectors"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/home"
	"github.com/ALRubinger/aileron/spec/action"
	"github.com/ALRubinger/aileron/spec/store"
	"github.com/ALRubinger/aileron/vault"
)

// Pinned is a connector that actions pin.
type Pinned struct {
	action.Pin
	Actions []string // their names
}

// PinsOf returns what actions pin, each once. An action that cannot be read hides no other one: fail is called for it.
func PinsOf(files []action.File, fail func(action.File, error)) (all []*Pinned) {
	for _, file := range files {
		if file.Action == nil {
			fail(file, failure.OfInput(file.Err, failure.ReasonAction))
			continue
		}
		for _, pin := range file.Action.Requires {
			same := func(p *Pinned) bool {
				return p.FQN == pin.FQN && p.Version == pin.Version && p.Hash == pin.Hash
			}
			if i := slices.IndexFunc(all, same); i >= 0 {
				all[i].Actions = append(all[i].Actions, file.Name)
				continue
			}
			all = append(all, &Pinned{pin, []string{file.Name}})
		}
	}
	return all
}

// Pins returns what the actions of a home pin, each version once, for what looks for newer ones. An action that cannot
// be read is left out, with a message.
func Pins(d *home.Dir) (all []connectors.Used, err error) {
	dir, err := d.Home()
	if err != nil {
		return nil, err
	}
	files, err := action.In(dir).List()
	if err != nil {
		return nil, err
	}
	pins := PinsOf(files, func(f action.File, err error) {
		d.Warnf("aileron: the action %s is left out: %s", f.Name, failure.AsLine(err.Error()))
	})
	for _, p := range pins {
		all = append(all, connectors.Used{FQN: p.FQN, Version: p.Version, Actions: p.Actions})
	}
	return all, nil
}

// Unbound returns the names of the pinned connectors that are installed and have no credential, sorted.
func Unbound(d *home.Dir, s *store.Store, pins []*Pinned) ([]string, error) {
	unbound := []string{}
	v, err := d.VaultOf()
	if err != nil {
		return nil, err
	}
	bound, err := v.Bindings()
	if err != nil && !errors.Is(err, vault.ErrNotInitialised) {
		return nil, err
	}
	for _, p := range pins {
		c, err := s.Load(p.Hash)
		if err != nil || c.Credential() == nil || connectors.IsBound(c, bound) || slices.Contains(unbound, string(c.FQN)) {
			continue
		}
		unbound = append(unbound, string(c.FQN))
	}
	slices.Sort(unbound)
	return unbound, nil
}
