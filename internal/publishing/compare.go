package publishing

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/schema"
)

// Change is one thing that a version changes for those who use the connector.
type Change struct {
	Level Level
	Text  string // such as "no longer has the operation tracker items.get"
}

// Compare returns what c changes against an earlier version: what breaks what agents and people do with it, first.
func Compare(old, c *spec.Connector) []Change {
	d := &differ{}
	d.lists(Major, Minor, "no longer reaches the host %s", "reaches the host %s", hostNames(old.Manifest.Hosts),
		hostNames(c.Manifest.Hosts))
	d.credential(old.Credential(), c.Credential())
	before, after := operations(old), operations(c)
	for _, name := range before.names {
		if after.of[name] == nil {
			d.add(Major, "no longer has the operation %s", name)
		}
	}
	for _, name := range after.names {
		if before.of[name] == nil {
			d.add(Minor, "has the operation %s", name)
			continue
		}
		d.operation(name, before.of[name], after.of[name])
	}
	env := func(c *spec.Connector) (all []string) {
		for _, p := range c.Placeholders {
			all = append(all, p.Env)
		}
		return all
	}
	d.lists(Major, Minor, "no longer sets the variable %s", "sets the variable %s", env(old), env(c))
	if len(d.changes) == 0 && !sameFiles(old, c) {
		d.add(Patch, "changes what is for people")
	}
	slices.SortStableFunc(d.changes, func(a, b Change) int { return int(b.Level - a.Level) })
	return d.changes
}

// sameFiles reports whether two versions have the same files but for the version.
func sameFiles(old, c *spec.Connector) bool {
	m1, s1 := old.Documents()
	m2, s2 := c.Documents()
	strip := func(text []byte, version string) string { return strings.ReplaceAll(string(text), version, "") }
	return strip(m1, old.Version) == strip(m2, c.Version) && strip(s1, old.Version) == strip(s2, c.Version)
}

// Due returns the highest level of changes.
func Due(changes []Change) (due Level) {
	for _, c := range changes {
		due = max(due, c.Level)
	}
	return due
}

// byName are the operations of a connector, in its order.
type byName struct {
	names []string
	of    map[string]*spec.Operation
}

func operations(c *spec.Connector) byName {
	all := byName{of: map[string]*spec.Operation{}}
	for _, t := range c.Tools {
		for _, op := range t.Operations {
			name := op.Tool + " " + op.Name
			all.names, all.of[name] = append(all.names, name), op
		}
	}
	return all
}

func hostNames(hosts []spec.HostPattern) (all []string) {
	for _, h := range hosts {
		all = append(all, strings.TrimSuffix(h.String(), ":443"))
	}
	return all
}

// differ collects changes.
type differ struct{ changes []Change }

func (d *differ) add(l Level, format string, args ...any) {
	d.changes = append(d.changes, Change{l, fmt.Sprintf(format, args...)})
}

// lists adds what is missing, and what is new.
func (d *differ) lists(gone, fresh Level, goneText, freshText string, old, now []string) {
	for _, v := range old {
		if !slices.Contains(now, v) {
			d.add(gone, goneText, v)
		}
	}
	for _, v := range now {
		if !slices.Contains(old, v) {
			d.add(fresh, freshText, v)
		}
	}
}

// credential adds that users have to bind another credential, or none.
func (d *differ) credential(old, now *spec.CredentialNeed) {
	switch {
	case old == nil && now == nil:
	case old == nil:
		d.add(Major, "needs a credential of kind %s", now.Kind)
	case now == nil:
		d.add(Major, "needs no credential any more")
	case old.Kind != now.Kind:
		d.add(Major, "needs a credential of kind %s, not %s", now.Kind, old.Kind)
	case old.Scope != now.Scope:
		d.add(Minor, "needs a credential that may: %s", now.Scope)
	}
}

// operation adds what one operation changes.
func (d *differ) operation(name string, old, now *spec.Operation) {
	if old.Method != now.Method || old.Path.String() != now.Path.String() {
		d.add(Major, "%s is %s %s, not %s %s", name, now.Method, now.Path, old.Method, old.Path)
	}
	d.lists(Major, Minor, name+" no longer reaches %s", name+" reaches %s", hostNames(old.Hosts), hostNames(now.Hosts))
	d.inputs(name, old, now)
	switch asks := map[string]int{spec.ApprovalRequired: 2, spec.ApprovalWhen: 1}; {
	case asks[now.Approval] > asks[old.Approval]:
		d.add(Major, "%s waits for an approval that it did not need", name)
	case asks[now.Approval] < asks[old.Approval]:
		d.add(Minor, "%s needs fewer approvals", name)
	case old.Asks() != now.Asks():
		d.add(Minor, "%s asks for an approval for other requests", name)
	}
	if old.Body != now.Body || old.ContentType != now.ContentType {
		d.add(Major, "%s has another kind of body", name)
	}
	switch {
	case !old.QueryDeclaredOnly && now.QueryDeclaredOnly:
		d.add(Major, "%s accepts no other names in the query than its inputs", name)
	case old.QueryDeclaredOnly && !now.QueryDeclaredOnly:
		d.add(Minor, "%s accepts any name in the query", name)
	}
	if (old.Injection == nil) != (now.Injection == nil) ||
		old.Injection != nil && now.Injection != nil && *old.Injection != *now.Injection {
		d.add(Minor, "%s has its credential in another place", name)
	}
	for _, trait := range []struct {
		old, now bool
		what     string
	}{
		{old.Upgrade != "", now.Upgrade != "", "becomes a WebSocket"}, {old.Ranges, now.Ranges, "accepts ranges"},
		{old.Packed, now.Packed, "has packed responses"},
	} {
		switch {
		case trait.old && !trait.now:
			d.add(Major, "%s no longer %s", name, trait.what)
		case trait.now && !trait.old:
			d.add(Minor, "%s %s", name, trait.what)
		}
	}
	fields := func(op *spec.Operation) (all []string) {
		for _, f := range op.Headers {
			all = append(all, f.String())
		}
		return all
	}
	d.lists(Major, Minor, name+" no longer accepts the field %s", name+" accepts the field %s", fields(old), fields(now))
	d.content(name, old, now)
}

// content adds what an operation allows of a body that is judged: of MCP and of GraphQL.
func (d *differ) content(name string, old, now *spec.Operation) {
	type allowed struct {
		kind string
		list []string
	}
	of := func(op *spec.Operation) (a allowed) {
		if m := op.MCP; m != nil {
			a = allowed{"mcp", slices.Concat(m.Tools, m.Methods)}
		}
		if g := op.GraphQL; g != nil {
			a = allowed{"graphql " + g.Type, slices.Concat(g.Fields, g.Hashes)}
		}
		return a
	}
	was, is := of(old), of(now)
	if was.kind != is.kind {
		d.add(Major, "%s allows other bodies", name)
		return
	}
	d.lists(Major, Minor, name+" no longer allows %s", name+" allows %s", was.list, is.list)
}

// inputs adds what the inputs of an operation change.
func (d *differ) inputs(name string, old, now *spec.Operation) {
	find := func(op *spec.Operation, input string) *spec.Input {
		i := slices.IndexFunc(op.Inputs, func(in spec.Input) bool { return in.Name == input })
		if i < 0 {
			return nil
		}
		return &op.Inputs[i]
	}
	for _, was := range old.Inputs {
		if find(now, was.Name) == nil {
			d.add(Major, "%s no longer has the input %s", name, was.Name)
		}
	}
	for _, is := range now.Inputs {
		was := find(old, is.Name)
		switch {
		case was == nil && is.Required:
			d.add(Major, "%s has the input %s, which is required", name, is.Name)
		case was == nil:
			d.add(Minor, "%s has the input %s", name, is.Name)
		case !was.Required && is.Required:
			d.add(Major, "%s requires the input %s", name, is.Name)
		case was.Required && !is.Required:
			d.add(Minor, "%s no longer requires the input %s", name, is.Name)
		}
		if was == nil {
			continue
		}
		if was.Type != is.Type || was.In != is.In || was.Style != is.Style {
			d.add(Major, "%s takes the input %s in another form", name, is.Name)
		}
		if schemaText(was.Schema) != schemaText(is.Schema) {
			d.add(Major, "%s has another schema for the input %s", name, is.Name)
		}
		switch {
		case len(was.Values) == 0 && len(is.Values) > 0:
			d.add(Major, "%s limits the input %s to %s", name, is.Name, strings.Join(is.Values, ", "))
		case len(is.Values) == 0 && len(was.Values) > 0:
			d.add(Minor, "%s accepts any value of the input %s", name, is.Name)
		default:
			d.lists(Major, Minor, name+" no longer accepts "+is.Name+"=%s", name+" accepts "+is.Name+"=%s", was.Values,
				is.Values)
		}
	}
}

// schemaText returns a schema as text to compare, without what is for people.
func schemaText(s *schema.Schema) string {
	if s == nil {
		return ""
	}
	text, err := s.MarshalJSON()
	if err != nil {
		return err.Error()
	}
	return string(text)
}
