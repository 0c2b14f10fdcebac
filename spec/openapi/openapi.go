// Package openapi makes a connector of a description of an API, an OpenAPI 3
// document in JSON or YAML:
//
//	c, leftOut, err := openapi.Connector(data, openapi.Options{FQN: "github://acme/tracker"})
//
// It reads what a connector can declare: operations, their inputs, hosts and
// the credential. What a connector cannot declare is left out, with a line each.
// A connector grants what it declares, so what is in doubt is left out too.
//
// The document is foreign: nothing that it refers to is read, neither a file
// nor a URL, and size, depth, references and aliases are bounded, so that the
// time and the memory are those of reading it once.
//
// Open this file first, then reader.go: an operation of the document becomes one of
// the connector, with its server (servers.go), its credential (security.go) and its
// inputs (inputs.go). tree.go parses the document.
package openapi

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/internal/foreign"
	"github.com/ALRubinger/aileron/spec/scaffold"
	"github.com/ALRubinger/aileron/spec/schema"
)

// Options are what the document does not say.
type Options struct {
	FQN  spec.FQN // required
	Host string   // "": those of the document's servers

	// Credential, unless empty, is the kind of the credential of every operation, in the place that is the default of
	// the kind, whatever the document declares. NoCredential is none.
	Credential spec.Kind

	// Files reads the documents that the document refers to; nil: there are none.
	Files Files

	// Only, unless empty, selects operations by tag, operationId, or "METHOD /path". "*" stands for any text.
	Only []string

	// Groups, unless empty, selects operations by group, in any case: see [Groups].
	Groups []string

	// Approve, unless empty, are the operations whose requests wait for a person's approval, by name or "METHOD /path";
	// "*" stands for any text. Without it those do that may write; with ApproveNone, none. Those that lead to what the
	// service hosts always do: see [reach.Inside].
	Approve     []string
	ApproveNone bool

	// Query are names that the query of each operation may have, beside those that the document declares: some APIs take
	// one everywhere and do not say so, as Kubernetes does with timeout.
	Query []string
}

// NoCredential is the Credential of operations without one.
const NoCredential spec.Kind = "none"

// maxOperations bounds the operations of a connector that is made.
const maxOperations = 5000

// Connector returns the connector of a document, and a line for each thing that it leaves out.
func Connector(data []byte, opts Options) (c *scaffold.Connector, leftOut []string, err error) {
	for _, name := range opts.Query {
		if !spec.IsInputName(name) {
			return nil, nil, fmt.Errorf("%q cannot be the name of an input of the query", foreign.Clean(name, 60))
		}
	}
	r, err := newReader(data, opts)
	if err != nil {
		return nil, nil, err
	}
	c = &scaffold.Connector{FQN: opts.FQN, Tool: scaffold.ToolName(opts.FQN), Source: "an OpenAPI document"}
	c.About = foreign.Clean(r.root.get("info").get("title").scalar(), 100)
	if c.About == "" {
		c.About = "The API of " + c.Tool
	}
	found := r.operations()
	if len(found) > maxOperations {
		return nil, nil, hint.New(fmt.Errorf("the document has %d operations, and a connector is made of at most %d",
			len(found), maxOperations), onlyHint)
	}
	r.chooseCredential(found)
	for _, f := range found {
		if op, ok := r.operation(f); ok {
			c.Operations = append(c.Operations, op)
		}
		if r.steps > maxSteps {
			return nil, nil, errors.New("the document's schemas refer to each other too often to be read")
		}
	}
	if err := r.checkUsed(); err != nil {
		return nil, nil, err
	}
	if err := r.docs.err(); err != nil {
		return nil, r.notes.Lines(), err
	}
	r.leaveOutTokens(c)
	r.noteTheRest()
	if len(c.Operations) == 0 {
		return nil, r.notes.Lines(), hint.New(errors.New("the document has no operation that a connector can declare"),
			"name the host with --host if its servers are relative, and see what was left out")
	}
	c.Credential = r.need(c)
	if err := r.fit(c); err != nil {
		return nil, nil, err
	}
	return c, r.notes.Lines(), nil
}

// newReader returns a reader of a document, which is parsed.
func newReader(data []byte, opts Options) (r *reader, err error) {
	r = &reader{opts: opts, prose: newProse()}
	r.docs.read = opts.Files
	b := &builder{notes: &r.notes}
	if r.root, err = b.parse(data); err != nil {
		return nil, hint.New(fmt.Errorf("read the OpenAPI document: %w", err),
			"pass one document of OpenAPI 3 or Swagger 2, in JSON or YAML, of at most %d MiB and %d levels", MaxSize>>20,
			maxDepth)
	}
	if version := r.root.get("swagger").scalar(); version == "2.0" || version == "2" {
		r.upgrade()
		return r, nil
	}
	return r, r.checkVersion()
}

// onlyHint is the hint for a document that is too large for one connector.
const onlyHint = "select what an agent needs with --groups, or with --only, by tag, operationId or \"METHOD /path*\""

// checkVersion returns an error for what is neither a document of OpenAPI 3 nor of Swagger 2.
func (r *reader) checkVersion() error {
	version := foreign.Clean(r.root.get("openapi").scalar(), 20)
	switch {
	case strings.HasPrefix(version, "3."):
		return nil
	case r.root.get("swagger") != nil:
		return hint.New(errors.New("the document is of another version of Swagger than 2.0"),
			"pass a document of OpenAPI 3 or Swagger 2")
	case version == "":
		return hint.New(errors.New("the document has no version in \"openapi\", so it is no OpenAPI document"),
			"pass a document of OpenAPI 3 or Swagger 2, in JSON or YAML")
	}
	return fmt.Errorf("the document is of OpenAPI %s, and OpenAPI 3 is read", version)
}

// noteTheRest notes what of the whole document has no place in a connector.
func (r *reader) noteTheRest() {
	if r.root.get("webhooks").size() > 0 {
		r.notes.Add("requests that the service makes (webhooks)", "")
	}
}

// room is what a connector keeps of a document.
type room struct {
	text   int // bytes of a description of an input
	levels int // of what nests in an input
}

// rooms are tried one after the other.
func rooms() []room {
	return []room{{maxDescription, schema.MaxLevels}, {60, schema.MaxLevels}, {60, 4}, {60, 3}, {60, 2}, {0, 3}, {0, 2},
		{60, 0}, {0, 0}}
}

// fit shortens descriptions, and what nests in inputs, until the specification has the size that is read.
func (r *reader) fit(c *scaffold.Connector) error {
	whole := map[*scaffold.Input]scaffold.Input{}
	for i := range c.Operations {
		for j := range c.Operations[i].Inputs {
			in := &c.Operations[i].Inputs[j]
			whole[in] = *in
		}
	}
	keep := func(most room) (size int, err error) {
		for in, all := range whole {
			in.Description, in.Schema = foreign.Clean(all.Description, most.text), r.cutter.Cut(all.Schema, most.levels)
		}
		return c.Size()
	}
	least, err := keep(room{})
	if err != nil {
		return err
	}
	if least > spec.MaxSpecSize {
		return hint.New(fmt.Errorf("%d operations make a specification of %d bytes, and %d is the most", len(c.Operations),
			least, spec.MaxSpecSize), onlyHint)
	}
	for _, most := range rooms() {
		about := least
		for _, all := range whole {
			about += min(len(all.Description), most.text) + r.cutter.Size(r.cutter.Cut(all.Schema, most.levels))/2
		}
		if about > spec.MaxSpecSize { // which is less than it will have
			continue
		}
		size, err := keep(most)
		if err != nil {
			return err
		}
		if size > spec.MaxSpecSize {
			continue
		}
		if most.text < maxDescription {
			r.notes.Add(fmt.Sprintf("what is beyond %d bytes of the descriptions of inputs, as the specification would be too "+
				"large", most.text), "")
		}
		if most.levels < schema.MaxLevels {
			r.notes.Add(fmt.Sprintf("what nests deeper than %d levels in inputs, as the specification would be too large",
				most.levels), "")
		}
		return nil
	}
	_, err = keep(room{})
	return err
}
