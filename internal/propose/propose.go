// Package propose makes a connector of what recorded sessions did: [FromSessions] reads the rows of the audit log,
// package learn makes templates of their paths, and [Proposal.Write] writes the connector's directory, for a person to
// review and install. Nothing here installs or changes anything.
//
// [Unused] is the other direction: what installed connectors grant, and nothing used.
package propose

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/auditlog"
	"github.com/ALRubinger/aileron/internal/connectors"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/home"
	"github.com/ALRubinger/aileron/internal/learn"
	"github.com/ALRubinger/aileron/internal/review"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/catalog"
	"github.com/ALRubinger/aileron/spec/scaffold"
)

// Proposal is a connector that would allow what sessions did and no installed connector allows.
type Proposal struct {
	FQN        spec.FQN    `json:"connector_fqn"`
	Version    string      `json:"version"`
	Sessions   []string    `json:"sessions"`
	Operations []Operation `json:"operations"`

	Covered int     `json:"covered_requests"`  // by installed connectors
	LeftOut int     `json:"left_out_requests"` // no template has their path, or there was no room for them
	Others  []Other `json:"others"`

	// More and Less are what Compare found.
	More []string `json:"more,omitempty"`
	Less []string `json:"less,omitempty"`

	connector *scaffold.Connector
	used      map[*spec.Operation]bool
	current   []*spec.Connector
}

// Operation is an operation of a proposal, and the rows that it is made of.
type Operation struct {
	Name     string   `json:"name"`
	Method   string   `json:"method"`
	Host     string   `json:"host"`
	Path     string   `json:"path"`
	Query    []string `json:"query"`     // names
	AnyQuery bool     `json:"any_query"` // it accepts other names, too
	Types    []string `json:"content_types"`
	Approval string   `json:"approval"`
	Requests int      `json:"requests"`
	Refused  int      `json:"refused_requests"` // of Requests
	Rows     []string `json:"rows"`             // the first of them
}

// Other is requests that the proposal leaves to a connector that names their host.
type Other struct {
	Connector string `json:"connector"`
	Installed bool   `json:"installed"` // otherwise it is of the catalogue, and the proposal has the requests
	Host      string `json:"host"`
	Requests  int    `json:"requests"`
	Row       string `json:"row"` // the first of them
}

// Bounds of a proposal. A person has to read it.
const (
	maxOperations = 200
	maxOthers     = 64
	maxSessions   = 64
)

// version is that of every proposal: further ones have other names.
const version = "1.0.0"

// FromSessions returns the proposal for sessions, named by their ids or the beginnings of them. It depends on their
// rows and notes and on what is installed alone.
func FromSessions(ctx context.Context, d *home.Dir, names []string) (*Proposal, error) {
	if len(names) > maxSessions {
		return nil, failure.Usagef("learn takes at most %d sessions; it got %d", maxSessions, len(names))
	}
	current, err := connectors.ToMatch(d, nil)
	if err != nil {
		return nil, err
	}
	l, err := d.AuditReader()
	if err != nil {
		return nil, err
	}
	if l == nil {
		return nil, hint.New(audit.ErrNotFound, "there is no audit log yet; it begins with the first session")
	}
	defer l.Close()
	sessions, err := resolve(ctx, l, names)
	if err != nil {
		return nil, err
	}
	r, err := newReading(current)
	if err != nil {
		return nil, err
	}
	err = l.Each(ctx, audit.Filter{Sessions: sessions, NoIntents: true}, func(row audit.Row) error {
		r.add(&row)
		return nil
	})
	if err != nil {
		return nil, auditlog.Hint(err)
	}
	shapes, err := readShapes(d, sessions)
	if err != nil {
		return nil, err
	}
	return r.proposal(sessions, shapes)
}

// resolve returns the ids of sessions, sorted.
func resolve(ctx context.Context, l *audit.Log, names []string) (ids []string, err error) {
	for _, name := range names {
		found, err := review.SessionsWith(ctx, l, name)
		switch {
		case err != nil:
			return nil, auditlog.Hint(err)
		case len(found) == 0:
			return nil, hint.New(fmt.Errorf("learn from the session %.26q: the audit log has none", name),
				"see the ids with: aileron session list --all")
		case len(found) > 1:
			return nil, hint.New(failure.Usagef("learn from the session %.26q: several ids begin so", name),
				"write more of one: %s", hint.Listed(found[:min(len(found), 8)]))
		}
		ids = append(ids, found[0])
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// readShapes returns what the sessions noted.
func readShapes(d *home.Dir, sessions []string) (*learn.Shapes, error) {
	dir, err := d.Home()
	if err != nil {
		return nil, err
	}
	all := &learn.Shapes{Complete: true}
	for _, id := range sessions {
		notes, complete, err := learn.ReadNotes(learn.NotesPath(dir, id))
		if err != nil {
			return nil, err
		}
		all.Notes, all.Complete = append(all.Notes, notes...), all.Complete && complete
	}
	return all, nil
}

// reading is what has been read of the rows of sessions.
type reading struct {
	tree    learn.Tree
	index   *spec.Index
	current []*spec.Connector
	covered int
	used    map[*spec.Operation]bool
	others  map[[2]string]*Other
	catalog []catalog.Entry               // nil: it was not read yet
	entries map[spec.HostPattern][]string // of the catalogue, by host
}

func newReading(current []*spec.Connector) (*reading, error) {
	index, err := spec.NewIndex(current)
	if err != nil {
		return nil, hint.New(fmt.Errorf("combine the installed connectors: %w", err),
			"remove one of the two with: aileron connector remove FQN")
	}
	return &reading{index: index, current: current, used: map[*spec.Operation]bool{}, others: map[[2]string]*Other{}}, nil
}

// verdict returns whether policy allowed the request of a row, or denied it. decided is false for any other row.
func verdict(row *audit.Row) (allowed, decided bool) {
	if row.Method == "" || row.Method == "CONNECT" || row.Host == "" || !strings.HasPrefix(row.Path, "/") {
		return false, false
	}
	switch row.Decision {
	case audit.DecisionProxied, audit.DecisionPassthrough, audit.DecisionUpgrade:
		return true, true
	case audit.DecisionRejected:
		switch row.Reason {
		case "host_not_allowed", "operation_not_matched", "query_not_declared":
			return false, true
		}
	}
	return false, false
}

// target returns the request of a row. A row has no query.
func target(row *audit.Row) spec.Target {
	port := uint16(row.Port) //nolint:gosec // it is one
	return spec.Target{Scheme: row.Scheme, Host: row.Host, Port: port, Method: row.Method, Path: row.Path}
}

// add reads a row.
func (r *reading) add(row *audit.Row) {
	allowed, decided := verdict(row)
	if !decided {
		return
	}
	t := target(row)
	if m, no := r.index.Match(t); no == nil {
		r.covered++
		r.used[m.Operation] = true
		return
	}
	if r.index.Covers(t.Host, t.Port) { // that connector decides, with its credential
		if c := r.index.Naming(t); c != nil {
			r.other(string(c.FQN), true, row)
		}
		return
	}
	added := r.tree.Add(learn.Request{Host: row.Host, Port: row.Port, Method: row.Method, Path: row.Path, Row: row.ID,
		Refused: !allowed})
	if !added {
		return
	}
	for _, name := range r.inCatalog(spec.HostPattern{Name: t.Host, Port: t.Port}) {
		r.other(name, false, row)
	}
}

// inCatalog returns the entries of the catalogue for a host. The catalogue is read once, and each host looked up once:
// there is a tree for each anyway.
func (r *reading) inCatalog(h spec.HostPattern) (names []string) {
	if names, known := r.entries[h]; known {
		return names
	}
	if r.catalog == nil {
		r.catalog, r.entries = catalog.List(), map[spec.HostPattern][]string{}
	}
	for _, e := range r.catalog {
		if e.Names(h) {
			names = append(names, e.Name)
		}
	}
	h.Name = strings.Clone(h.Name)
	r.entries[h] = names
	return names
}

func (r *reading) other(connector string, installed bool, row *audit.Row) {
	key := [2]string{connector, hostPort(row.Host, row.Port)}
	o := r.others[key]
	if o == nil {
		if len(r.others) >= maxOthers {
			return
		}
		o = &Other{Connector: connector, Installed: installed, Host: strings.Clone(key[1]), Row: strings.Clone(row.ID)}
		r.others[[2]string{connector, o.Host}] = o
	}
	o.Requests++
}

// hostPort returns a host as a connector names it.
func hostPort(host string, port int) string {
	if port == 443 {
		return host
	}
	return host + ":" + strconv.Itoa(port)
}

// proposal returns what was read as a connector.
func (r *reading) proposal(sessions []string, shapes *learn.Shapes) (*Proposal, error) {
	sum := sha256.Sum256([]byte(strings.Join(sessions, " ")))
	short := hex.EncodeToString(sum[:4])
	p := &Proposal{FQN: spec.FQN("local://learnt/" + short), Version: version, Sessions: sessions, Covered: r.covered,
		Operations: []Operation{}, Others: []Other{}, used: r.used, current: r.current}
	p.connector = &scaffold.Connector{FQN: p.FQN, Version: version, Tool: "learnt-" + short,
		About:  "What " + hint.Plural(len(sessions), "recorded session") + " did",
		Source: "the audit log of " + hint.Listed(sessions)}
	names := map[string]bool{}
	for _, op := range mostUsed(r.tree.Operations(), p) {
		p.add(op, shapes, names)
	}
	p.LeftOut += r.tree.LeftOut
	for _, o := range r.others {
		p.Others = append(p.Others, *o)
	}
	slices.SortFunc(p.Others, func(a, b Other) int {
		return cmp.Or(cmp.Compare(a.Connector, b.Connector), cmp.Compare(a.Host, b.Host))
	})
	if len(p.Operations) == 0 {
		return p, nil
	}
	_, err := p.connector.Files()
	return p, err
}

// mostUsed returns at most maxOperations operations, in their order. The others are counted in p.
func mostUsed(all []learn.Operation, p *Proposal) []learn.Operation {
	if len(all) <= maxOperations {
		return all
	}
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(all[b].Requests, all[a].Requests) })
	for _, i := range order[maxOperations:] {
		p.LeftOut += all[i].Requests
	}
	chosen := order[:maxOperations]
	slices.Sort(chosen)
	var kept []learn.Operation
	for _, i := range chosen {
		kept = append(kept, all[i])
	}
	return kept
}

// add adds an operation, unless no connector can have it.
func (p *Proposal) add(op learn.Operation, shapes *learn.Shapes, names map[string]bool) {
	query, types, all := shapes.Of(op)
	all = all && op.Refused == 0 // what was refused is not in the notes
	made := scaffold.Operation{Name: op.Name(), Method: op.Method, Path: op.Template(),
		Hosts: []string{hostPort(op.Host, op.Port)}, Idempotency: "none", Approval: "required",
		Query: map[bool]string{true: "declared", false: "any"}[all]}
	if learn.IsRead(op.Method) {
		made.Idempotency, made.Approval = "idempotent", ""
	}
	anyPath, archive := op.AnyPath()
	if anyPath && !archive {
		made.Approval = "required"
	}
	made.Summary = op.Method + " " + made.Hosts[0] + made.Path
	made.Description = "Learnt from " + hint.Plural(op.Requests, "request") + ": row " + strings.Join(op.Rows, ", ")
	if op.Requests > len(op.Rows) {
		made.Description += ", …"
	}
	if len(types) > 0 {
		made.Description += ". Bodies: " + strings.Join(types[:min(len(types), 8)], ", ")
	}
	if anyPath && len(query) > 0 { // with inputs, the proxy would judge its paths
		made.Query, query = "any", nil
	}
	for _, s := range op.Segments {
		if s.Kind != learn.Literal {
			kind := map[bool]string{true: "integer", false: "string"}[s.Kind == learn.Number]
			made.Inputs = append(made.Inputs, scaffold.Input{Name: s.Name, In: spec.InPath, Type: kind, Required: true,
				EscapedSlash: s.Slash})
		}
	}
	for _, name := range query {
		if !slices.ContainsFunc(made.Inputs, func(in scaffold.Input) bool { return in.Name == name }) {
			made.Inputs = append(made.Inputs, scaffold.Input{Name: name, In: spec.InQuery, Type: "string"})
			continue
		}
		made.Query = "any" // a variable of the path has that name
	}
	if len(made.Summary) > 200 {
		made.Summary = made.Summary[:200]
	}
	if len(made.Check()) > 0 {
		p.LeftOut += op.Requests
		return
	}
	base := made.Name
	for n := 2; names[made.Name]; n++ {
		made.Name = base + "-" + strconv.Itoa(n)
	}
	names[made.Name] = true
	p.connector.Operations = append(p.connector.Operations, made)
	p.Operations = append(p.Operations, Operation{Name: made.Name, Method: op.Method, Host: made.Hosts[0], Path: made.Path,
		Query: append([]string{}, query...), AnyQuery: made.Query == "any", Types: append([]string{}, types...),
		Approval: cmp.Or(made.Approval, "none"), Requests: op.Requests, Refused: op.Refused, Rows: op.Rows})
}

// Compare fills in what the proposal grants more than what is installed, and what is installed that the sessions did
// not use.
func (p *Proposal) Compare() {
	for _, op := range p.Operations {
		p.More = append(p.More, op.Method+" "+op.Host+op.Path)
	}
	for _, c := range p.current {
		for _, t := range c.Tools {
			for _, op := range t.Operations {
				if !p.used[op] {
					p.Less = append(p.Less, op.String())
				}
			}
		}
	}
	slices.Sort(p.Less)
}

// reportFile is what Write writes beside the connector.
const reportFile = "LEARNT.txt"

// Write writes the connector into a directory, with a report of where its operations come from. It replaces nothing,
// and fails where it cannot write all, or where dir is a link: the sandbox may have made what is there.
func (p *Proposal) Write(dir string) error {
	if len(p.Operations) == 0 {
		return hint.New(errors.New("write the proposal: there is nothing to propose"),
			"run a session with --learn; aileron audit list --session ID shows what one did")
	}
	dir = filepath.Clean(dir) // the link itself, not what is behind it
	if info, err := os.Lstat(dir); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return hint.New(fmt.Errorf("write the proposal: %s is a link to another directory", dir),
			"remove it if it is not yours, or name the directory itself")
	}
	if _, err := os.Lstat(filepath.Join(dir, reportFile)); err == nil {
		return planted(dir, reportFile)
	}
	files, err := p.connector.Files()
	if err != nil {
		return err
	}
	maps.DeleteFunc(files, func(name string, _ []byte) bool { return name != spec.ManifestFile && name != spec.SpecFile })
	var report strings.Builder
	if err := p.Print(&report, 0); err != nil {
		return err
	}
	files[reportFile] = []byte(report.String())
	skipped, err := scaffold.Write(dir, files)
	if err == nil && len(skipped) > 0 { // it came in the meantime
		err = planted(dir, skipped...)
	}
	return err
}

// planted returns the error for files that are not of this proposal, and would be read beside it.
func planted(dir string, names ...string) error {
	return hint.New(fmt.Errorf("write %s: it exists already, and nothing is replaced: it is another proposal's, or forged",
		filepath.Join(dir, hint.Listed(names))), "name another directory, or remove this one")
}
