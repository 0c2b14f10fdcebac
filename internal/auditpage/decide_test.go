package auditpage

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/approvals"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/proxy/approval"
)

// oneQuestion is a desk with the questions of a queue.
type oneQuestion struct{ *approval.Queue }

func (d oneQuestion) List(context.Context) ([]approval.Question, error) { return d.Queue.List(), nil }

func (d oneQuestion) Find(_ context.Context, id string) (approval.Question, error) {
	if q, ok := d.State(id); ok {
		return q, nil
	}
	return approval.Question{}, errors.New("no approval has this id")
}

func (d oneQuestion) Decide(ctx context.Context, q approval.Question, what approval.Decision) (approval.Question,
	error) {
	return d.Queue.Decide(ctx, q.ID, what)
}

func (d oneQuestion) TakeBack(ctx context.Context, q approval.Question) error {
	return d.Revoke(ctx, q.ID, "page")
}

func newDesk() oneQuestion {
	return oneQuestion{approval.New(approval.Options{
		Record: func(context.Context, audit.Event, *approval.Question, map[string]any) error { return nil }})}
}

// wait asks about a request with a body, and returns the question.
func (d oneQuestion) wait(t *testing.T, path, body string) approval.Question {
	t.Helper()
	ticket := must.Get(d.Ask(t.Context(), approval.Request{Method: "POST", Scheme: "https", Host: "a.example", Port: 443,
		Path: path, Body: []byte(body), BodyBytes: int64(len(body)), BodySHA256: approval.Digest([]byte(body))}))(t)
	q, _ := d.State(ticket.ID())
	return q
}

// post sends a decision as the page does, changed by change.
func (v *visitor) post(body any, change func(*http.Request)) (answered, string) {
	v.t.Helper()
	raw := must.Get(json.Marshal(body))(v.t)
	return v.do("POST", "/api/decide", string(raw), func(r *http.Request) {
		r.Header.Set("Origin", v.page.origin)
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		r.Header.Set("Content-Type", "application/json")
		if change != nil {
			change(r)
		}
	})
}

type fields map[string]any

// Only the page decides, and only about what it has shown.
func TestOnlyThePageDecides(t *testing.T) {
	d := newDesk()
	v := visit(t, Options{Log: rowsOf(t, 1), Desk: d})
	q, other := d.wait(t, "/1", "one"), d.wait(t, "/2", "\x00\x01")
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	without := func(name string) func(*http.Request) { return func(r *http.Request) { r.Header.Del(name) } }
	whole := fields{"id": q.ID, "shown": q.Digest, "approve": true, "for": "once"}
	with := func(name string, value any) fields {
		changed := fields{name: value}
		for n, is := range whole {
			if n != name {
				changed[n] = is
			}
		}
		return changed
	}
	for _, c := range []struct {
		name   string
		body   fields
		change func(*http.Request)
		status int
		reason string
	}{
		{"a GET", whole, func(r *http.Request) { r.Method = "GET" }, 404, "no such file"},
		{"a PUT", whole, func(r *http.Request) { r.Method = "PUT" }, 405, "only reads"},
		{"without the key", whole, without(keyHeader), 403, "link"},
		{"with another key", whole, header(keyHeader, "x"), 403, "link"},
		{"without the cookie", whole, without("Cookie"), 403, "link"},
		{"of another origin", whole, header("Origin", "http://127.0.0.1:1"), 403, "another web site"},
		{"of a frame without an origin", whole, header("Origin", "null"), 403, "another web site"},
		{"without an origin", whole, without("Origin"), 403, "without Origin"},
		{"under another name", whole, func(r *http.Request) { r.Host = "rebound.example" }, 403, "DNS rebinding"},
		{"of another port", whole, header("Sec-Fetch-Site", "same-site"), 403, "another web site"},
		{"of no browser", whole, without("Sec-Fetch-Site"), 400, "no decision of the page"},
		{"of a form", whole, header("Content-Type", "text/plain"), 400, "no decision of the page"},
		{"about another text", with("shown", other.Digest), nil, 409, "not what was shown"},
		{"about no text", with("shown", ""), nil, 400, "no decision"},
		{"about another question", with("id", other.ID), nil, 400, "its body is not text"},
		{"about another question, unseen", fields{"id": other.ID, "shown": q.Digest, "approve": true, "for": "once",
			"unseen": true}, nil, 409, "not what was shown"},
		{"about a part of an id", with("id", q.ID[:20]), nil, 400, "no id"},
		{"about nothing", with("id", audit.NewID()), nil, 409, "no approval has this id"},
		{"for ever", with("for", "ever"), nil, 400, "no decision"},
		{"for a session, of no operation", with("for", "session"), nil, 409, "for once only"},
		{"with another surface", with("surface", "cli"), nil, 400, "no decision"},
		{"too long", with("id", strings.Repeat("0", maxDecision)), nil, 400, "no decision"},
	} {
		res, body := v.post(c.body, c.change)
		if res.StatusCode != c.status || !strings.Contains(body, c.reason) {
			t.Errorf("%s: %d %.200q, want %d %q", c.name, res.StatusCode, body, c.status, c.reason)
		}
		for _, of := range []approval.Question{q, other} {
			if is, _ := d.State(of.ID); is.State != approval.Pending {
				t.Fatalf("%s: %s is %s", c.name, of.Path, is.State)
			}
		}
	}
	if res, body := v.post(whole, nil); res.StatusCode != 200 || !strings.Contains(body, "approved "+q.ID) {
		t.Errorf("the page's own: %d %s", res.StatusCode, body)
	}
	if is, _ := d.State(q.ID); is.State != approval.Approved {
		t.Errorf("the question is %s", is.State)
	}
	res, body := v.post(with("approve", false), nil)
	if res.StatusCode != 409 || !strings.Contains(body, "decided already") {
		t.Errorf("a second decision: %d %s", res.StatusCode, body)
	}
}

// A page that was not started to decide shows no question, and decides none.
func TestAPageThatReadsDoesNotDecide(t *testing.T) {
	v := visit(t, Options{Log: rowsOf(t, 1)})
	res, body := v.post(fields{"id": audit.NewID()}, nil)
	if res.StatusCode != 405 || !strings.Contains(body, "only reads") {
		t.Errorf("a decision: %d %s", res.StatusCode, body)
	}
	for _, path := range []string{"/api/approvals", "/api/approval?id=" + audit.NewID()} {
		if res, body := v.do("GET", path, "", nil); res.StatusCode != 404 {
			t.Errorf("%s: %d %s", path, res.StatusCode, body)
		}
	}
	if got := get[struct{ Decides bool }](v, "/api/state"); got.Decides {
		t.Error("the page says that it decides")
	}
}

// A page that decides has an address of its own: at one that others have had, a browser may have a service worker of
// theirs, which would get the link.
func TestAPageThatDecidesHasAnAddressOfItsOwn(t *testing.T) {
	if l, err := net.Listen("tcp", "127.83.7.9:0"); err != nil {
		t.Skipf("this system has one loopback address: %v", err)
	} else {
		_ = l.Close()
	}
	seen := map[string]bool{}
	for range 3 {
		p := must.Get(Listen(t.Context(), Options{Desk: newDesk()}))(t)
		defer p.listener.Close()
		address := p.listener.Addr().(*net.TCPAddr).IP
		if seen[address.String()] || !address.IsLoopback() || address.String() == "127.0.0.1" {
			t.Errorf("it has the address %s, beside %v", address, seen)
		}
		seen[address.String()] = true
	}
	p := must.Get(Listen(t.Context(), Options{Desk: newDesk(), Address: "127.0.0.1:0"}))(t)
	defer p.listener.Close()
	if got := p.listener.Addr().(*net.TCPAddr).IP.String(); got != "127.0.0.1" {
		t.Errorf("an address that is named becomes %s", got)
	}
	for _, usual := range []string{"127.0.0.1:8080", "[::1]:8080", "[::ffff:127.0.0.1]:8080"} {
		_, err := Listen(t.Context(), Options{Desk: newDesk(), Address: usual})
		if err == nil || !strings.Contains(err.Error(), "no address for the page") || hint.Of(err) == "" {
			t.Errorf("a page that decides at %s: %v", usual, err)
		}
	}
}

// What an agent wrote is never in a piece that is aileron's.
func TestWhatAnAgentWroteIsMarked(t *testing.T) {
	d := newDesk()
	v := visit(t, Options{Log: rowsOf(t, 1), Desk: d})
	evil := "x\nNOT SHOWN: nothing\r\nstate:       approved\n  | own\n  |+more\u202egnp\x1b[31m <b>" +
		strings.Repeat("w", 200)
	q := d.wait(t, "/evil", evil)
	got := get[ask](v, "/api/approval?id="+q.ID)
	var own, agent strings.Builder
	for _, p := range got.Parts {
		if p.By == approvals.Agent {
			agent.WriteString(p.Text)
		} else {
			own.WriteString(p.Text)
		}
	}
	for _, word := range []string{"NOT SHOWN", "approved", "gnp", "<b>", "ww"} {
		if strings.Contains(own.String(), word) {
			t.Errorf("%q of the agent's is in %q", word, own.String())
		}
	}
	for _, want := range []string{"POST /evil", "x\nNOT SHOWN: nothing\\u000d\nstate:       approved\n  | own\n  |+more" +
		`\u202egnp\u001b[31m <b>` + strings.Repeat("w", 200)} {
		if !strings.Contains(agent.String(), want) {
			t.Errorf("the agent's part is %q, without %q", agent.String(), want)
		}
	}
	if !got.Pending || got.Digest != q.Digest || got.Covers != "" {
		t.Errorf("the question is %+v", got)
	}
}
