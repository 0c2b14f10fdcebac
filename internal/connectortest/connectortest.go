// Package connectortest tries the operations of a connector against a stub of
// its service: [Run] makes a request of each operation's inputs, sends it
// through a [proxy.Plane] to a server on the loopback address, and reports what
// arrived otherwise than declared.
//
// The secret is a new random one. The stub repeats it in its response, so that
// a result shows that it was redacted. Nothing is sent to the service itself.
//
// This file is the trial of an operation, bench.go the proxy and the stub around it,
// and samples.go the arguments and the response.
package connectortest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/spec"
)

// Options select what is tried.
type Options struct {
	Operation string          // "NAME" or "TOOL NAME"; "": every operation
	Args      json.RawMessage // the arguments, an object; nil: samples of every input
	Response  []byte          // what the service responds; nil: what the audit fields need
}

// Result is what became of one operation.
type Result struct {
	Tool       string            `json:"tool"`
	Operation  string            `json:"operation"`
	OK         bool              `json:"ok"`
	Method     string            `json:"method"`
	URL        string            `json:"url"`        // without the credential
	Credential string            `json:"credential"` // where it arrived; "": there is none
	Redactions int               `json:"redactions"` // of the secret that the stub repeated
	Audit      map[string]string `json:"audit"`      // the declared fields of the audit row
	Problems   []string          `json:"problems"`
	Notes      []string          `json:"notes"`
}

// Run tries the operations of c, one after the other. It sets their approval to
// "none". The error is about the trial itself; an operation that fails has
// problems.
func Run(ctx context.Context, c *spec.Connector, opts Options) ([]Result, error) {
	chosen := operations(c, opts.Operation)
	if len(chosen) == 0 {
		return nil, fmt.Errorf("%s has no operation %q", c.FQN, opts.Operation)
	}
	index, err := spec.NewIndex([]*spec.Connector{c})
	if err != nil {
		return nil, err
	}
	b, err := newBench(ctx, c, index)
	if err != nil {
		return nil, err
	}
	defer b.close()
	results := make([]Result, 0, len(chosen))
	for _, op := range chosen {
		t := &trial{bench: b, op: op, opts: opts, result: Result{Tool: op.Tool, Operation: op.Name,
			Audit: map[string]string{}, Problems: []string{}, Notes: []string{}}}
		t.run(ctx)
		if err := ctx.Err(); err != nil {
			return results, err
		}
		t.result.OK = len(t.result.Problems) == 0
		results = append(results, t.result)
	}
	return results, nil
}

// operations returns the operations of a name.
func operations(c *spec.Connector, name string) (chosen []*spec.Operation) {
	for _, t := range c.Tools {
		for _, op := range t.Operations {
			if name == "" || name == op.Name || name == op.Tool+" "+op.Name {
				chosen = append(chosen, op)
			}
		}
	}
	return chosen
}

// trial is that of one operation.
type trial struct {
	*bench
	op     *spec.Operation
	opts   Options
	call   spec.Call
	deep   bool // the last variable of the path has several segments
	result Result
}

func (t *trial) problem(format string, args ...any) {
	t.result.Problems = append(t.result.Problems, fmt.Sprintf(format, args...))
}

func (t *trial) note(format string, args ...any) {
	t.result.Notes = append(t.result.Notes, fmt.Sprintf(format, args...))
}

func (t *trial) run(ctx context.Context) {
	t.remarks()
	var err error
	if t.call, err = t.request(); err != nil {
		t.problem("no request can be made of its inputs: %v", err)
		return
	}
	target := t.call.Target
	t.result.Method, t.result.URL = target.Method, address(target)
	m, no := t.index.Match(target)
	if (no != nil || !t.reaches(m)) && t.opts.Args == nil && strings.HasSuffix(t.op.Path.String(), "...}") {
		// Where an operation with one segment takes precedence, a rest of several is this one's.
		t.deep = true
		if t.call, err = t.request(); err != nil {
			t.problem("no request can be made of its inputs: %v", err)
			return
		}
		target = t.call.Target
		t.result.Method, t.result.URL = target.Method, address(target)
		m, no = t.index.Match(target)
	}
	switch {
	case no != nil:
		t.problem("its own request is denied: %v", no)
		return
	case !t.reaches(m):
		t.problem("it is never reached with these values: %s %s is the operation %s %s, which takes precedence",
			target.Method, target.Path, m.Operation.Tool, m.Operation.Name)
		return
	}
	t.op.Approval = "none"
	for _, other := range m.Others {
		other.Approval = "none" // which may be what the body is instead
	}
	response, err := t.send(ctx, t.op, t.call, t.responseBody())
	if err != nil {
		t.problem("the request failed: %v", err)
		return
	}
	t.check(response)
}

// reaches reports whether a match may lead to the operation: where bodies are judged, it depends on the body.
func (t *trial) reaches(m spec.Match) bool {
	return m.Operation == t.op || slices.Contains(m.Others, t.op)
}

// remarks notes what is no fault, and worth a thought before a release.
func (t *trial) remarks() {
	in := t.op.Injection
	switch {
	case t.op.AnyPath():
		t.note("it allows every request to its hosts")
	case in != nil && in.In == "query":
		t.note("the credential is in the query, which servers and proxies log: declare a header if the service takes one")
	case in != nil && in.In == "path":
		t.note("the credential is in the path, which servers and proxies log: declare a header if the service takes one")
	}
	switch t.op.Approval {
	case spec.ApprovalRequired:
		t.note("it needs approval, which was given for this test")
	case spec.ApprovalWhen:
		t.note("it asks %s; that was given for this test, whatever its values are", t.op.Asks())
	}
	if t.op.Upgrade != "" {
		t.note("the request was tried, and the WebSocket was not")
	}
}

// request returns the request that the arguments make of the operation.
func (t *trial) request() (spec.Call, error) {
	args, err := t.arguments()
	if err != nil {
		return spec.Call{}, err
	}
	if t.onlyForClients() {
		if t.opts.Args != nil {
			return spec.Call{}, errors.New("it is for HTTP clients alone, and takes no arguments")
		}
		return t.clientRequest(), nil
	}
	text, err := json.Marshal(map[string]any{"connector_fqn": t.op.Connector.FQN, "tool": t.op.Tool,
		"operation": t.op.Name, "args": args})
	if err != nil {
		return spec.Call{}, err
	}
	in, err := spec.ParseInvocation(text)
	if err != nil {
		return spec.Call{}, err
	}
	return t.op.Call(in)
}

// address returns the URL of a request.
func address(t spec.Target) string {
	host := t.Host
	if t.Scheme == "https" && t.Port != 443 || t.Scheme == "http" && t.Port != 80 {
		host = fmt.Sprintf("%s:%d", t.Host, t.Port)
	}
	text := t.Scheme + "://" + host + t.Path
	if t.Query != "" {
		text += "?" + t.Query
	}
	return text
}

// check compares what arrived at the stub, and what came back, with what is declared.
func (t *trial) check(got response) {
	if got.seen == nil {
		t.problem("nothing arrived at the service: %s", got.denial())
		return
	}
	seen := got.seen
	if seen.Method != t.call.Target.Method {
		t.problem("the method %s arrived as %s", t.call.Target.Method, seen.Method)
	}
	if op := got.row.Operation; t.op.JudgesBody() && op != t.op.Name {
		t.problem("its message is one of the operation %s, which takes precedence", op)
	}
	if want := string(t.call.Body); want != seen.body {
		t.problem("the body %q arrived as %q", want, seen.body)
	}
	t.checkCredential(seen)
	if got.Status != 200 {
		t.problem("the response of the service, 200, became %s", got.denial())
		return
	}
	if text := got.body + got.header; t.op.Injection != nil && (strings.Contains(text, t.secret) ||
		strings.Contains(text, t.op.Injection.Compose(username, t.secret))) {
		t.problem("the secret is in the response")
	}
	t.result.Redactions = got.row.Redactions
	for _, f := range t.op.Audit {
		value, ok := got.row.Fields[f.Name]
		if !ok {
			t.problem("the audit field %q is in no row: %s finds nothing in the response", f.Name, f.Source)
			continue
		}
		t.result.Audit[f.Name] = fmt.Sprint(value)
	}
}

// checkCredential checks the path, the query and the place of the credential.
func (t *trial) checkCredential(seen *seenRequest) {
	path, query := t.call.Target.Path, t.call.Target.Query
	in := t.op.Injection
	if in == nil {
		if strings.Contains(seen.everything, t.secret) {
			t.problem("a credential arrived, and the operation declares none")
		}
	} else {
		want := strings.Replace(in.Format, "{secret}", in.Compose(username, t.secret), 1)
		got, place := "", in.In+" "+in.Name
		switch in.In {
		case "header":
			got = seen.Header.Get(in.Name)
		case "query":
			got = seen.URL.Query().Get(in.Name)
			values := seen.URL.Query()
			values.Del(in.Name)
			seen.URL.RawQuery = values.Encode()
		case "path":
			path, _ = t.op.Path.Replace(path, in.Name, url.PathEscape(want))
			if got = want; seen.URL.EscapedPath() != path {
				got = ""
			}
		}
		if got != want {
			t.problem("the credential did not arrive in the %s as %s", place, in.Format)
		}
		t.result.Credential = place + ": " + in.Format
	}
	if got := seen.URL.EscapedPath(); got != path {
		t.problem("the path %s arrived as %s", t.call.Target.Path, strings.ReplaceAll(got, t.secret, "{secret}"))
	}
	want, err := url.ParseQuery(query)
	if got := seen.URL.Query(); err != nil || got.Encode() != want.Encode() {
		t.problem("the query %q arrived as %q", query, seen.URL.RawQuery)
	}
}
