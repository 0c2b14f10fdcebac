package session

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/config"
	"github.com/ALRubinger/aileron/internal/spending"
	"github.com/ALRubinger/aileron/spec"
)

// Tally is what became of the requests of a session so far.
type Tally struct {
	Proxied     int // sent with what an operation allows
	Passthrough int // forwarded unmodified
	Rejected    int // denied, or without a response
	Redactions  int // occurrences of secrets that were redacted from responses

	Uses       []Use     // of credentials, the most frequent first
	Refusals   []Refusal // the most frequent first
	MoreUses   int       // requests that Uses leaves out
	MoreDenied int       // requests that Refusals leaves out

	Optional []Refusal // of requests that the command works without; they are not among Refusals

	Unrenewed []string // bindings whose last renewal failed

	Approvals Asked // of requests that waited for a person

	Spent []spending.Use // what requests with meters have used, by model
}

// Asked counts the questions about requests that need an approval.
type Asked struct{ Requested, Approved, Denied, Expired int }

// Request is a request to a host at port 443, as a row of the audit log has it.
type Request struct{ Method, Host, Path string }

// Use counts the requests of one operation that carried one credential.
type Use struct {
	Binding   string
	Connector spec.FQN
	Tool      string
	Operation string
	Requests  int
}

// Refusal counts rejected requests that have their reason and their target in common.
type Refusal struct {
	Reason    string
	Method    string // "" where the host alone decided
	Host      string
	Port      int
	Path      string // "" where the host alone decided
	Call      string // what was called by name, see [CallOf]; Method and Path are "" then
	Connector spec.FQN
	AuditID   string // of the first of them
	Requests  int
}

// The kinds of uses and refusals that are told apart, and the length of a path in them: a sandbox chooses its requests,
// and must not fill the memory of its session with them.
const (
	maxUses      = 256
	maxRefusals  = 256
	maxTallyPath = 200
)

// tally counts the rows of a session as they are recorded. Its zero value has counted nothing.
type tally struct {
	optional []Request        // set before the first row
	observe  func(*audit.Row) // likewise; nil: nothing is

	mu       sync.Mutex
	sum      Tally
	uses     map[useKey]*Use
	refusals map[refusalKey]*Refusal
	unneeded map[Request]*Refusal // of optional requests
	prices   config.Prices        // set before the first row
	spent    *spending.Sum        // by model; nil: nothing was
}

type (
	useKey     struct{ binding, connector, tool, operation string }
	refusalKey struct {
		reason, method, host string
		port                 int
		path, call           string
	}
)

// tallied is the audit log of a session, with the tally of what is recorded.
type tallied struct {
	*audit.Log
	tally *tally
}

// Append implements proxy.Recorder.
func (t tallied) Append(ctx context.Context, r audit.Row) (audit.Row, error) {
	stored, err := t.Log.Append(ctx, r)
	if err == nil { // the report names no row that is not in the log
		t.tally.add(&r)
	}
	return stored, err
}

// AppendSoon implements proxy.Recorder.
func (t tallied) AppendSoon(ctx context.Context, r audit.Row) error {
	t.tally.add(&r)
	return t.Log.AppendSoon(ctx, r)
}

// add counts the outcome that r records. An intent is none.
func (t *tally) add(r *audit.Row) {
	if t.observe != nil {
		t.observe(r)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.renewed(r)
	t.sum.Approvals.add(r)
	if r.Decision == "" {
		return
	}
	t.sum.Redactions += r.Redactions
	switch r.Decision {
	case audit.DecisionProxied, audit.DecisionUpgrade:
		t.sum.Proxied++
		t.use(r)
		t.spend(r)
	case audit.DecisionPassthrough:
		t.sum.Passthrough++
	case audit.DecisionRejected:
		t.refuse(r)
		t.spend(r) // it may have been sent
	}
}

// add counts the event of a question. A decision that is taken back is none.
func (a *Asked) add(r *audit.Row) {
	switch r.Event {
	case audit.EventApprovalRequested:
		a.Requested++
	case audit.EventApprovalApproved:
		a.Approved++
	case audit.EventApprovalDenied:
		if r.Fields["revoked"] != true {
			a.Denied++
		}
	case audit.EventApprovalExpired:
		a.Expired++
	}
}

// renewed keeps the binding of a renewal that failed, until another one does not.
func (t *tally) renewed(r *audit.Row) {
	switch has := slices.Contains(t.sum.Unrenewed, r.Binding); {
	case r.Event == audit.EventBindingRefreshFailed && !has:
		t.sum.Unrenewed = append(t.sum.Unrenewed, r.Binding)
	case r.Event == audit.EventBindingRefreshed && has:
		t.sum.Unrenewed = slices.DeleteFunc(t.sum.Unrenewed, func(name string) bool { return name == r.Binding })
	}
}

// maxModels bounds the models that are told apart.
const maxModels = 64

// spend adds what a request with meters has used.
func (t *tally) spend(r *audit.Row) {
	if r.Fields["meters"] == nil {
		return
	}
	if t.spent == nil {
		t.spent = spending.New(t.prices, maxModels, spending.ModelOf)
	}
	t.spent.Add(r)
}

func (t *tally) use(r *audit.Row) {
	if r.Binding == "" {
		return
	}
	key := useKey{r.Binding, r.ConnectorFQN, r.Tool, r.Operation}
	if u, ok := t.uses[key]; ok {
		u.Requests++
		return
	}
	if len(t.uses) >= maxUses {
		t.sum.MoreUses++
		return
	}
	if t.uses == nil {
		t.uses = map[useKey]*Use{}
	}
	t.uses[key] = &Use{
		Binding: r.Binding, Connector: spec.FQN(r.ConnectorFQN), Tool: r.Tool, Operation: r.Operation, Requests: 1,
	}
}

func (t *tally) refuse(r *audit.Row) {
	n := 1
	if counted, ok := r.Fields["requests"].(int); ok { // a row that stands for many
		n = counted
	}
	t.sum.Rejected += n
	if t.refuseOptional(r, n) {
		return
	}
	key := refusalKey{reason: r.Reason, host: r.Host, port: r.Port, call: CallOf(r)}
	if key.call == "" && decidedByRequest(r.Reason) {
		key.method, key.path = r.Method, r.Path[:min(len(r.Path), maxTallyPath)]
	}
	if f, ok := t.refusals[key]; ok {
		f.Requests += n
		return
	}
	if len(t.refusals) >= maxRefusals {
		t.sum.MoreDenied += n
		return
	}
	if t.refusals == nil {
		t.refusals = map[refusalKey]*Refusal{}
	}
	// The row's strings are parts of a request's head, which must not stay for as long as the session.
	key.method, key.host, key.path = strings.Clone(key.method), strings.Clone(key.host), strings.Clone(key.path)
	t.refusals[key] = &Refusal{
		Reason: key.reason, Method: key.method, Host: key.host, Port: key.port, Path: key.path, Call: key.call,
		Connector: spec.FQN(r.ConnectorFQN), AuditID: r.ID, Requests: n,
	}
}

// UnnamedCall is what [CallOf] returns for a call that named no operation and no action.
const UnnamedCall = "a call by name"

// CallOf returns what the row of a call by name is about: "TOOL OPERATION", the name of an action, or [UnnamedCall]. It
// is "" for the row of any other request.
func CallOf(r *audit.Row) string {
	if r.Source != audit.SourceConnectorShim {
		return ""
	}
	if action, ok := r.Fields["action"].(string); ok {
		return action
	}
	return cmp.Or(strings.TrimSpace(r.Tool+" "+r.Operation), UnnamedCall)
}

// refuseOptional counts a denial of what the command works without, and reports whether r is one. It is the policy's
// denial of exactly such a request: any other may be an attack, or something that the person would allow.
func (t *tally) refuseOptional(r *audit.Row, n int) bool {
	is := Request{r.Method, r.Host, r.Path}
	at := slices.Index(t.optional, is)
	if at < 0 || r.Port != 443 || r.Reason != "host_not_allowed" && r.Reason != "operation_not_matched" {
		return false
	}
	is = t.optional[at] // the row's strings must not stay
	f, ok := t.unneeded[is]
	if !ok {
		if t.unneeded == nil {
			t.unneeded = map[Request]*Refusal{}
		}
		f = &Refusal{Reason: r.Reason, Method: is.Method, Host: is.Host, Port: r.Port, Path: is.Path, AuditID: r.ID}
		t.unneeded[is] = f
	}
	f.Requests += n
	return true
}

// decidedByRequest reports whether a denial for the reason depends on method and path, and not on the host alone.
func decidedByRequest(reason string) bool {
	switch reason {
	case "operation_not_matched", "query_not_declared", "approval_required", "upgrade_not_declared", "body_not_declared":
		return true
	}
	return false
}

// read returns what has been counted.
func (t *tally) read() Tally {
	t.mu.Lock()
	defer t.mu.Unlock()
	sum := t.sum
	sum.Unrenewed = slices.Clone(t.sum.Unrenewed)
	if t.spent != nil {
		sum.Spent = t.spent.Uses()
	}
	for _, u := range t.uses {
		sum.Uses = append(sum.Uses, *u)
	}
	for _, f := range t.refusals {
		sum.Refusals = append(sum.Refusals, *f)
	}
	for _, is := range t.optional {
		if f, ok := t.unneeded[is]; ok {
			sum.Optional = append(sum.Optional, *f)
		}
	}
	slices.SortFunc(sum.Uses, func(a, b Use) int {
		return cmp.Or(b.Requests-a.Requests, cmp.Compare(a.Binding, b.Binding), cmp.Compare(a.Connector, b.Connector),
			cmp.Compare(a.Tool, b.Tool), cmp.Compare(a.Operation, b.Operation))
	})
	slices.SortFunc(sum.Refusals, func(a, b Refusal) int {
		return cmp.Or(b.Requests-a.Requests, cmp.Compare(a.Host, b.Host), cmp.Compare(a.Path, b.Path),
			cmp.Compare(a.Port, b.Port), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Method, b.Method),
			cmp.Compare(a.Call, b.Call))
	})
	return sum
}
