package shims

import (
	"fmt"
	"path"
	"strings"

	"github.com/ALRubinger/aileron/internal/hint"
)

// source is what a command comes from, and the command line that removes it.
type source struct{ what, remove string }

// remedy returns how to end a conflict of two sources.
func (s source) remedy(other source) string {
	if other.remove == "" || other.remove == s.remove {
		return s.remove
	}
	return "remove one of them: " + other.remove + ", or " + s.remove
}

// Conflict returns an error if two connectors, two actions, or a connector and an
// action have a command of the same name, or one of them has that of the agent,
// the command of the sandbox. Names that differ only in case are the same, as on
// some file systems. The error names both, and what to do.
func (s Set) Conflict(agent string) error {
	owners := map[string]source{}
	add := func(name string, is source) error {
		lower := strings.ToLower(name)
		other, taken := owners[lower]
		if !taken {
			owners[lower] = is
			return nil
		}
		return hint.New(fmt.Errorf("the command %q of %s is also the command of %s", name, is.what, other.what),
			"%s", is.remedy(other))
	}
	_ = add(path.Base(agent), source{what: "this session: " + plain(agent)})
	for _, c := range sorted(s.Connectors) {
		for _, t := range c.Tools {
			what := fmt.Sprintf("the connector %s %s", c.FQN, c.Version)
			if err := add(t.Name, source{what, "aileron connector remove " + string(c.FQN)}); err != nil {
				return err
			}
		}
	}
	for _, a := range s.Actions {
		if err := add(a.Name, source{"the action " + a.Name, "aileron action remove " + a.Name}); err != nil {
			return err
		}
	}
	return nil
}
