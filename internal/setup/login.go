package setup

import (
	"context"
	"errors"

	"github.com/ALRubinger/aileron/internal/bindings"
	"github.com/ALRubinger/aileron/internal/connectors"
	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/spec"
)

// unboundLogins returns the installed connectors whose credential comes from a login, and that have none.
func (s *setup) unboundLogins() (unbound []*spec.Connector) {
	for _, c := range s.installed {
		if need := c.Credential(); need != nil && need.OAuth2 != nil && !connectors.IsBound(c, s.bound) {
			unbound = append(unbound, c)
		}
	}
	return unbound
}

// askLogins asks for which connectors a person wants to log in. Each login follows when the rest is made: it takes
// minutes, and the client that it needs may have to be registered first.
func (s *setup) askLogins(ctx context.Context) error {
	for _, c := range s.unboundLogins() {
		later := "aileron binding setup " + shortName(c.FQN)
		if s.talk == nil {
			s.u.Infof("aileron: %s has no login; log in with: %s", c.FQN, later)
			continue
		}
		yes, err := s.talk.Yes(ctx, shortName(c.FQN)+" has no login; log in when the rest is set up?", false)
		if err != nil {
			return err
		}
		if !yes {
			s.u.Infof("aileron: log in later with: %s", later)
			continue
		}
		s.logins = append(s.logins, c)
	}
	return nil
}

// logIn makes the logins that were asked for. One that fails is told with the command that makes it later, and the rest
// stays; Ctrl-C ends the setup.
func (s *setup) logIn(ctx context.Context) error {
	for _, c := range s.logins {
		b := bindings.Setup{Connectors: []string{string(c.FQN)}, Identity: "default", Login: s.options.Login}
		b.PassphraseFile = s.options.PassphraseFile
		_, err := b.Bind(ctx, s.u, func(name string) {
			s.loggedIn = append(s.loggedIn, name)
			s.u.Infof("aileron: bound %s", name)
		})
		if exit := (console.ExitError{}); errors.As(err, &exit) || ctx.Err() != nil {
			return err
		}
		if err != nil {
			s.u.Infof("aileron: %v; the rest is set up, and the login can be made later with: aileron binding setup %s", err,
				shortName(c.FQN))
		}
	}
	return nil
}
