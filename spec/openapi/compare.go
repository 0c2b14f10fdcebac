package openapi

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/internal/foreign"
)

// Count is how many things of a kind a document has, and how many of them a connector.
type Count struct {
	Document  int `json:"document"`
	Connector int `json:"connector"`
}

// Comparison is what of a document is in a connector.
type Comparison struct {
	Operations Count `json:"operations"`
	Parameters Count `json:"parameters"` // of the operations that are there
	Bodies     Count `json:"bodies"`

	LeftOut []string `json:"left_out"` // what is not there, with the reason
	Missing []string `json:"missing"`  // what is not there for no reason
}

// Compare compares a connector with the document itself: each operation, parameter and body of it is there, or listed.
func Compare(data []byte, c *spec.Connector, opts Options) (Comparison, error) {
	made := Comparison{LeftOut: []string{}, Missing: []string{}}
	r, err := newReader(data, opts)
	if err != nil {
		return made, err
	}
	declared := map[string]*spec.Operation{}
	for _, t := range c.Tools {
		for _, op := range t.Operations {
			declared[op.Method+" "+shapeOf(op.Path.String())] = op
		}
	}
	all := r.operations()
	r.chooseCredential(all)
	r.useHost(all, c)
	for _, f := range all {
		why := ""
		r.notes.Each = func(kind, _ string) { why = kind }
		at, reason := r.server(f)
		op := declared[f.method+" "+shapeOf(at.base+f.path)]
		made.Operations.Document++
		if op == nil {
			if _, ok := r.operation(f); ok {
				why = "" // what was noted is no reason
			}
			made.miss(f.where, cmp.Or(reason, why))
			continue
		}
		made.Operations.Connector++
		r.compare(&made, f, op)
	}
	return made, r.docs.err()
}

// useHost takes the connector's host where the document names none.
func (r *reader) useHost(all []found, c *spec.Connector) {
	for _, t := range c.Tools {
		for _, op := range t.Operations {
			if len(all) == 0 || r.opts.Host != "" || len(op.Hosts) == 0 {
				return
			}
			if _, why := r.server(all[0]); why == "" {
				return
			}
			r.opts.Host, r.servers = op.Hosts[0].Name, nil
		}
	}
}

// miss records what is not there.
func (c *Comparison) miss(what, why string) {
	if why == "" {
		c.Missing = append(c.Missing, what)
		return
	}
	c.LeftOut = append(c.LeftOut, what+": "+why)
}

// compare compares the parameters and the body of an operation.
func (r *reader) compare(all *Comparison, f found, op *spec.Operation) {
	in := &inputs{reader: r, found: f}
	for _, p := range in.parameters() {
		name, place := p.get("name").scalar(), p.get("in").scalar()
		all.Parameters.Document++
		credential := op.Injection != nil && op.Injection.In == place && strings.EqualFold(op.Injection.Name, name)
		switch {
		case place == "path", credential, place == "query" && (!op.QueryDeclaredOnly || op.DeclaresQuery(name)):
			all.Parameters.Connector++
		case place == "query":
			all.miss(f.where+" "+foreign.Clean(name, 60), "")
		default:
			all.miss(f.where+" "+foreign.Clean(name, 60), "it is in a "+foreign.Clean(place, 20)+", which a connector's call "+
				"does not have")
		}
	}
	content := in.resolve(f.op.get("requestBody")).get("content")
	if content.size() == 0 {
		return
	}
	bodiless := f.method == "GET" || f.method == "HEAD"
	if (bodiless || f.method == "DELETE") && in.isEmpty(content) {
		return
	}
	all.Bodies.Document++
	switch {
	case len(op.BodyInputs()) > 0 || op.JudgesBody():
		all.Bodies.Connector++
	case bodiless:
		all.miss(f.where+" body", "a "+f.method+" has none")
	case in.isEmpty(content):
		all.Bodies.Connector++ // it has nothing to say
	default:
		all.miss(f.where+" body", "")
	}
}

// shapeOf returns a path without the names of its variables.
func shapeOf(path string) string {
	parts := strings.Split(path, "/")
	for i, p := range parts {
		if before, name, after, ok := cutVariable(p); ok && name != "" && name != "$" {
			parts[i] = before + "{}" + after
		}
	}
	return strings.Join(parts, "/")
}

// Lines returns the comparison for a person: the counts, and what is not there.
func (c *Comparison) Lines() []string {
	count := func(what string, n Count) string {
		return fmt.Sprintf("%s: %d in the document, %d in the connector", what, n.Document, n.Connector)
	}
	lines := []string{count("operations", c.Operations), count("parameters", c.Parameters), count("bodies", c.Bodies)}
	for _, what := range c.Missing {
		lines = append(lines, "missing: "+what)
	}
	for _, what := range c.LeftOut {
		lines = append(lines, "left out: "+what)
	}
	return lines
}
