package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/proxy/approval"
	"github.com/ALRubinger/aileron/spec"
)

const asksSpec = `{"schema_version":"aileron.connector.v1","connector":{"fqn":"github://acme/calls","version":"1.0.0"},
"headers":["X-Declared"],
"tools":[{"name":"calls","operations":[
 {"name":"merge","method":"POST","path":"/v1/things/{id}/merge","hosts":["api.good.example"],"credential":"bearer",
   "approval":"required"},
 {"name":"live","method":"GET","path":"/v1/live","hosts":["api.good.example"],"credential":"bearer",
   "upgrade":"websocket","approval":"required"},
 {"name":"push","method":"PUT","path":"/v1/branches/{branch}","hosts":["api.good.example"],"credential":"bearer",
   "approval":{"when":{"path.branch":["main","release/*"]}}},
 {"name":"send","method":"PUT","path":"/v1/send","hosts":["api.good.example"],"credential":"bearer",
   "inputs":[{"name":"to","in":"query"},{"name":"channel","in":"body"},{"name":"n","type":"integer","in":"body"}],
   "approval":{"when":{"query.to":["all"],"body.channel":["general"]}}},
 {"name":"get","method":"GET","path":"/v1/things/{id}","hosts":["api.good.example"],"credential":"bearer"},
 {"name":"open","method":"POST","path":"/v1/open","hosts":["plain.good.example"],"approval":"required"}]}]}`

// asks is a world in which operations need an approval.
type asks struct {
	*world
	queue *approval.Queue
	index *spec.Index
}

const mergeURL = "https://api.good.example/v1/things/7/merge"

// newAsks is a world whose requests are held for a time.
func newAsks(t *testing.T, hold time.Duration, answer http.HandlerFunc, set ...func(*Config)) *asks {
	t.Helper()
	a := &asks{}
	a.queue = approval.New(approval.Options{Session: "S", Agent: "agent",
		Record: func(ctx context.Context, event audit.Event, q *approval.Question, fields map[string]any) error {
			all := map[string]any{"approval_id": q.ID}
			for name, value := range fields {
				all[name] = value
			}
			if event == audit.EventApprovalRequested {
				all["request_id"] = q.RequestID
			}
			_, err := a.log.Append(ctx, audit.Row{Event: event, SessionID: "S", Source: audit.SourceLauncher,
				Operation: q.Operation, Host: q.Host, Fields: all})
			return err
		}})
	a.world = newWorldWith(t, false, func(c *Config) {
		c.Approvals, c.Hold = a.queue, hold
		for _, more := range set {
			more(c)
		}
	}, answer)
	c := must.Get(spec.Load([]byte(callsManifest), []byte(asksSpec)))(t)
	c.Hash = "sha256:1"
	a.index = must.Get(spec.NewIndex([]*spec.Connector{c}))(t)
	a.grant("api_key/x/me")
	return a
}

// grant sets what is granted, with a binding of this name; "": none.
func (a *asks) grant(binding string) {
	old := a.plane.grants.Load()
	g := &Grants{Index: a.index, Scrub: old.Scrub, Bound: map[spec.FQN]Bound{}}
	for _, b := range old.Bound {
		if b.Binding = binding; binding != "" {
			g.Bound["github://acme/calls"] = b
		}
	}
	a.plane.SetGrants(g)
}

// pending waits for n questions, and returns them.
func (a *asks) pending(n int) (all []approval.Question) {
	a.t.Helper()
	a.eventually(func() bool {
		all = slices.DeleteFunc(a.queue.List(), func(q approval.Question) bool {
			return q.State != approval.Pending || q.Waiting == 0
		})
		return len(all) == n
	})
	return all
}

func (a *asks) approve(id string) {
	a.t.Helper()
	must.Get(a.queue.Decide(a.t.Context(), id, approval.Decision{Approve: true, For: approval.Once, Surface: "cli"}))(a.t)
}

// later sends a request, and returns what will have come of it.
func (a *asks) later(target, body string, header ...string) func() (int, string) {
	var res *http.Response
	var got string
	var done sync.WaitGroup
	done.Go(func() { res, got = a.do("POST", target, body, header...) })
	return func() (int, string) {
		done.Wait()
		return res.StatusCode, got
	}
}

// events returns the events about approvals, in order.
func (a *asks) events() (all []string) {
	for _, r := range a.rows() {
		if name, ok := strings.CutPrefix(string(r.Event), "approval."); ok {
			all = append(all, name)
		}
	}
	return all
}

func TestARequestIsHeldUntilItIsApproved(t *testing.T) {
	a := newAsks(t, time.Hour, hello)
	got := a.later(mergeURL+"?why=now", `{"sha":"1"}`, "Content-Type", "application/json", "X-Declared", "d",
		"User-Agent", "u")
	q := a.pending(1)[0]
	if n := len(a.requests()); n != 0 {
		t.Fatalf("%d requests were sent before the approval", n)
	}
	if rows := a.rows(); slices.ContainsFunc(rows, func(r audit.Row) bool { return r.Event == audit.EventProxyStarted }) {
		t.Error("there is an intent of a request that waits")
	}
	if q.Operation != "merge" || q.Binding != "api_key/x/me" || q.Path != "/v1/things/7/merge" || q.Query != "why=now" ||
		string(q.Body) != `{"sha":"1"}` || q.Agent != "agent" || q.Hash != "sha256:1" {
		t.Errorf("the question is %+v", q)
	}
	inputs := []approval.Value{{Name: "id", In: "path", Value: "7"}, {Name: "why", In: "query", Value: "now"}}
	if !slices.Equal(q.Inputs, inputs) {
		t.Errorf("its inputs are %v", q.Inputs)
	}
	fields := []approval.Value{{Name: "Content-Type", Value: "application/json"}, {Name: "X-Declared", Value: "d"}}
	if !slices.Equal(q.Fields, fields) {
		t.Errorf("its fields are %v", q.Fields)
	}
	a.approve(q.ID)
	if status, body := got(); status != 200 {
		t.Fatalf("after the approval: %d %s", status, body)
	}
	r := a.requests()[0]
	if r.Header.Get("Authorization") != "Bearer "+testSecret || a.bodies[0] != `{"sha":"1"}` || r.RequestURI !=
		"/v1/things/7/merge?why=now" {
		t.Errorf("the upstream got %s %v %q", r.RequestURI, r.Header, a.bodies[0])
	}
	if got := a.events(); !slices.Equal(got, []string{"requested", "approved"}) {
		t.Errorf("the events are %v", got)
	}
	if row := a.last(); row.Fields["approval_id"] != q.ID || row.Event != audit.EventProxyProxied {
		t.Errorf("the outcome is %+v", row)
	}
}

// deniedAs checks the denial of a request that was held, and returns the id of the approval.
func deniedAs(t *testing.T, status int, body string, wantStatus int, want Reason) (id string) {
	t.Helper()
	var e struct {
		Error struct {
			Class     string
			Message   string
			Retriable bool
			Details   map[string]string
		}
	}
	must.Do(t, json.Unmarshal([]byte(body), &e))
	if status != wantStatus || e.Error.Details["reason"] != string(want) {
		t.Fatalf("got %d %s, want %s", status, body, want)
	}
	if want == ReasonApproval && (!e.Error.Retriable || !strings.Contains(e.Error.Message, "same request again") ||
		e.Error.Details["poll"] != "http://aileron.internal/v1/approvals/"+e.Error.Details["approval_id"]) {
		t.Errorf("the denial is %s", body)
	}
	return e.Error.Details["approval_id"]
}

func TestARequestPassesOnceAfterALateApproval(t *testing.T) {
	a := newAsks(t, time.Millisecond, hello)
	send := func(target, body string, header ...string) (*http.Response, string) {
		return a.do("POST", target, body, append([]string{"X-Declared", "d"}, header...)...)
	}
	res, body := send(mergeURL, "x")
	id := deniedAs(t, res.StatusCode, body, 403, ReasonApproval)
	if res.Header.Get("Retry-After") == "" {
		t.Error("a request that waits does not get Retry-After")
	}
	if res, body := send(mergeURL, "x"); deniedAs(t, res.StatusCode, body, 403, ReasonApproval) != id {
		t.Error("an equal request is another question")
	}
	a.approve(id)
	for name, other := range map[string]func() (*http.Response, string){
		"body":   func() (*http.Response, string) { return send(mergeURL, "y") },
		"path":   func() (*http.Response, string) { return send(strings.Replace(mergeURL, "7", "8", 1), "x") },
		"query":  func() (*http.Response, string) { return send(mergeURL+"?force=1", "x") },
		"header": func() (*http.Response, string) { return a.do("POST", mergeURL, "x", "X-Declared", "other") },
		"type":   func() (*http.Response, string) { return send(mergeURL, "x", "Content-Type", "t/x") },
		"length": func() (*http.Response, string) { return send(mergeURL, "") },
	} {
		res, body := other()
		if deniedAs(t, res.StatusCode, body, 403, ReasonApproval) == id || len(a.requests()) != 0 {
			t.Errorf("another %s passes with the approval", name)
		}
	}
	if res, body := send(mergeURL, "x"); res.StatusCode != 200 {
		t.Fatalf("the approved request: %d %s", res.StatusCode, body)
	}
	res, body = send(mergeURL, "x")
	if deniedAs(t, res.StatusCode, body, 403, ReasonApproval) == id || len(a.requests()) != 1 {
		t.Errorf("the approval let %d requests pass", len(a.requests()))
	}
}

func TestOfEqualRequestsAnApprovalLetsOnePass(t *testing.T) {
	a := newAsks(t, time.Hour, hello)
	gone, leave := context.WithCancel(t.Context())
	var all sync.WaitGroup
	var mu sync.Mutex
	statuses := map[int]int{}
	for range 5 {
		all.Go(func() {
			req := must.Get(http.NewRequestWithContext(gone, "POST", mergeURL, strings.NewReader("x")))(t)
			res, err := a.client.Do(req)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				statuses[0]++
				return
			}
			_ = res.Body.Close()
			statuses[res.StatusCode]++
		})
	}
	a.eventually(func() bool { q := a.pending(1)[0]; return q.Waiting == 5 })
	a.approve(a.pending(1)[0].ID)
	a.eventually(func() bool {
		mu.Lock()
		defer mu.Unlock()
		return statuses[200] == 1
	})
	a.eventually(func() bool { return a.pending(1)[0].Waiting == 4 })
	leave()
	all.Wait()
	if statuses[200] != 1 || statuses[0] != 4 || len(a.requests()) != 1 {
		t.Errorf("the statuses are %v, and %d requests were sent", statuses, len(a.requests()))
	}
}

func TestADenialIsToldAndLasts(t *testing.T) {
	a := newAsks(t, time.Hour, hello)
	got := a.later(mergeURL, "x")
	id := a.pending(1)[0].ID
	must.Get(a.queue.Decide(t.Context(), id, approval.Decision{For: approval.Once, Surface: "cli"}))(t)
	status, body := got()
	if deniedAs(t, status, body, 403, ReasonApprovalDenied) != id {
		t.Error("the denial has another id")
	}
	res, body := a.do("POST", mergeURL, "x") // which would be held for an hour
	if deniedAs(t, res.StatusCode, body, 403, ReasonApprovalDenied) != id || len(a.requests()) != 0 {
		t.Error("an equal request is asked about again at once")
	}
	if _, err := a.queue.Decide(t.Context(), id, approval.Decision{Approve: true, For: approval.Once}); !errors.Is(err,
		approval.ErrDecided) {
		t.Errorf("a second decision: %v", err)
	}
}

func TestAnApprovalForTheSessionIsForTheOperation(t *testing.T) {
	a := newAsks(t, time.Hour, hello)
	got := a.later(mergeURL, "x")
	id := a.pending(1)[0].ID
	must.Get(a.queue.Decide(t.Context(), id, approval.Decision{Approve: true, For: approval.Session, Surface: "cli"}))(t)
	if status, body := got(); status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	if res, _ := a.do("POST", strings.Replace(mergeURL, "7", "8", 1), "y"); res.StatusCode != 200 {
		t.Errorf("another request of the operation: %d", res.StatusCode)
	}
	must.Do(t, a.queue.Revoke(t.Context(), id, "cli"))
	next := a.later(mergeURL, "x")
	a.pending(1)
	a.grant("api_key/x/other") // another credential is asked about too
	a.plane.stopDrain()
	status, body := next()
	deniedAs(t, status, body, 503, ReasonDraining)
	if len(a.requests()) != 2 {
		t.Errorf("%d requests were sent", len(a.requests()))
	}
}

// What is taken away while a request waits is gone, and the approval is not used up.
func TestAnApprovalGrantsNothingThatIsNotThere(t *testing.T) {
	for name, c := range map[string]struct {
		take func(a *asks)
		want Reason
	}{
		"the binding was revoked":          {func(a *asks) { a.grant("") }, ReasonUnbound},
		"it was bound to another identity": {func(a *asks) { a.grant("api_key/x/other") }, ReasonApproval},
		"it got another secret": {func(a *asks) {
			old := a.plane.grants.Load()
			g := &Grants{Index: a.index, Scrub: old.Scrub, Bound: map[spec.FQN]Bound{}}
			for fqn, b := range old.Bound {
				b.ID = "another"
				g.Bound[fqn] = b
			}
			a.plane.SetGrants(g)
		}, ReasonApproval},
		"the vault was locked": {func(a *asks) {
			a.plane.SetGrants(&Grants{Index: a.index, Scrub: a.plane.grants.Load().Scrub, Locked: true})
		}, ReasonVaultLocked},
		"the connector was removed": {func(a *asks) {
			a.plane.SetGrants(&Grants{Index: must.Get(spec.NewIndex(nil))(a.t), Scrub: a.plane.grants.Load().Scrub})
		}, ReasonApproval},
		"it could not be read": {func(a *asks) {
			old := a.plane.grants.Load()
			a.plane.SetGrants(&Grants{Index: a.index, Scrub: old.Scrub, Bound: old.Bound,
				Unreadable: map[spec.FQN]Reason{"github://acme/calls": ReasonConnectorUnreadable}})
		}, ReasonConnectorUnreadable},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAsks(t, time.Hour, hello)
			got := a.later(mergeURL, "x")
			id := a.pending(1)[0].ID
			c.take(a)
			a.approve(id)
			_, body := got()
			if _, why := reason(t, body); why != c.want || len(a.requests()) != 0 {
				t.Errorf("%s, and %d requests were sent", body, len(a.requests()))
			}
			if q, _ := a.queue.State(id); q.State != approval.Approved || q.Used {
				t.Errorf("the approval is %s, used %t", q.State, q.Used)
			}
		})
	}
}

func TestPendingRequestsAreBounded(t *testing.T) {
	a := newAsks(t, time.Millisecond, hello)
	for i := range approval.MaxOpen {
		res, body := a.do("POST", mergeURL, strings.Repeat("x", i))
		deniedAs(t, res.StatusCode, body, 403, ReasonApproval)
	}
	res, body := a.do("POST", mergeURL, "one more")
	deniedAs(t, res.StatusCode, body, 429, ReasonApprovals)
	if res.Header.Get("Retry-After") == "" {
		t.Error("there is no Retry-After")
	}
	if n := len(a.events()); n != approval.MaxOpen {
		t.Errorf("%d questions are in the log", n)
	}
	if res, body := a.do("GET", "https://api.good.example/v1/things/7", ""); res.StatusCode != 200 {
		t.Errorf("an operation without approval: %d %s", res.StatusCode, body)
	}
}

func TestAClientThatLeavesIsReleased(t *testing.T) {
	a := newAsks(t, time.Hour, hello)
	ctx, leave := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() {
		req := must.Get(http.NewRequestWithContext(ctx, "POST", mergeURL, strings.NewReader("x")))(t)
		if _, err := a.client.Do(req); err == nil {
			t.Error("the request got a response")
		}
	})
	id := a.pending(1)[0].ID
	leave()
	done.Wait()
	a.eventually(func() bool { q, _ := a.queue.State(id); return q.Waiting == 0 })
	a.approve(id) // by a person who does not know that
	if len(a.requests()) != 0 {
		t.Error("a request was sent after its client had left")
	}
	if res, _ := a.do("POST", mergeURL, "x"); res.StatusCode != 200 {
		t.Errorf("the same request, sent again: %d", res.StatusCode)
	}
}

func TestLongBodies(t *testing.T) {
	a := newAsks(t, time.Millisecond, hello)
	long := strings.Repeat("0123456789abcdef", maxDigested/16)
	res, body := a.do("POST", mergeURL, long)
	id := deniedAs(t, res.StatusCode, body, 403, ReasonApproval)
	if q, _ := a.queue.State(id); len(q.Body) != approval.MaxShown || q.BodyBytes != maxDigested || q.Streams {
		t.Errorf("%d bytes of %d are shown, streams %t", len(q.Body), q.BodyBytes, q.Streams)
	}
	a.approve(id)
	if res, body := a.do("POST", mergeURL, long[:maxDigested-1]+"!"); deniedAs(t, res.StatusCode, body, 403,
		ReasonApproval) == id {
		t.Error("another last byte passes")
	}
	if res, _ := a.do("POST", mergeURL, long); res.StatusCode != 200 || a.bodies[0] != long {
		t.Errorf("the body arrived with %d bytes", len(a.bodies[0]))
	}
	// One byte more, and it passes only while it is held.
	res, body = a.do("POST", mergeURL, long+"!")
	id = deniedAs(t, res.StatusCode, body, 403, ReasonApproval)
	if q, _ := a.queue.State(id); q.State != approval.Expired || !strings.Contains(body, "only while it is sent") {
		t.Errorf("the question of a body that is gone is %s", q.State)
	}
	a.plane.cfg.Hold = time.Hour
	got := a.later(mergeURL, long+"?")
	q := a.pending(1)[0]
	if !q.Streams || q.BodySHA256 != "" || q.BodyBytes != maxDigested+1 {
		t.Errorf("the question is %+v", q)
	}
	a.approve(q.ID)
	if status, _ := got(); status != 200 || a.bodies[1] != long+"?" {
		t.Errorf("%d, the body arrived with %d bytes", status, len(a.bodies[1]))
	}
}

func TestASandboxLearnsTheStateAndDecidesNothing(t *testing.T) {
	a := newAsks(t, time.Millisecond, hello)
	_, body := a.do("POST", mergeURL, "x")
	_, _ = reason(t, body)
	id := a.queue.List()[0].ID
	ask := func(method, path string, header ...string) (int, string) {
		req := must.Get(http.NewRequestWithContext(t.Context(), method, "http://"+a.addr+path,
			strings.NewReader(`{"approve":true,"for":"once"}`)))(t)
		req.Header.Set("Authorization", "Bearer "+testToken)
		for i := 0; i < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		res := must.Get(http.DefaultTransport.RoundTrip(req))(t)
		defer res.Body.Close()
		got := must.Get(io.ReadAll(res.Body))(t)
		return res.StatusCode, string(got)
	}
	if status, got := ask("GET", "/v1/approvals/"+id); status != 200 || !strings.Contains(got, `"state":"pending"`) ||
		strings.Contains(got, "cli") {
		t.Errorf("%d %s", status, got)
	}
	for _, c := range []struct {
		method, path string
		want         Reason
		header       []string
	}{
		{"POST", "/v1/approvals/" + id, ReasonOwnerOnly, nil},
		{"PUT", "/v1/approvals/" + id, ReasonOwnerOnly, nil},
		{"GET", "/v1/approvals/01ARZ3NDEKTSV4RRFFQ69G5FAV", ReasonNotFound, nil},
		{"GET", "/v1/approvals/../approvals/" + id, ReasonNotFound, nil},
		{"GET", "/v1/approvals", ReasonNotFound, nil},
		{"POST", "/v1/approvals/" + id, ReasonCrossSite, []string{"Origin", "http://evil.example"}},
		{"GET", "/v1/approvals/" + id, ReasonToken, []string{"Authorization", "Bearer other"}},
	} {
		if _, got := ask(c.method, c.path, c.header...); !strings.Contains(got, `"`+string(c.want)+`"`) {
			t.Errorf("%s %s: %s, want %s", c.method, c.path, got, c.want)
		}
	}
	if q, _ := a.queue.State(id); q.State != approval.Pending {
		t.Errorf("the question is %s", q.State)
	}
	a.approve(id)
	if _, got := ask("GET", "/v1/approvals/"+id); !strings.Contains(got, `"state":"approved"`) {
		t.Errorf("%s", got)
	}
}

// A request to which nothing is bound fails for that, before anyone is asked.
func TestNobodyIsAskedInVain(t *testing.T) {
	a := newAsks(t, time.Hour, hello)
	a.grant("")
	res, body := a.do("POST", mergeURL, "x")
	if deniedAs(t, res.StatusCode, body, 403, ReasonUnbound); len(a.queue.List()) != 0 {
		t.Error("there is a question")
	}
}

// A request may be asked about that its connector does not ask about.
func TestAUserAsksForMore(t *testing.T) {
	a := newAsks(t, time.Millisecond, hello)
	a.plane.cfg.AskFirst = func(a Asked) bool { return a.Target.Method == "GET" }
	res, body := a.do("GET", "https://api.good.example/v1/things/7", "")
	a.approve(deniedAs(t, res.StatusCode, body, 403, ReasonApproval))
	if res, _ := a.do("GET", "https://api.good.example/v1/things/7", ""); res.StatusCode != 200 {
		t.Errorf("approved: %d", res.StatusCode)
	}
}
