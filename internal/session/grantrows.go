package session

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/spec"
)

// maxGranted is how many grants a row names. More are counted, and are in the row's hash of all.
const maxGranted = 64

// granted is a connector in force and its binding, as the audit log names them.
type granted struct {
	Connector spec.FQN `json:"connector"`
	Version   string   `json:"version"`
	Hash      string   `json:"hash,omitempty"`    // of its content; "" for the hosts of --allow
	Binding   string   `json:"binding,omitempty"` // the name of the binding that is used, if there is one

	digest string // of the binding's file, which its secret is in; "" if that is not known
}

// listGranted returns what is granted, sorted by connector. A binding that could not be read has not changed for all
// that is known.
func (l *loader) listGranted(connectors []*spec.Connector, chosen bindings) []granted {
	list := make([]granted, 0, len(connectors))
	for _, c := range connectors {
		b := chosen[c.FQN]
		g := granted{Connector: c.FQN, Version: c.Version, Hash: c.Hash, Binding: b.Name}
		if l.unread.vault {
			last := l.lastGranted(c.FQN)
			g.Binding, g.digest = last.Binding, last.digest
		} else if b.Name != "" {
			g.digest, _ = l.vault().Digest(b.Name) // revoked or unreadable: the next load has it
			if b.Login != "" {
				g.digest = b.Login // its token is renewed all the time
			}
		}
		list = append(list, g)
	}
	slices.SortFunc(list, func(a, b granted) int { return cmp.Compare(a.Connector, b.Connector) })
	return list
}

// lastGranted returns what the last load granted of a connector.
func (l *loader) lastGranted(fqn spec.FQN) granted {
	for _, g := range l.granted {
		if g.Connector == fqn {
			return g
		}
	}
	return granted{}
}

// sumGranted returns the hash of a whole list, of which a row may name a part. docs/audit.md has its form.
func sumGranted(list []granted) string {
	h := sha256.New()
	for _, g := range list {
		_, _ = fmt.Fprintf(h, "%s\t%s\t%s\t%s\n", g.Connector, g.Version, g.Hash, g.Binding)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// addGranted adds a list to the fields of a row: its beginning, its length and its hash.
func addGranted(fields map[string]any, list []granted) {
	fields["grants_total"], fields["grants_sha256"] = len(list), sumGranted(list)
	if fields["grants"] = list[:min(len(list), maxGranted)]; len(list) == 0 {
		delete(fields, "grants")
	}
}

// grantsChange is the difference between two lists of grants.
type grantsChange struct {
	added, removed []granted
	rebound        []string // bindings that got another secret
	words          []string // what happened, each word once

	actionsAdded, actionsRemoved []grantedAction
}

// compareGranted returns the change from one list to another. Both are sorted.
func compareGranted(before, after []granted) grantsChange {
	var c grantsChange
	for len(before) > 0 || len(after) > 0 {
		switch order := compareFirst(before, after); {
		case order < 0:
			c.removed, before = append(c.removed, before[0]), before[1:]
			c.note("removed")
		case order > 0:
			c.added, after = append(c.added, after[0]), after[1:]
			c.note("installed")
		default:
			c.compare(before[0], after[0])
			before, after = before[1:], after[1:]
		}
	}
	return c
}

// compareFirst returns which list has the lower connector first: the first if it is negative.
func compareFirst(before, after []granted) int {
	switch {
	case len(before) == 0:
		return 1
	case len(after) == 0:
		return -1
	}
	return cmp.Compare(before[0].Connector, after[0].Connector)
}

// compare adds what changed of one connector.
func (c *grantsChange) compare(old, now granted) {
	if old.Version != now.Version || old.Hash != now.Hash {
		c.note("replaced")
	}
	switch {
	case old.Binding == now.Binding && old.digest != now.digest && old.digest != "" && now.digest != "":
		c.note("rebound")
		c.rebound = append(c.rebound, now.Binding)
	case old.Binding != now.Binding && old.Binding != "":
		c.note("unbound")
	}
	if old.Binding != now.Binding && now.Binding != "" {
		c.note("bound")
	}
	old.digest, now.digest = "", ""
	if old != now {
		c.removed, c.added = append(c.removed, old), append(c.added, now)
	}
}

func (c *grantsChange) note(word string) {
	if !slices.Contains(c.words, word) {
		c.words = append(c.words, word)
	}
}

// fields returns the change for a row.
func (c *grantsChange) fields(after []granted) map[string]any {
	fields := map[string]any{"changes": c.words}
	addGranted(fields, after)
	delete(fields, "grants") // what is left is what the rows before have, with this change
	for name, list := range map[string][]granted{"added": c.added, "removed": c.removed} {
		if len(list) > 0 {
			fields[name], fields[name+"_total"] = list[:min(len(list), maxGranted)], len(list)
		}
	}
	for name, list := range map[string][]grantedAction{
		"actions_added": c.actionsAdded, "actions_removed": c.actionsRemoved,
	} {
		if len(list) > 0 {
			fields[name], fields[name+"_total"] = list[:min(len(list), maxGranted)], len(list)
		}
	}
	if len(c.rebound) > 0 {
		fields["rebound"], fields["rebound_total"] = c.rebound[:min(len(c.rebound), maxGranted)], len(c.rebound)
	}
	return fields
}

// about returns the only connector that the change is about, and its binding if that is the same before and after or
// there was none on one side. Zero: it is about several connectors.
func (c *grantsChange) about(after []granted) (one granted) {
	lists := slices.Concat(c.removed, c.added)
	for _, g := range after {
		if slices.Contains(c.rebound, g.Binding) {
			lists = append(lists, g)
		}
	}
	for i, g := range lists {
		if i > 0 && g.Connector != one.Connector {
			return granted{}
		}
		g.Binding = cmp.Or(g.Binding, one.Binding)
		one = g
	}
	return one
}

// recordChange records session.grants_changed if what is about to be granted differs from what the log has. The row
// precedes that of any request that uses it: a session's rows keep their order, while the log cannot be written too.
func (l *loader) recordChange(ctx context.Context) error {
	if !l.began {
		return nil // session.started will have it
	}
	change := compareGranted(l.recordedGrants, l.granted)
	change.compareActions(l.recordedActions, l.grantedActions)
	if !slices.Equal(l.misfits, l.recordedMisfits) && len(l.misfits) > 0 {
		change.note("not_used")
	}
	if len(change.words) == 0 {
		l.recordedMisfits = l.misfits
		return nil
	}
	fields := change.fields(l.granted)
	if len(l.misfits) > 0 {
		fields["not_used"], fields["not_used_total"] = l.misfits[:min(len(l.misfits), maxGranted)], len(l.misfits)
	}
	row := l.s.row(audit.EventSessionGrantsChanged, fields)
	row.Reason = l.unclear
	one := change.about(l.granted)
	row.ConnectorFQN, row.ConnectorVersion, row.Binding = string(one.Connector), one.Version, one.Binding
	if err := l.s.audit.AppendSoon(ctx, row); err != nil {
		return fmt.Errorf("record session.grants_changed: %w", err)
	}
	l.recordedGrants, l.recordedActions, l.recordedMisfits = l.granted, l.grantedActions, l.misfits
	return nil
}

// begin records session.started with what is granted now. From here on changes have rows of their own.
func (l *loader) begin(fields map[string]any, record func() error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	addGranted(fields, l.granted)
	addActions(fields, l.grantedActions)
	if err := record(); err != nil {
		return err
	}
	l.recordedGrants, l.recordedActions, l.began = l.granted, l.grantedActions, true
	for _, source := range l.commands { // each run has its rows, which follow that of the session
		source.Begin()
	}
	return nil
}
