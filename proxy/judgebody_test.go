package proxy

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/proxy/budget"
	"github.com/ALRubinger/aileron/proxy/judge"
	"github.com/ALRubinger/aileron/spec"
)

const judgedManifest = `
[connector]
name = "github://acme/judged"
version = "1.0.0"
[capabilities.network]
hosts = ["api.good.example"]
[capabilities.credential]
kind = "bearer"
[provides]
intents = ["test"]
`

const judgedSpec = `{"schema_version":"aileron.connector.v1",
"connector":{"fqn":"github://acme/judged","version":"1.0.0"},
"tools":[{"name":"judged","operations":[
 {"name":"mcp","method":"POST","path":"/mcp","hosts":["api.good.example"],"credential":"bearer",
   "mcp":{"tools":["search_*"]}},
 {"name":"mcp.writes","method":"POST","path":"/mcp","hosts":["api.good.example"],"credential":"bearer",
   "mcp":{"tools":["create_issue"]}},
 {"name":"mcp.asked","method":"POST","path":"/mcp","hosts":["api.good.example"],"credential":"bearer",
   "mcp":{"tools":["delete_issue"]},"approval":"required"},
 {"name":"mcp.stream","method":"GET","path":"/mcp","hosts":["api.good.example"],"credential":"bearer"},
 {"name":"one","method":"POST","path":"/files/a/b","hosts":["api.good.example"],"credential":"bearer",
   "mcp":{"tools":["search_*"]}}]}]}`

// filesSpec is of another connector of the host: beside the operation one, none of its own may have an escaped slash.
const filesSpec = `{"schema_version":"aileron.connector.v1",
"connector":{"fqn":"github://acme/files","version":"1.0.0"},
"tools":[{"name":"files","operations":[
 {"name":"files","method":"POST","path":"/files/{name}","hosts":["api.good.example"],"escaped_slash":true}]}]}`

// newJudged is a world with the operations of judgedSpec, all of them bound.
func newJudged(t testing.TB, answer http.HandlerFunc) *world {
	t.Helper()
	return newJudgedWith(t, func(*Config) {}, answer)
}

func newJudgedWith(t testing.TB, set func(*Config), answer http.HandlerFunc) *world {
	t.Helper()
	w := newWorldWith(t, false, set, answer)
	c := must.Get(spec.Load([]byte(judgedManifest), []byte(judgedSpec)))(t)
	files := must.Get(spec.Parse([]byte(filesSpec)))(t)
	index := must.Get(spec.NewIndex([]*spec.Connector{c, files}))(t)
	old := w.plane.grants.Load()
	w.plane.SetGrants(&Grants{Index: index, Scrub: old.Scrub, Bound: map[spec.FQN]Bound{
		"github://acme/judged": old.Bound["github://acme/tracker"]}})
	return w
}

const jsonField = "Content-Type: application/json"

// toolCall is a call of a tool of MCP.
func toolCall(tool string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tool + `","arguments":{"q":"€"}}}`
}

func TestABodyDecidesWhichOperationARequestIs(t *testing.T) {
	w := newJudged(t, hello)
	for _, c := range []struct {
		body, operation string
		status          int
		reason          Reason
		says            string
	}{
		{toolCall("search_code"), "mcp", 200, "", ""},
		{` {"id":"x","method":"initialize","jsonrpc":"2.0"}` + "\n", "mcp", 200, "", ""},
		{toolCall("create_issue"), "mcp.writes", 200, "", ""},
		{toolCall("delete_issue"), "mcp.asked", 403, ReasonApproval, "mcp.asked asks for an approval"},
		{toolCall("delete_repo"), "mcp", 403, ReasonContent,
			`the tool \"delete_repo\" is not allowed by judged mcp; allowed are tool:search_*, tool:create_issue`},
		{`{"jsonrpc":"2.0","id":1,"method":"resources/read"}`, "mcp", 403, ReasonContent, `\"resources/read\" of MCP`},
		{"[" + toolCall("search_code") + "]", "mcp", 403, ReasonUndecidable, "it is a batch: send each message by itself"},
		{"", "mcp", 403, ReasonUndecidable, "it is not one value of JSON"},
		{toolCall("search_" + strings.Repeat("x", judge.MaxBody)), "mcp", 413, ReasonTooLarge, "more than 262144 bytes"},
	} {
		before := len(w.requests())
		res, text := w.do(http.MethodPost, "https://api.good.example/mcp", c.body, "Content-Type", "application/json")
		row := w.last()
		if res.StatusCode != c.status || row.Operation != c.operation || row.Reason != string(c.reason) ||
			!strings.Contains(text, c.says) {
			t.Errorf("%.80s: %d %s, %s %s\n%s", c.body, res.StatusCode, row.Operation, row.Event, row.Reason, text)
		}
		if c.reason != "" {
			if len(w.requests()) != before || row.Event != audit.EventProxyRejected {
				t.Errorf("%.80s: it was sent, or its row is %s", c.body, row.Event)
			}
			continue
		}
		w.mu.Lock()
		sent, got := w.bodies[len(w.bodies)-1], w.seen[len(w.seen)-1]
		w.mu.Unlock()
		if sent != c.body || got.ContentLength != int64(len(c.body)) ||
			got.Header.Get("Authorization") != "Bearer "+testSecret || row.RequestBytes != int64(len(c.body)) {
			t.Errorf("%s arrived as %s, of length %d, with %q; the row has %d bytes", c.body, sent, got.ContentLength,
				got.Header.Get("Authorization"), row.RequestBytes)
		}
	}
	if used := w.plane.Budget().Used(); used > 1<<20 {
		t.Errorf("%d bytes are held after all", used)
	}
}

// Both rows of a request have its method and its tool, and so has that of a denial.
func TestRowsNameTheToolThatWasJudged(t *testing.T) {
	w := newJudged(t, hello)
	for _, tool := range []string{"search_code", "delete_repo"} {
		w.do(http.MethodPost, "https://api.good.example/mcp", toolCall(tool), "Content-Type", "application/json")
	}
	var named []string
	for _, r := range w.rows() {
		if tool, _ := r.Fields["mcp_tool"].(string); r.Fields["mcp_method"] == "tools/call" {
			named = append(named, string(r.Event)+" "+tool)
		}
	}
	want := string(audit.EventProxyStarted) + " search_code," + string(audit.EventProxyProxied) + " search_code," +
		string(audit.EventProxyRejected) + " delete_repo"
	if got := strings.Join(named, ","); got != want {
		t.Errorf("rows %s, want %s", got, want)
	}
}

// What a server may make something else of than the judge is not sent, in whatever framing it comes.
func TestWhatCannotBeJudgedIsNotSent(t *testing.T) {
	w := newJudged(t, hello)
	good := toolCall("search_code")
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	must.Get(io.WriteString(z, good))(t)
	must.Do(t, z.Close())
	head := func(fields ...string) string {
		return "POST /mcp HTTP/1.1\r\nHost: api.good.example\r\nConnection: close\r\n" +
			strings.Join(fields, "\r\n") + "\r\n\r\n"
	}
	length := func(body string) string { return "Content-Length: " + strconv.Itoa(len(body)) }
	for name, c := range map[string]struct{ request, reason string }{
		"gzip": {head(jsonField, "Content-Encoding: gzip", length(packed.String())) + packed.String(),
			"body_undecidable"},
		"gzip, silent": {head(jsonField, length(packed.String())) + packed.String(), "body_undecidable"},
		"a form":       {head("Content-Type: application/x-www-form-urlencoded", length(good)) + good, "body_undecidable"},
		"no type":      {head(length(good)) + good, "body_undecidable"},
		"two types":    {head(jsonField, jsonField, length(good)) + good, "body_undecidable"},
		"two lengths":  {head(jsonField, length(good), "Content-Length: 1") + good, "malformed_request"},
		"a query": {strings.Replace(head(jsonField, length(good)), "/mcp", "/mcp?method=x", 1) + good,
			"query_not_declared"},
		"a header of another tool": {head(jsonField, "Mcp-Name: delete_repo", length(good)) + good, "body_undecidable"},
		"chunks of a batch": {head(jsonField, "Transfer-Encoding: chunked") +
			"1\r\n[\r\n2\r\n[]\r\n1\r\n]\r\n0\r\n\r\n", "body_undecidable"},
		"too many chunks": {head(jsonField, "Transfer-Encoding: chunked") +
			strings.Repeat("4000\r\n"+strings.Repeat(" ", 0x4000)+"\r\n", 17) + "0\r\n\r\n", "body_too_large"},
		"a slash in disguise": {strings.Replace(head(jsonField, length(good)), "/mcp", "/files/a%2Fb", 1) + good,
			"malformed_request"},
	} {
		got := w.raw("api.good.example", c.request)
		if !strings.Contains(got, `"reason":"`+c.reason+`"`) {
			t.Errorf("%s: want %s, got\n%.600s", name, c.reason, got)
		}
	}
	if n := len(w.requests()); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
	// In chunks it is decided as otherwise, and sent with its length.
	w.raw("api.good.example", head(jsonField, "Transfer-Encoding: chunked")+
		"2\r\n"+good[:2]+"\r\n"+strconv.FormatInt(int64(len(good)-2), 16)+"\r\n"+good[2:]+"\r\n0\r\n\r\n")
	if n := len(w.requests()); n != 1 || w.bodies[0] != good || w.seen[0].ContentLength != int64(len(good)) {
		t.Errorf("%d requests, with %q", n, w.bodies)
	}
}

// begin sends the head of a request and so many bytes of its body, in a chunk that does not end. The response's status
// goes to came.
func (w *world) begin(bytes int, came chan<- int) {
	conn := w.tunnel("api.good.example")
	w.t.Cleanup(func() { _ = conn.Close() })
	go func() {
		_, _ = io.WriteString(conn, "POST /mcp HTTP/1.1\r\nHost: api.good.example\r\n"+jsonField+
			"\r\nTransfer-Encoding: chunked\r\n\r\n40000\r\n"+strings.Repeat(" ", bytes))
		if res, err := http.ReadResponse(bufio.NewReader(conn), nil); err == nil {
			came <- res.StatusCode
			_ = res.Body.Close()
		}
	}()
}

// Bodies that do not end are bytes of those who send them, and make room for others.
func TestABodyThatIsJudgedIsHeldByItsOwnConnection(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	w := newJudgedWith(t, func(c *Config) { c.Limits.Memory = 4 << 20 }, func(rw http.ResponseWriter, r *http.Request) {
		entered <- struct{}{}
		<-leave
		hello(rw, r)
	})
	innocent := make(chan int, 1)
	go func() {
		res, _ := w.do(http.MethodGet, "https://api.good.example/mcp", "")
		innocent <- res.StatusCode
	}()
	<-entered
	const bodies = 24 // of 512 KiB each, of which eight have room
	came := make(chan int, bodies)
	for range bodies {
		w.begin(160<<10, came)
	}
	for range bodies - 16 {
		if status := <-came; status != http.StatusTooManyRequests {
			t.Errorf("a body that does not end got %d", status)
		}
	}
	close(leave)
	if status := <-innocent; status != http.StatusOK {
		t.Errorf("a request that waited for its upstream got %d", status)
	}
}

// stuck is a body that does not end: after so many bytes it waits until its context ends.
type stuck struct {
	ctx   context.Context
	left  int
	waits chan<- bool
}

func (s *stuck) Read(p []byte) (int, error) {
	if s.left == 0 {
		s.waits <- true
		<-s.ctx.Done()
		return 0, io.ErrUnexpectedEOF
	}
	n := min(len(p), s.left)
	s.left -= n
	return n, nil
}

// The first of many bodies that do not end make room for the next, and no exchange that has as little as a new one.
func TestBodiesThatDoNotEndMakeRoomForEachOther(t *testing.T) {
	const exchange = 28 << 10
	b := budget.New(0)
	b.Conn().Hold(func() { t.Error("an exchange that holds little made room") }).Stall(exchange)
	var group sync.WaitGroup
	defer group.Wait()
	all, stop := context.WithCancel(t.Context())
	defer stop()
	waits := make(chan bool, 1)
	for range 100 {
		ctx, cancel := context.WithCancel(all)
		own := b.Conn().Hold(cancel)
		own.Stall(exchange)
		hold := own.Beside(cancel)
		group.Go(func() {
			if _, err := readUpTo(ctx, &stuck{ctx, 160 << 10, waits}, hold, 2*judge.MaxBody, judge.MaxBody); err == nil {
				t.Error("it ended")
			}
			hold.Release()
			own.Release()
		})
		<-waits
	}
}

// A body in chunks that pauses has no longer than one with a length.
func TestABodyThatIsJudgedComesInTime(t *testing.T) {
	w := newJudged(t, hello)
	w.plane.judgeWait = time.Millisecond
	came := make(chan int, 1)
	w.begin(10, came)
	if status := <-came; status != http.StatusRequestTimeout || w.last().Reason != string(ReasonSlow) {
		t.Errorf("status %d, %s", status, w.last().Reason)
	}
}

// A client of MCP has fields of its own, which a credentialed operation accepts where it is one of MCP.
func TestAnOperationOfMCPAcceptsItsFields(t *testing.T) {
	w := newJudged(t, hello)
	w.do(http.MethodPost, "https://api.good.example/mcp", toolCall("search_code"), "Content-Type", "application/json",
		"Mcp-Session-Id", "s1", "Mcp-Protocol-Version", "2025-11-25", "Mcp-Name", "search_code", "X-Other", "x")
	got := w.requests()[0].Header
	if got.Get("Mcp-Session-Id") != "s1" || got.Get("Mcp-Protocol-Version") != "2025-11-25" ||
		got.Get("Mcp-Name") != "search_code" || got.Get("X-Other") != "" {
		t.Errorf("fields %v", got)
	}
}

// A call by name and a carried request must be the operation that they name: an operation of MCP has no arguments, and
// the body of a carried request is judged.
func TestTheAPIJudgesBodiesToo(t *testing.T) {
	w := newJudged(t, hello)
	carry := func(operation, tool string) string {
		c := carried{operation: operation, method: "POST", url: "https://api.good.example/mcp",
			fields: []string{jsonField}, body: toolCall(tool)}
		_, text := w.post(requestsPath, must.Get(c.encode("github://acme/judged", "judged"))(t))
		return text
	}
	for _, c := range []struct{ operation, tool, want string }{
		{"mcp", "search_code", `"upstream_status":200`},
		{"mcp.writes", "create_issue", `"upstream_status":200`},
		{"mcp.writes", "search_code", `"reason":"content_not_allowed"`},
		{"mcp", "create_issue", `"reason":"content_not_allowed"`},
		{"mcp", "delete_repo", `"reason":"content_not_allowed"`},
		{"mcp.asked", "delete_issue", `"reason":"approval_required"`},
	} {
		if got := carry(c.operation, c.tool); !strings.Contains(got, c.want) {
			t.Errorf("%s %s: %s, want %s", c.operation, c.tool, got, c.want)
		}
	}
	status, got := w.post(operationsPath, strings.Replace(invocation("mcp", "{}"), "calls", "judged", 2))
	if status != http.StatusBadRequest || !strings.Contains(got, "use a client of MCP with its URL") {
		t.Errorf("by name: %d %s", status, got)
	}
}

// A host that is allowed as it is, too, takes no path there that its server may read as the one that is judged.
func TestAnyPathIsNoWayAroundAJudge(t *testing.T) {
	judged := must.Get(spec.Load([]byte(judgedManifest), []byte(judgedSpec)))(t)
	open := must.Get(spec.Parse([]byte(`{"schema_version":"aileron.connector.v1",
		"connector":{"fqn":"github://acme/open","version":"1.0.0"},
		"tools":[{"name":"open","operations":[{"name":"all","hosts":["api.good.example"]}]}]}`)))(t)
	index := must.Get(spec.NewIndex([]*spec.Connector{judged, open}))(t)
	for target, want := range map[string]Reason{"/mcp/x": "", "/./mcp": ReasonMalformed, "//mcp": ReasonMalformed,
		"/x/../mcp": ReasonMalformed, "/%6dcp": ReasonMalformed} {
		d := Decide(Question{Index: index, Authority: Authority{Host: "api.good.example", Port: 443}, Scheme: "https",
			Method: "POST", Target: target, Host: "api.good.example"})
		if d.Reason != want {
			t.Errorf("%s: %q, want %q", target, d.Reason, want)
		}
	}
}

// A connector that could not be read again allows no body.
func TestABodyIsNotOneOfAConnectorThatIsUnreadable(t *testing.T) {
	w := newJudged(t, hello)
	g := w.plane.grants.Load()
	w.plane.SetGrants(&Grants{Index: g.Index, Scrub: g.Scrub, Bound: g.Bound,
		Unreadable: map[spec.FQN]Reason{"github://acme/judged": ReasonConnectorUnreadable}})
	res, _ := w.do(http.MethodPost, "https://api.good.example/mcp", toolCall("create_issue"), "Content-Type",
		"application/json")
	if res.StatusCode != http.StatusServiceUnavailable || len(w.requests()) != 0 {
		t.Errorf("status %d, %d requests", res.StatusCode, len(w.requests()))
	}
}

// What the body makes of a request is what a person is asked about, and only where that asks.
func TestAnApprovalIsForWhatTheBodyAsksFor(t *testing.T) {
	a := newAsks(t, time.Hour, hello)
	c := must.Get(spec.Load([]byte(judgedManifest), []byte(judgedSpec)))(t)
	old := a.plane.grants.Load()
	a.plane.SetGrants(&Grants{Index: must.Get(spec.NewIndex([]*spec.Connector{c}))(t), Scrub: old.Scrub,
		Bound: map[spec.FQN]Bound{"github://acme/judged": old.Bound["github://acme/calls"]}})
	const at = "https://api.good.example/mcp"
	res, _ := a.do(http.MethodPost, at, toolCall("search_code"), "Content-Type", "application/json")
	if res.StatusCode != http.StatusOK {
		t.Errorf("a search: %d", res.StatusCode)
	}
	got := a.later(at, toolCall("delete_issue"), "Content-Type", "application/json")
	q := a.pending(1)[0]
	if n := len(a.requests()); n != 1 || q.Operation != "mcp.asked" || string(q.Body) != toolCall("delete_issue") {
		t.Fatalf("%d requests, and the question is %+v", n, q)
	}
	a.approve(q.ID)
	if status, body := got(); status != 200 || a.bodies[1] != toolCall("delete_issue") {
		t.Errorf("after the approval: %d %s, with %q", status, body, a.bodies)
	}
	if row := a.last(); row.Fields["mcp_tool"] != "delete_issue" || row.Fields["approval_id"] != q.ID {
		t.Errorf("the outcome is %+v", row)
	}
}

// A client of MCP numbers its messages: the same call again is the one that was approved, and no other is.
func TestACallThatIsSentAgainIsTheOneThatWasApproved(t *testing.T) {
	a := newAsks(t, time.Millisecond, hello)
	c := must.Get(spec.Load([]byte(judgedManifest), []byte(judgedSpec)))(t)
	old := a.plane.grants.Load()
	a.plane.SetGrants(&Grants{Index: must.Get(spec.NewIndex([]*spec.Connector{c}))(t), Scrub: old.Scrub,
		Bound: map[spec.FQN]Bound{"github://acme/judged": old.Bound["github://acme/calls"]}})
	call := func(id, token, arguments string) (*http.Response, string) {
		return a.do(http.MethodPost, "https://api.good.example/mcp", `{"jsonrpc":"2.0","id":`+id+
			`,"method":"tools/call","params":{"name":"delete_issue","_meta":{"progressToken":`+token+`},"arguments":`+
			arguments+`}}`, "Content-Type", "application/json")
	}
	res, body := call("9", `"a"`, `{"n":1}`)
	id := deniedAs(t, res.StatusCode, body, 403, ReasonApproval)
	if q := a.queue.List()[0]; q.ID != id || q.Asks != `the tool "delete_issue"` {
		t.Errorf("the question is %+v", q)
	}
	a.approve(id)
	for name, other := range map[string][3]string{
		"an argument":        {"10", "7", `{"n":2}`},
		"an id elsewhere":    {"10", "7", `{"n":1,"id":1}`},
		"a token of a shape": {"10", `{"x":1}`, `{"n":1}`},
	} {
		res, body := call(other[0], other[1], other[2])
		if deniedAs(t, res.StatusCode, body, 403, ReasonApproval) == id || len(a.requests()) != 0 {
			t.Errorf("%s: another call passes with the approval", name)
		}
	}
	if res, body := call("10", "7", `{"n":1}`); res.StatusCode != http.StatusOK ||
		len(a.bodies) != 1 || !strings.Contains(a.bodies[0], `"id":10,`) {
		t.Errorf("the call that was approved: %d %s, with %q", res.StatusCode, body, a.bodies)
	}
}

// An operation that judges content refuses what it refuses for every one behind it: a name in the query that only a
// later one declares is no way around its approval.
func TestAQueryIsNoWayAroundAJudge(t *testing.T) {
	w := newJudged(t, hello)
	in := func(name string) string { return `{"name":"` + name + `","in":"query"}` }
	const of = `,"method":"POST","path":"/mcp","hosts":["api.good.example"],"credential":"bearer","mcp":`
	doc := `{"schema_version":"aileron.connector.v1","connector":{"fqn":"github://acme/judged","version":"1.0.0"},
"tools":[{"name":"judged","operations":[
 {"name":"read"` + of + `{"tools":["get"]},"inputs":[` + in("profile") + `,` + in("all") + `]},
 {"name":"delete"` + of + `{"tools":["delete"]},"approval":"required","inputs":[` + in("profile") + `]},
 {"name":"rest"` + of + `{"tools":["*"]},"inputs":[` + in("profile") + `,` + in("all") + `,` + in("x") + `]}]}]}`
	grants := *w.plane.grants.Load()
	c := must.Get(spec.Load([]byte(judgedManifest), []byte(doc)))(t)
	grants.Index = must.Get(spec.NewIndex([]*spec.Connector{c}))(t)
	w.plane.SetGrants(&grants)
	for query, want := range map[string]map[string]Reason{
		"?profile=1": {"get": "", "delete": ReasonApproval, "create": ""},
		"?all=1":     {"get": "", "delete": ReasonContent, "create": ReasonContent},
		"?x=1":       {"get": ReasonQuery, "delete": ReasonQuery, "create": ReasonQuery},
	} {
		for tool, reason := range want {
			res, text := w.do(http.MethodPost, "https://api.good.example/mcp"+query, toolCall(tool), "Content-Type",
				"application/json")
			if row := w.last(); row.Reason != string(reason) || (res.StatusCode == http.StatusOK) != (reason == "") {
				t.Errorf("%s %s: %d %s %s, want %q\n%s", query, tool, res.StatusCode, row.Operation, row.Reason, reason, text)
			}
		}
	}
}
