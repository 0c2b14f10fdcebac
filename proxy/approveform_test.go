package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/proxy/approval"
	"github.com/ALRubinger/aileron/spec"
)

// A person is asked about what is sent, and about nothing else: what a step takes away is not shown, and an approval is
// for what is left.
func TestWhatIsShownIsWhatIsSent(t *testing.T) {
	a := newAsks(t, time.Hour, hello)
	conn := a.tunnel("api.good.example")
	defer conn.Close()
	_, err := io.WriteString(conn, "POST /v1/things/7/merge?why=now&token=t&access_token=a HTTP/1.1\r\n"+
		"Host: api.good.example\r\nConnection: X-Declared\r\nX-Declared: d\r\nPrefer: p\r\nX-Dropped: x\r\n"+
		"Content-Length: 1\r\n\r\nx")
	must.Do(t, err)
	q := a.pending(1)[0]
	a.approve(q.ID)
	res := must.Get(http.ReadResponse(bufio.NewReader(conn), nil))(t)
	_ = res.Body.Close()
	r := a.requests()[0]
	if q.Query != "why=now" || r.URL.RawQuery != q.Query || len(q.Inputs) != 2 {
		t.Errorf("shown is the query %q with %v, and sent was %q", q.Query, q.Inputs, r.URL.RawQuery)
	}
	if !slices.Equal(q.Fields, []approval.Value{{Name: "Prefer", Value: "p"}}) || r.Header.Get("X-Declared") != "" ||
		r.Header.Get("Prefer") != "p" {
		t.Errorf("shown are the fields %v, and sent were %v", q.Fields, r.Header)
	}
	// The same fields without the one that takes one away are another request.
	got := a.later(mergeURL+"?why=now", "x", "Prefer", "p", "X-Declared", "d")
	if next := a.pending(1)[0]; len(next.Fields) != 2 {
		t.Errorf("the next question has the fields %v", next.Fields)
	}
	a.plane.stopDrain()
	got()
}

// An approval of a request is none of a connection on which anything may follow.
func TestAWebSocketIsAskedAboutAsOne(t *testing.T) {
	a := newAsks(t, time.Millisecond, hello)
	res, body := a.do("GET", "https://api.good.example/v1/live", "")
	id := deniedAs(t, res.StatusCode, body, 403, ReasonApproval)
	a.approve(id)
	got := a.raw("api.good.example", "GET /v1/live HTTP/1.1\r\nHost: api.good.example\r\nConnection: Upgrade, close\r\n"+
		"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: "+
		"AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: chat, token.x\r\n\r\n")
	var asked approval.Question
	for _, q := range a.queue.List() {
		if q.State == approval.Pending {
			asked = q
		}
	}
	want := []approval.Value{{Name: "Sec-Websocket-Protocol", Value: "chat"}}
	if !strings.Contains(got, "approval_required") || asked.ID == id || !asked.WebSocket ||
		!slices.Equal(asked.Fields, want) || len(a.requests()) != 0 {
		t.Errorf("%d requests were sent; asked is %+v\n%s", len(a.requests()), asked, got)
	}
}

// A request that a person could not read is not asked about.
func TestARequestTooLargeToShowIsDenied(t *testing.T) {
	a := newAsks(t, time.Hour, hello)
	many := strings.Repeat("a&", approval.MaxInputs)
	for name, c := range map[string]struct {
		query  string
		header []string
	}{
		"parameters": {query: many}, "a long query": {query: "q=" + strings.Repeat("x", approval.MaxTarget)},
		"long fields": {header: []string{"X-Declared", strings.Repeat("x", approval.MaxFields)}},
	} {
		res, body := a.do("POST", mergeURL+"?"+c.query, "", c.header...)
		if class, why := reason(t, body); res.StatusCode != 403 || class != "approval_required" || why != ReasonApproval ||
			!strings.Contains(body, "cannot be shown") || !strings.Contains(body, `"retriable":false`) {
			t.Errorf("%s: %d %s", name, res.StatusCode, body)
		}
	}
	if len(a.queue.List()) != 0 {
		t.Errorf("%d questions", len(a.queue.List()))
	}
}

// The time for which a person thinks is not the client's, whose body waits.
func TestABodyThatWaitsIsNotSlow(t *testing.T) {
	const span = 100 * time.Millisecond
	a := newAsks(t, time.Hour, hello, func(c *Config) { c.Limits.Wire.Progress = span })
	conn := a.tunnel("api.good.example")
	defer conn.Close()
	const size = maxDigested + 200000
	fmt.Fprintf(conn, "POST /v1/things/7/merge HTTP/1.1\r\nHost: api.good.example\r\nContent-Length: %d\r\n\r\n", size)
	go func() { _, _ = io.WriteString(conn, strings.Repeat("x", size)) }()
	q := a.pending(1)[0]
	<-time.After(3 * span)
	a.approve(q.ID)
	res := must.Get(http.ReadResponse(bufio.NewReader(conn), nil))(t)
	body := must.Get(io.ReadAll(res.Body))(t)
	if res.StatusCode != 200 || len(a.bodies) != 1 || len(a.bodies[0]) != size {
		t.Errorf("%d %s", res.StatusCode, body)
	}
}

// A body that does not come holds a request no longer than a person could, and not beyond the session's end.
func TestABodyThatDoesNotComeHoldsNothing(t *testing.T) {
	for want, end := range map[Reason]func(a *asks){
		ReasonSlow: func(*asks) {}, ReasonDraining: func(a *asks) { a.plane.stopDrain() },
	} {
		hold := time.Hour
		if want == ReasonSlow {
			hold = 50 * time.Millisecond
		}
		a := newAsks(t, hold, hello)
		conn := a.tunnel("api.good.example")
		fmt.Fprint(conn, "POST /v1/things/7/merge HTTP/1.1\r\nHost: api.good.example\r\nContent-Length: 9\r\n\r\nx")
		a.eventually(func() bool { return a.plane.budget.Used() >= heldCost })
		end(a)
		res := must.Get(http.ReadResponse(bufio.NewReader(conn), nil))(t)
		body := must.Get(io.ReadAll(res.Body))(t)
		if _, why := reason(t, string(body)); why != want || len(a.queue.List()) != 0 {
			t.Errorf("%s, want %s", body, want)
		}
		_ = conn.Close()
		a.eventually(func() bool { return a.plane.budget.Used() < heldCost })
	}
}

// What is decided for the session needs no body to be read first.
func TestWhatIsDecidedReadsNoBody(t *testing.T) {
	a := newAsks(t, time.Hour, hello)
	got := a.later(mergeURL, "x")
	id := a.pending(1)[0].ID
	must.Get(a.queue.Decide(t.Context(), id, approval.Decision{For: approval.Session, Surface: "cli"}))(t)
	got()
	conn := a.tunnel("api.good.example")
	defer conn.Close()
	fmt.Fprint(conn, "POST /v1/things/7/merge HTTP/1.1\r\nHost: api.good.example\r\nContent-Length: 9\r\n\r\n")
	res := must.Get(http.ReadResponse(bufio.NewReader(conn), nil))(t)
	body := must.Get(io.ReadAll(res.Body))(t)
	deniedAs(t, res.StatusCode, string(body), 403, ReasonApprovalDenied)
}

// An operation that requires an approval is denied where no one can give it, whatever was decided about the request.
func TestWithoutAQueueNothingPasses(t *testing.T) {
	a := newAsks(t, time.Hour, hello)
	a.plane.cfg.Approvals = nil
	op, _ := a.index.Operation("github://acme/calls", "calls", "merge")
	r := must.Get(http.NewRequestWithContext(t.Context(), "POST", mergeURL, nil))(t)
	x := a.plane.Begin(Arrival{Source: audit.SourceConnectTLS, Scheme: "https"}, r)
	x.Decided(Decision{Verdict: Allow, Match: spec.Match{Operation: op}})
	if _, d := a.plane.Do(x); d == nil || d.Reason != ReasonApproval || d.meaning().retriable {
		t.Errorf("it is denied with %+v", d)
	}
}

// Of two requests that differ in a field alone, the second is the same only if no service does another thing for it.
func TestWhichFieldsArePartOfTheRequest(t *testing.T) {
	for name, same := range map[string]bool{
		"Accept": true, "Accept-Language": true, "Cache-Control": true, "Date": true, "Idempotency-Key": true,
		"Priority": true, "Sec-Fetch-Site": true, "Sec-CH-UA": true, "Traceparent": true, "User-Agent": true,
		"Content-Type": false, "Content-Language": false, "If-Match": false, "Origin": false, "Prefer": false,
		"Range": false, "Referer": false, "Sec-Purpose": false, "Sec-Mode": false, "Sec-Websocket-Accept": false,
		"X-Http-Method-Override": false, "X-Anything": false, "Grpc-Encoding": false, "Authorization": false,
	} {
		h := http.Header{}
		h.Set(name, "v")
		if got := fieldsShown(h); (len(got) == 0) != same {
			t.Errorf("%s: shown and compared are %v", name, got)
		}
	}
}

// A field of the first letters of one that is left out is sent, and so it is shown: without a credential all are sent.
func TestAFieldThatIsSentIsShown(t *testing.T) {
	a := newAsks(t, time.Millisecond, hello)
	send := func(mode string) (*http.Response, string) {
		return a.do("POST", "https://plain.good.example/v1/open", "x", "Sec-Mode", mode, "Accept", mode)
	}
	res, body := send("read")
	id := deniedAs(t, res.StatusCode, body, 403, ReasonApproval)
	a.approve(id)
	res, body = send("delete")
	if other := deniedAs(t, res.StatusCode, body, 403, ReasonApproval); other == id {
		t.Error("a request with another field is the one that was approved")
	}
	res = must.Get(a.client.Do(must.Get(http.NewRequestWithContext(t.Context(), "POST",
		"https://plain.good.example/v1/open", strings.NewReader("x")))(t)))(t)
	_ = res.Body.Close()
	if res.StatusCode != 403 {
		t.Errorf("without the field: %d", res.StatusCode)
	}
	if n := len(a.requests()); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}

// A client whose body waits unread is noticed when it leaves, although no read meets the end of what it sent.
func TestAClientThatLeavesBehindAnUnreadBodyIsNoticed(t *testing.T) {
	a := newAsks(t, time.Hour, hello)
	conn := a.tunnel("api.good.example")
	_, err := io.WriteString(conn, "POST /v1/things/7/merge HTTP/1.1\r\nHost: api.good.example\r\n"+
		fmt.Sprintf("Content-Length: %d\r\n\r\n", 64<<20)+strings.Repeat("b", maxDigested+1))
	must.Do(t, err)
	q := a.pending(1)[0]
	if !q.Streams {
		t.Errorf("the question is %+v", q)
	}
	_, err = io.WriteString(conn, strings.Repeat("b", 64<<10)) // which is read by no one
	must.Do(t, err)
	must.Do(t, conn.NetConn().Close())
	a.eventually(func() bool { return a.last().Reason == string(ReasonClientGone) })
	a.eventually(func() bool { state, _ := a.queue.State(q.ID); return state.State == approval.Expired })
}
