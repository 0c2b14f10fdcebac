// Package preview fetches what a person sees of a service before they approve a request.
//
// An operation may name another one of its connector, which only reads, as its preview. [Previewer.Fetch] calls that
// one for a question, with the credential that the question is about, and keeps the response with the question:
//
//	previews := preview.New(plane, queue)
//	previews.Fetch(ctx, id) // then queue.State(id) has it
//	...
//	previews.Wait()
//
// The call is a request like any other: it is decided, counts in budgets, and has its rows, which name the approval.
// Its response goes to the person and never to the sandbox; it is bounded, and searched for secrets.
package preview

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/panics"
	"github.com/ALRubinger/aileron/proxy"
	"github.com/ALRubinger/aileron/proxy/approval"
	"github.com/ALRubinger/aileron/spec"
)

const (
	// Timeout bounds one preview, from the call to the end of its response.
	Timeout = 5 * time.Second
	// retry is after which time a preview that failed is fetched again, if it is asked for.
	retry = 30 * time.Second
	// maxFetching is how many previews are fetched at a time.
	maxFetching = 4
	// maxValue bounds one value that a connector names of a response, in bytes.
	maxValue = 4 << 10
)

// Previewer fetches the previews of the questions of one session. Its methods are safe for concurrent use.
type Previewer struct {
	plane    *proxy.Plane
	queue    *approval.Queue
	fetching chan struct{} // a place for each
	under    sync.WaitGroup

	mu     sync.Mutex
	closed bool
	calls  map[string]*fetch // by the id of the question: under way, or done
}

// fetch is the preview of a question.
type fetch struct {
	done  chan struct{}
	ended time.Time // zero: it is under way
	good  bool
}

// New returns a previewer for the questions of a queue.
func New(plane *proxy.Plane, queue *approval.Queue) *Previewer {
	return &Previewer{plane: plane, queue: queue, fetching: make(chan struct{}, maxFetching), calls: map[string]*fetch{}}
}

// Fetch returns when the question has its preview, or the reason why it has none, or when ctx ends. A question is
// fetched for once, unless that failed some time ago. A question that is decided, and one whose operation
// has no preview, are left as they are.
func (p *Previewer) Fetch(ctx context.Context, id string) {
	q, ok := p.queue.State(id)
	if !ok || q.State != approval.Pending {
		return
	}
	op, under := p.operation(q)
	if op == nil || op.Preview == nil {
		return
	}
	select {
	case <-p.begin(q, op, under).done:
	case <-ctx.Done():
	}
}

// Wait waits for previews that are under way, and begins no other. It is called when the plane drains, which ends them.
func (p *Previewer) Wait() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.under.Wait()
}

// begin returns the fetch of a question, which it begins if there is none.
func (p *Previewer) begin(q approval.Question, op *spec.Operation, under *proxy.Grants) *fetch {
	p.mu.Lock()
	defer p.mu.Unlock()
	if f := p.calls[q.ID]; f != nil && (f.ended.IsZero() || f.good || time.Since(f.ended) < retry) {
		return f
	}
	for id, f := range p.calls { // of questions that are gone
		if now, ok := p.queue.State(id); !f.ended.IsZero() && (!ok || now.State != approval.Pending) {
			delete(p.calls, id)
		}
	}
	f := &fetch{done: make(chan struct{})}
	if p.closed {
		close(f.done)
		return f
	}
	p.calls[q.ID] = f
	p.under.Go(func() {
		out := p.fetch(q, op, under)
		// Or a preview that was made to fail would pass for one that is equal.
		if m := op.Preview.Match; out.Problem != "" && len(m) > 0 {
			out.Differs = fmt.Sprintf("its %s was not compared with %s", m[0].Name, m[0].Path)
		}
		p.queue.SetPreview(q.ID, out)
		p.mu.Lock()
		defer p.mu.Unlock()
		f.ended, f.good = time.Now(), out.Problem == ""
		close(f.done)
	})
	return f
}

// operation returns the operation of a question as the session grants it now, with the grants that it is of; nil: it
// does not grant the same bytes any more.
func (p *Previewer) operation(q approval.Question) (*spec.Operation, *proxy.Grants) {
	now := p.plane.Grants()
	for _, g := range []*proxy.Grants{now, now.Pinned[q.Hash]} { // that of an action has its own
		if g == nil || q.Hash == "" {
			continue
		}
		if op, ok := g.Index.Operation(q.Connector, q.Tool, q.Operation); ok && op.Connector.Hash == q.Hash {
			return op, g
		}
	}
	return nil, nil
}

// fetch fetches a preview.
func (p *Previewer) fetch(q approval.Question, op *spec.Operation, under *proxy.Grants) (out approval.Preview) {
	target := op.Preview.Operation
	out = approval.Preview{Tool: target.Tool, Operation: target.Name}
	defer func() {
		if recover() != nil {
			panics.Log(p.plane.Config().Log, "a preview")
			out = approval.Preview{Tool: target.Tool, Operation: target.Name, Problem: "aileron failed while it was fetched"}
		}
	}()
	ctx, cancel := context.WithTimeoutCause(p.plane.Draining(), Timeout, errTimeout)
	defer cancel()
	select {
	case p.fetching <- struct{}{}:
		defer func() { <-p.fetching }()
	case <-ctx.Done():
		out.Problem = "too many previews are fetched at a time"
		return out
	}
	if b := under.Bound[op.Connector.FQN]; q.Binding != "" && (b.Binding != q.Binding || b.ID != q.BindingID) {
		out.Problem = "the credential is another than the one that is asked about"
		return out
	}
	inv, err := op.Preview.Invocation(inputsOf(q))
	if err != nil {
		out.Problem = err.Error()
		return out
	}
	call, err := target.Call(inv)
	if err != nil {
		out.Problem = "its arguments make no request: " + err.Error()
		return out
	}
	var body []byte
	out.Status, body, err = p.call(ctx, q.ID, target, under, call)
	if err == nil {
		out.Values, out.Cut, err = p.shown(body, op.Preview.Render)
	}
	if err == nil {
		out.Differs, err = differs(op.Preview, inputsOf(q), body)
	}
	switch {
	case err != nil && ctx.Err() != nil && errors.Is(context.Cause(ctx), errTimeout):
		out.Problem = fmt.Sprintf("the service did not respond within %v", Timeout)
	case err != nil:
		out.Problem = err.Error()
	}
	if out.Problem != "" {
		out.Values = nil
	}
	out.SHA256 = digest(out.Values)
	return out
}

var errTimeout = errors.New("the time of the preview is over")

// inputsOf returns the inputs of a question's request, as [spec.Preview.Invocation] takes them. One that is there
// twice, or in a body that is not known whole, is none.
func inputsOf(q approval.Question) func(in, name string) (string, bool) {
	var body map[string]any
	if int64(len(q.Body)) == q.BodyBytes && !q.Streams {
		body, _ = spec.ReadObject(q.Body) // nil: it has no inputs
	}
	return func(in, name string) (value string, ok bool) {
		if in == spec.InBody {
			return spec.Scalar(body[name])
		}
		n := 0
		for _, v := range q.Inputs {
			if v.In == in && v.Name == name {
				value = v.Value
				n++
			}
		}
		return value, n == 1
	}
}

// call sends the request of a preview, and returns the response, or its beginning.
func (p *Previewer) call(ctx context.Context, id string, op *spec.Operation, under *proxy.Grants, call spec.Call,
) (status int, content []byte, err error) {
	a, r := proxy.RequestOf(ctx, call, nil)
	hold := p.plane.Budget().Conn().Hold(nil)
	defer hold.Release()
	if !hold.TryTake(2 * approval.MaxPreview) {
		return 0, nil, errors.New("the session has no memory for it now")
	}
	at := proxy.Arrival{Source: audit.SourceLauncher, Authority: a, Scheme: call.Target.Scheme}
	x := p.plane.Begin(at, r).Under(under)
	x.Previews(id)
	d := proxy.Decide(x.Question())
	d.Named(under.Index, op)
	if d.Verdict == proxy.Allow && d.Match.Operation != op {
		d = proxy.Denied(proxy.ReasonNotMatched.Deny("the request is another than one of %s %s", op.Tool, op.Name))
	}
	x.Decided(d)
	res, denial := p.plane.Do(x)
	if denial != nil {
		return 0, nil, fmt.Errorf("it was not sent, or failed (%s)", denial.Reason)
	}
	defer res.Body.Close()
	var body bytes.Buffer
	_, err = io.CopyN(&body, res.Body, approval.MaxPreview+1)
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return res.StatusCode, nil, errors.New("the response broke off")
	case res.StatusCode < 200 || res.StatusCode > 299:
		return res.StatusCode, nil, fmt.Errorf("the service responded with status %d", res.StatusCode)
	}
	return res.StatusCode, body.Bytes(), nil
}

// differs returns which input of the request is not what the response has, in words of the connector's.
func differs(p *spec.Preview, input func(in, name string) (string, bool), body []byte) (string, error) {
	if len(p.Match) > 0 && (len(body) > approval.MaxPreview || !gjson.ValidBytes(body)) {
		return "", errors.New("the response cannot be compared with the request: it is too long, or no JSON")
	}
	for _, m := range p.Match {
		has := gjson.GetBytes(body, m.Path)
		if has.Type != gjson.String && has.Type != gjson.Number {
			return "", fmt.Errorf("the response has no %s to compare the request with", m.Path)
		}
		if named, ok := input(m.In, m.Name); !ok || has.String() != named {
			return fmt.Sprintf("its %s is another than %s", m.Name, m.Path), nil
		}
	}
	return "", nil
}

// shown returns what is shown of a response: the values of its paths, or its text.
func (p *Previewer) shown(body []byte, render []string) (values []approval.Value, cut bool, err error) {
	add := func(name, text string, most int) {
		text = strings.ToValidUTF8(text, "\ufffd")
		if secrets := p.plane.Grants().Scrub; secrets != nil { // an escape may have kept the response's from being found
			text, _ = secrets.Text(text)
		}
		if len(text) > most {
			text, cut = strings.ToValidUTF8(text[:most], ""), true
		}
		values = append(values, approval.Value{Name: name, Value: text})
	}
	if len(render) > 0 && len(body) > approval.MaxPreview {
		return nil, true, fmt.Errorf("the response has more than %d bytes", approval.MaxPreview)
	}
	if len(render) == 0 {
		if !utf8.Valid(body[:min(len(body), approval.MaxPreview-utf8.UTFMax)]) && !json.Valid(body) {
			return nil, false, errors.New("the response is not text")
		}
		add("", string(body), approval.MaxPreview)
		return values, cut, nil
	}
	if !gjson.ValidBytes(body) {
		return nil, false, errors.New("the response is not JSON")
	}
	for _, path := range render {
		if v := gjson.GetBytes(body, path); v.Exists() {
			add(path, v.String(), maxValue)
		}
	}
	if len(values) == 0 {
		return nil, false, errors.New("the response has nothing of what is to be shown")
	}
	return values, cut, nil
}

// digest returns the SHA-256 of what is shown.
func digest(values []approval.Value) string {
	if len(values) == 0 {
		return ""
	}
	text, _ := json.Marshal(values) // values marshal
	return approval.Digest(text)
}
