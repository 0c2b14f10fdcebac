package graphql

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/content"
	"github.com/ALRubinger/aileron/spec/internal/foreign"
	"github.com/ALRubinger/aileron/spec/scaffold"
)

const (
	maxAbout  = 200 // bytes of a summary
	maxSingle = 40  // mutations that have an operation of their own each
	maxInOne  = 250 // fields of an operation
)

// introspecting are the fields with which a client reads the schema, of queries.
var introspecting = []field{{name: "__schema"}, {name: "__type"}}

// isField reports whether a field can be allowed. Names with two underscores are those of introspection.
func isField(name string) bool {
	return content.IsGraphQLName(name) && !strings.HasPrefix(name, "__")
}

// maker makes the operations of a schema.
type maker struct {
	opts       Options
	notes      *foreign.Notes
	credential *scaffold.Credential
	made       []scaffold.Operation
}

// connector returns the connector of a schema.
func (m *maker) connector(s *schema) (*scaffold.Connector, error) {
	c := &scaffold.Connector{FQN: m.opts.FQN, Tool: scaffold.ToolName(m.opts.FQN), Source: "a GraphQL schema",
		About: "The GraphQL API at " + m.opts.Host}
	c.Credential = m.need(c.About)
	var selected [3][]field
	count := 0
	for i, r := range s.roots {
		fields := r.fields
		if i == 0 && r.name != "" {
			fields = slices.Concat(fields, introspecting)
		}
		for _, f := range fields {
			if m.selected(content.GraphQLTypes[i], f.name) {
				selected[i] = append(selected[i], f)
			}
		}
		count += len(selected[i])
	}
	if count > maxFields {
		return nil, hint.New(fmt.Errorf("the schema has %d fields at its roots, and a connector is made of at most %d",
			count, maxFields), onlyHint)
	}
	m.queries(selected[0])
	m.mutations(selected[1])
	m.subscriptions(selected[2])
	if len(m.made) == 0 {
		return nil, hint.New(errors.New("the schema has no field at a root that a connector can allow"),
			"see what was left out, and what --only selects")
	}
	m.notes.Add("the arguments of a field and the fields below it, which are not judged: a query reads all that the "+
		"credential may read", "")
	c.Operations = m.made
	return c, m.check()
}

// need returns the credential that the manifest asks for, and sets that of the operations.
func (m *maker) need(about string) *scaffold.Need {
	kind := m.opts.Credential
	switch kind {
	case NoCredential:
		return nil
	case "":
		kind = spec.KindBearer
		m.notes.Add("the credential, which no schema has: bearer stands in for it, and --credential names another", "")
	}
	need := &scaffold.Need{Kind: kind, Scope: "Use " + about}
	if kind == spec.KindOAuth2 {
		need.Login = scaffold.StandInLogin(m.opts.Host)
		m.notes.Add("the addresses of the login, which no schema has: those in manifest.toml are stand-ins", "")
	}
	m.credential = &scaffold.Credential{Kind: kind}
	return need
}

// selected reports whether a field is one of Only.
func (m *maker) selected(kind, name string) bool {
	return len(m.opts.Only) == 0 || slices.ContainsFunc(m.opts.Only, func(pattern string) bool {
		return foreign.Matches(pattern, name) || foreign.Matches(pattern, kind+" "+name)
	})
}

// queries makes the operation that allows queries. Fields whose names begin as if they deleted something need an
// approval, as mutations do.
func (m *maker) queries(fields []field) {
	var reads, asks []field
	for _, f := range fields {
		if deletes(f.name) {
			m.notes.Add("the permission to run a query without an approval whose name is that of something that deletes",
				f.name)
			asks = append(asks, f)
			continue
		}
		reads = append(reads, f)
	}
	m.add("query", "query", "Read: "+hint.Plural(len(reads), "field")+" of queries", "", reads)
	m.add("query.delete", "query", "Queries whose names are those of something that deletes", "required", asks)
}

// mutations makes the operations of mutations, one for each, or of many one for each verb.
func (m *maker) mutations(fields []field) {
	if len(fields) <= maxSingle {
		for _, f := range fields {
			m.single(f)
		}
		return
	}
	var order []string
	groups := map[string][]field{}
	for _, f := range fields {
		verb := verbOf(f.name)
		if groups[verb] == nil {
			order = append(order, verb)
		}
		groups[verb] = append(groups[verb], f)
	}
	slices.Sort(order)
	for _, verb := range order {
		group := groups[verb]
		if len(group) == 1 {
			m.single(group[0])
			continue
		}
		summary := "Mutations that " + verb + ": "
		if verb == others {
			summary = "Other mutations: "
		}
		m.add("mutation."+verb, "mutation", summary+listed(group), "required", group)
	}
}

// single makes an operation of one mutation.
func (m *maker) single(f field) {
	about := f.about
	if about == "" {
		about = "The mutation " + f.name
	}
	m.add("mutation."+f.name, "mutation", about, "required", []field{f})
}

// listed returns the first names of fields.
func listed(fields []field) string {
	var names []string
	for _, f := range fields[:min(len(fields), 3)] {
		names = append(names, f.name)
	}
	text := strings.Join(names, ", ")
	if more := len(fields) - len(names); more > 0 {
		text += " and " + strconv.Itoa(more) + " more"
	}
	return text
}

func (m *maker) subscriptions(fields []field) {
	m.add("subscription", "subscription", "Follow: "+hint.Plural(len(fields), "field")+" of subscriptions", "", fields)
	if len(fields) > 0 {
		m.notes.Add("subscriptions over a WebSocket, whose messages are not judged: those that are sent as a POST are "+
			"allowed", "")
	}
}

// add adds an operation that allows fields, or several if they are too many for one.
func (m *maker) add(name, kind, summary, approval string, fields []field) {
	base := foreign.SafeName(name)
	for n := 1; len(fields) > 0; n++ {
		some := fields[:min(len(fields), maxInOne)]
		fields = fields[len(some):]
		op := scaffold.Operation{Method: "POST", Path: m.opts.Path, Hosts: []string{m.opts.Host}, Idempotency: "none",
			Approval: approval, Query: "declared", Credential: m.credential, GraphQL: &scaffold.GraphQL{Type: kind},
			Name: m.unused(base), Summary: foreign.Clean(summary, maxAbout), Inputs: []scaffold.Input{
				{Name: "query", Type: "string", Required: true}, {Name: "variables", Type: "object"},
				{Name: "operationName", Type: "string"}}}
		for _, f := range some {
			op.GraphQL.Fields = append(op.GraphQL.Fields, f.name)
		}
		m.made = append(m.made, op)
	}
}

// unused returns a name that no other operation has, in any case.
func (m *maker) unused(base string) string {
	name := base
	for n := 2; slices.ContainsFunc(m.made, func(op scaffold.Operation) bool {
		return strings.EqualFold(op.Name, name)
	}); n++ {
		name = base + "-" + strconv.Itoa(n)
	}
	return name
}

// check checks the operations as package spec does. A summary that it does not accept is replaced.
func (m *maker) check() error {
	for i := range m.made {
		op := &m.made[i]
		faults := op.Check()
		if len(faults) == 0 {
			continue
		}
		op.Summary = "The " + op.GraphQL.Type + " " + op.GraphQL.Fields[0]
		if faults = op.Check(); len(faults) > 0 {
			return hint.New(fmt.Errorf("the endpoint https://%s%s cannot be declared: %s", m.opts.Host, m.opts.Path,
				foreign.Clean(faults[0].Error(), 200)), "name its host with --host, and its path with --path, as in /graphql")
		}
	}
	return nil
}
