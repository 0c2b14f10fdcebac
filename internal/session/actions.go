package session

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/proxy"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/action"
	"github.com/ALRubinger/aileron/spec/store"
)

// Actions returns the actions that the session can run at this moment, by name.
func (s *Session) Actions() []*action.Action {
	s.loader.mu.Lock()
	defer s.loader.mu.Unlock()
	return s.loader.usableActions()
}

// usableActions is [Session.Actions]. l.mu must be held.
func (l *loader) usableActions() []*action.Action {
	var usable []*action.Action
	for _, name := range slices.Sorted(maps.Keys(l.actions)) {
		if a := l.actions[name]; a.Linked != nil {
			usable = append(usable, a.Linked.Action)
		}
	}
	return usable
}

// library returns the action files of the home. No other place is a source of actions: not a project, not an image.
func (l *loader) library() action.Library { return action.In(l.s.opts.Home) }

// readActions reads the action files and links them with the connectors that they pin, out of all that are installed. A
// file that cannot be used is no reason not to begin a session: its calls are denied.
func (l *loader) readActions(all []*spec.Connector, faults []error) {
	files, err := l.library().List()
	if err != nil {
		l.warnAction(err.Error(), err)
	}
	l.actions = map[string]proxy.Action{}
	for _, f := range files {
		a := proxy.Action{Fault: f.Err, Reason: proxy.ReasonActionUnusable}
		if a.Fault == nil {
			a.Linked, a.Fault = f.Action.Link(func(pin action.Pin) (*spec.Connector, error) {
				c, reason, err := l.pinned(pin, all, faults)
				a.Reason = cmp.Or(reason, a.Reason)
				return c, err
			})
		}
		if a.Fault != nil {
			a.Linked = nil
			l.warnAction(f.Name+"\x00"+a.Fault.Error(), fmt.Errorf("the action %s cannot be used: %w", f.Name, a.Fault))
		}
		l.actions[f.Name] = a
	}
}

// pinned returns the connector with exactly the bytes that an action pins, whatever the wire door uses, or why there is
// none. A connector that [Options.Connectors] leaves out is left out of actions too.
func (l *loader) pinned(pin action.Pin, all []*spec.Connector, faults []error) (*spec.Connector, proxy.Reason, error) {
	for _, fault := range faults {
		var entry *store.EntryError
		if errors.As(fault, &entry) && entry.Entry.Hash == pin.Hash {
			if reason, unread := store.Unreadable(fault); unread {
				return nil, proxy.Reason(reason), entry.Err
			}
			return nil, proxy.ReasonPinChanged, store.Hint(entry.Err)
		}
	}
	only := l.s.opts.Connectors
	for _, c := range all {
		switch {
		case c.Hash != pin.Hash:
		case only != nil && !slices.Contains(only, pin.FQN):
			return nil, "", hint.New(errors.New("this session does not use that connector"),
				"add it with --connector %s", pin.FQN)
		default:
			return c, "", nil
		}
	}
	for _, c := range all {
		if c.FQN == pin.FQN && c.Version == pin.Version {
			return nil, proxy.ReasonPinChanged, hint.New(fmt.Errorf("the installed one has other bytes (%s)", c.Hash),
				"correct the hash if these are the bytes that you mean, or install the others")
		}
	}
	return nil, proxy.ReasonPinMissing, hint.New(errors.New("it is not installed"),
		"install what actions pin with: aileron sync")
}

// warnAction reports what is wrong with actions, once.
func (l *loader) warnAction(key string, err error) {
	if l.actionFaults[key] {
		return
	}
	if l.actionFaults == nil {
		l.actionFaults = map[string]bool{}
	}
	l.actionFaults[key] = true
	if h := hint.Of(err); h != "" {
		err = fmt.Errorf("%w; %s", err, h)
	}
	if l.began {
		l.s.opts.Log.Warn("an action changed and cannot be used", "error", err)
		return
	}
	l.s.opts.Infof("aileron: %v", err)
}

// withholdActions denies every action for a reason.
func (l *loader) withholdActions(reason proxy.Reason, err error) {
	held := map[string]proxy.Action{}
	for name := range l.actions {
		held[name] = proxy.Action{Fault: err, Reason: reason}
	}
	l.actions = held
}

// pinnedConnectors returns the connectors that usable actions pin, each once.
func (l *loader) pinnedConnectors() []*spec.Connector {
	var pinned []*spec.Connector
	for _, name := range slices.Sorted(maps.Keys(l.actions)) {
		if a := l.actions[name]; a.Linked != nil {
			for _, c := range a.Linked.Pinned {
				if !slices.ContainsFunc(pinned, func(o *spec.Connector) bool { return o.Hash == c.Hash }) {
					pinned = append(pinned, c)
				}
			}
		}
	}
	return pinned
}

// choosePinned returns the bindings of the connectors that actions pin, by their hashes. Those that are not clear are
// left out: calls that need them are denied.
func (l *loader) choosePinned() map[string]bindings {
	all, _ := l.vault().Bindings() // an error: there is none
	chosen := map[string]bindings{}
	for _, c := range l.pinnedConnectors() {
		if c.Credential() == nil {
			continue
		}
		b, err := l.chooseFor(c, all)
		if err != nil {
			l.warnAction(err.Error(), err)
		}
		if b != nil {
			chosen[c.Hash] = bindings{c.FQN: *b}
			l.identities[c.FQN] = b.Identity // from here on: see choose
		}
	}
	return chosen
}

// pinnedGrants returns what calls of actions are decided by: an index of each pinned connector alone.
func (l *loader) pinnedGrants(chosen map[string]bindings, locked bool) (map[string]*proxy.Grants, error) {
	pinned := map[string]*proxy.Grants{}
	for _, c := range l.pinnedConnectors() {
		one := []*spec.Connector{c}
		index, err := spec.NewIndex(one)
		if err != nil {
			return nil, err
		}
		bound := map[spec.FQN]proxy.Bound{}
		if !locked && !l.unread.vault {
			if bound, err = l.openCredentials(one, chosen[c.Hash]); err != nil {
				return nil, err
			}
		}
		pinned[c.Hash] = &proxy.Grants{Index: index, Bound: bound, Locked: locked, Unreadable: l.unread.connectors}
	}
	return pinned, nil
}

// grantedAction is an action that can be run, as the audit log names it.
type grantedAction struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Hash    string `json:"hash"`
}

// listActions returns the actions that can be run, by name.
func (l *loader) listActions() []grantedAction {
	var list []grantedAction
	for _, name := range slices.Sorted(maps.Keys(l.actions)) {
		if a := l.actions[name].Linked; a != nil {
			list = append(list, grantedAction{a.Name, a.Version, a.Hash})
		}
	}
	return list
}

// addActions adds the actions of a session to the fields of its first row.
func addActions(fields map[string]any, list []grantedAction) {
	if len(list) > 0 {
		fields["actions"], fields["actions_total"] = list[:min(len(list), maxGranted)], len(list)
	}
}

// compareActions adds to a change what became of actions.
func (c *grantsChange) compareActions(before, after []grantedAction) {
	for _, a := range after {
		if !slices.Contains(before, a) {
			c.actionsAdded = append(c.actionsAdded, a)
			c.note("action_added")
		}
	}
	for _, a := range before {
		if !slices.Contains(after, a) {
			c.actionsRemoved = append(c.actionsRemoved, a)
			c.note("action_removed")
		}
	}
}
