package session

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ALRubinger/aileron/internal/termsafe"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/action"
)

// Surface is what a command is told of the grants of its session, as they are at one moment.
type Surface struct {
	Connectors []*spec.Connector
	Actions    []*action.Action // that can be run, by name
	Unbound    []spec.FQN       // connectors whose credential the session does not have now

	key string // differs with the rest
}

// Surface returns what the session grants now.
func (s *Session) Surface() Surface {
	s.loader.mu.Lock()
	defer s.loader.mu.Unlock()
	return s.loader.surface()
}

// surface is [Session.Surface]. l.mu must be held.
func (l *loader) surface() Surface {
	out := Surface{Connectors: l.connectors, Actions: l.usableActions()}
	var bound map[spec.FQN]bool
	if l.s.plane != nil {
		bound = map[spec.FQN]bool{}
		for fqn := range l.s.plane.Grants().Bound {
			bound[fqn] = true
		}
	}
	for _, c := range l.connectors {
		if bound != nil && c.Credential() != nil && !bound[c.FQN] {
			out.Unbound = append(out.Unbound, c.FQN)
		}
	}
	slices.Sort(out.Unbound)
	var key strings.Builder
	for _, c := range l.connectors {
		fmt.Fprintf(&key, "%s %s %s\n", c.FQN, c.Version, c.Hash)
		if c.Hash == "" { // of --allow
			fmt.Fprintln(&key, hostsOf(c))
		}
	}
	fmt.Fprintln(&key, l.grantedActions, out.Unbound)
	out.key = key.String()
	return out
}

// hostsOf returns the hosts of a connector's operations.
func hostsOf(c *spec.Connector) (all []string) {
	for _, t := range c.Tools {
		for _, op := range t.Operations {
			for _, h := range op.Hosts {
				all = append(all, h.String())
			}
		}
	}
	return all
}

// tellAgain is the time after which a surface is passed on again that could not be used.
const tellAgain = 5 * time.Second

// Follow calls changed with each surface that is not last, from now on and until the session closes, one at a time: of
// several in a row, it may leave out all but the last. A surface for which changed fails is passed on again. It must be
// called after [Session.Serve], and once.
func (s *Session) Follow(ctx context.Context, last Surface, changed func(context.Context, Surface) error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := s.stop
	s.stop = func() { cancel(); stop() }
	s.serving.Go(func() {
		failed := false
		for {
			var again <-chan time.Time
			if now := s.Surface(); now.key != last.key {
				err := changed(ctx, now)
				if ctx.Err() != nil {
					return
				}
				if err == nil {
					last, failed = now, false
				} else {
					again = time.After(tellAgain)
					if !failed {
						s.TellOwner("the commands and the list of tools in the sandbox of %s could not be changed: %v", s.id, err)
					}
					failed = true
				}
			}
			select {
			case <-ctx.Done():
				return
			case <-s.loader.changed:
			case <-again:
			}
		}
	})
}

// TellOwner notifies the owner of a running session. A text that no notifier prints is logged. No word of it may be the
// agent's.
func (s *Session) TellOwner(format string, args ...any) {
	text := termsafe.Line(fmt.Sprintf(format, args...))
	n := s.opts.Notifier
	if n != nil {
		n.Tell(text)
	}
	if n == nil || n.Line == nil {
		s.opts.Log.Warn(text, "session", s.id)
	}
}
