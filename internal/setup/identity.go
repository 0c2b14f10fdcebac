package setup

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/catalog"
)

// chooseIdentities chooses a binding of each installed connector that has several: without that no session starts. A
// launch that follows has choices of its own.
func (s *setup) chooseIdentities(ctx context.Context) error {
	if s.options.Launching {
		return nil
	}
	s.identities = map[spec.FQN]string{}
	for _, c := range s.installed {
		identity, err := s.chooseIdentity(ctx, c)
		if err != nil {
			return err
		}
		if identity != "" {
			s.identities[c.FQN] = identity
		}
	}
	for fqn := range s.options.Bindings {
		if s.identities[fqn] == "" {
			return hint.New(fmt.Errorf("use the binding of %s: no such connector is installed, or it needs no credential", fqn),
				"see what is installed with: aileron connector list")
		}
	}
	return nil
}

// chooseIdentity returns the identity of a connector that is named or chosen, and "" where there is no choice.
func (s *setup) chooseIdentity(ctx context.Context, c *spec.Connector) (string, error) {
	need, bound := c.Credential(), []string(nil)
	if need == nil {
		return "", nil
	}
	for _, b := range s.bound {
		if b.Connector == string(c.FQN) && spec.Kind(b.Kind) == need.Kind {
			bound = append(bound, b.Identity)
		}
	}
	named, given := s.options.Bindings[c.FQN]
	switch {
	case given && !slices.Contains(bound, named):
		return "", hint.New(fmt.Errorf("use %s with the identity %q: it is not bound", c.FQN, named),
			"see what is bound with: aileron binding list")
	case given || len(bound) < 2:
		return named, nil
	case s.talk == nil:
		return "", hint.New(
			fmt.Errorf("choose a credential for %s: it has the identities %s", c.FQN, strings.Join(bound, ", ")),
			"choose one with --bind %s=%s", shortName(c.FQN), bound[0])
	}
	return s.talk.Choose(ctx, "identity of "+shortName(c.FQN), bound)
}

// shortName returns the catalogue's name of a connector, else its FQN.
func shortName(fqn spec.FQN) string {
	if name, ok := catalog.Name(fqn); ok {
		return name
	}
	return string(fqn)
}
