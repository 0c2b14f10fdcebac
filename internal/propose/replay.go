package propose

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/auditlog"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/home"
	"github.com/ALRubinger/aileron/internal/learn"
	"github.com/ALRubinger/aileron/spec"
)

// Replay is what recorded requests would get under a candidate, a connector that need not be installed.
type Replay struct {
	FQN      spec.FQN `json:"connector_fqn"`
	Version  string   `json:"version"`
	Requests int      `json:"requests"` // that were judged
	Skipped  int      `json:"skipped"`  // they are another connector's
	Changes  []Change `json:"changes"`
	More     int      `json:"more_changes"` // that Changes leaves out

	connector *spec.Connector
	index     *spec.Index
	gained    map[string]*learn.Tree // by operation
	lost      map[string]*learn.Tree
}

// Change is requests of one template whose verdict would change.
type Change struct {
	Was       string   `json:"was"` // allowed or denied
	Is        string   `json:"is"`
	Operation string   `json:"operation"` // that allowed them, or would; "": none did, as the session let all hosts pass
	Method    string   `json:"method"`
	Host      string   `json:"host"`
	Path      string   `json:"path"`
	Requests  int      `json:"requests"`
	Rows      []string `json:"rows"` // the first of them
}

// maxChanges is how many changes are listed, and maxTrees by how many operations they are told apart.
const (
	maxChanges = 200
	maxTrees   = 256
)

// NewReplay returns a replay of nothing yet.
func NewReplay(candidate *spec.Connector) (*Replay, error) {
	index, err := spec.NewIndex([]*spec.Connector{candidate})
	if err != nil {
		return nil, failure.Input(fmt.Errorf("test %s: %w", candidate.FQN, err), failure.ReasonConnector)
	}
	return &Replay{FQN: candidate.FQN, Version: candidate.Version, Changes: []Change{}, connector: candidate, index: index,
		gained: map[string]*learn.Tree{}, lost: map[string]*learn.Tree{}}, nil
}

// Of replays the requests of source: a file of rows as audit export --format jsonl writes them, or else a session.
func (r *Replay) Of(ctx context.Context, d *home.Dir, source string) error {
	f, err := os.Open(source)
	if err == nil {
		defer f.Close()
		return r.file(f, source)
	}
	l, err := d.AuditReader()
	if err != nil {
		return err
	}
	if l == nil {
		return hint.New(fmt.Errorf("replay %.200q: it is no file, and there is no audit log yet", source),
			"export rows with: aileron audit export --format jsonl")
	}
	defer l.Close()
	sessions, err := resolve(ctx, l, []string{source})
	if err == nil {
		err = auditlog.Hint(l.Each(ctx, audit.Filter{Sessions: sessions, NoIntents: true}, func(row audit.Row) error {
			r.add(&row)
			return nil
		}))
	}
	if err == nil {
		r.end()
	}
	return err
}

// maxRow is the longest line in bytes of a file of rows.
const maxRow = 1 << 20

// file replays the rows of a file.
func (r *Replay) file(f io.Reader, name string) error {
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxRow)
	n := 0
	for lines.Scan() {
		n++
		var row audit.Row
		err := json.Unmarshal(lines.Bytes(), &row)
		if err == nil && row.Event == "" {
			err = errors.New("it has no event")
		}
		if err != nil {
			return notRows(name, n, err)
		}
		r.add(&row)
	}
	if err := lines.Err(); err != nil {
		return notRows(name, n+1, err)
	}
	r.end()
	return nil
}

// notRows returns the error for a line that is no row.
func notRows(name string, line int, err error) error {
	return hint.New(failure.Input(fmt.Errorf("read line %d of %s: %w", line, name, err), failure.ReasonDocument),
		"write the file with: aileron audit export --format jsonl")
}

// add replays the request of a row.
func (r *Replay) add(row *audit.Row) {
	was, decided := verdict(row)
	if !decided || row.Event == audit.EventProxyStarted {
		return
	}
	t := target(row)
	if row.ConnectorFQN != "" && row.ConnectorFQN != string(r.FQN) && !r.index.Covers(t.Host, t.Port) {
		r.Skipped++
		return
	}
	r.Requests++
	m, no := r.index.Match(t)
	switch is := no == nil; {
	case is == was, row.Reason == "query_not_declared" && is: // a row has no query
		return
	case is:
		note(r.gained, m.Operation.Tool+" "+m.Operation.Name, row)
	default:
		note(r.lost, strings.TrimSpace(row.Tool+" "+row.Operation), row)
	}
}

// note adds a request whose verdict changes.
func note(trees map[string]*learn.Tree, operation string, row *audit.Row) {
	tree := trees[operation]
	if tree == nil {
		if len(trees) >= maxTrees {
			operation = ""
		}
		if tree = trees[operation]; tree == nil {
			tree = &learn.Tree{}
			trees[strings.Clone(operation)] = tree
		}
	}
	tree.Add(learn.Request{Host: row.Host, Port: row.Port, Method: row.Method, Path: row.Path, Row: row.ID})
}

// end lists the changes.
func (r *Replay) end() {
	list := func(trees map[string]*learn.Tree, was, is string) {
		for operation, tree := range trees {
			for _, op := range tree.Operations() {
				r.Changes = append(r.Changes, Change{Was: was, Is: is, Operation: operation, Method: op.Method,
					Host: hostPort(op.Host, op.Port), Path: op.Template(), Requests: op.Requests, Rows: op.Rows})
			}
			r.More += tree.LeftOut
		}
	}
	list(r.lost, "allowed", "denied")
	list(r.gained, "denied", "allowed")
	slices.SortFunc(r.Changes, func(a, b Change) int {
		return cmp.Or(cmp.Compare(a.Was, b.Was), cmp.Compare(a.Operation, b.Operation), cmp.Compare(a.Host, b.Host),
			cmp.Compare(a.Path, b.Path), cmp.Compare(a.Method, b.Method))
	})
	for _, c := range r.Changes[min(len(r.Changes), maxChanges):] {
		r.More += c.Requests
	}
	r.Changes = r.Changes[:min(len(r.Changes), maxChanges)]
}

// Changed reports whether a request would get another verdict.
func (r *Replay) Changed() bool { return len(r.Changes)+r.More > 0 }

// Print prints the changes, a line each.
func (r *Replay) Print(out io.Writer) {
	for _, c := range r.Changes {
		operation := cmp.Or(c.Operation, "no operation")
		fmt.Fprintf(out, "%s → %s  %s: %s %s%s, %s, row %s\n", c.Was, c.Is, operation, c.Method, c.Host, c.Path,
			hint.Plural(c.Requests, "request"), strings.Join(c.Rows, ", "))
	}
	if r.More > 0 {
		fmt.Fprintf(out, "and %s more that would change\n", hint.Plural(r.More, "request"))
	}
	fmt.Fprintf(out, "%s %s: %s judged, %d of other connectors\n", r.FQN, r.Version,
		hint.Plural(r.Requests, "request"), r.Skipped)
}
