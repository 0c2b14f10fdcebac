package page

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/auditpage"
	"github.com/ALRubinger/aileron/proxy/approval"
)

// desk is the questions of one session, with the queue that sessions have.
type desk struct {
	*approval.Queue
	mu       sync.Mutex
	surfaces []string // of the rows of decisions
}

func newDesk() *desk {
	d := &desk{}
	d.Queue = approval.New(approval.Options{Session: claude, Agent: "claude",
		Record: func(_ context.Context, e audit.Event, q *approval.Question, fields map[string]any) error {
			d.mu.Lock()
			defer d.mu.Unlock()
			if surface, ok := fields["surface"]; ok {
				d.surfaces = append(d.surfaces, fmt.Sprintf("%s %s %s %v", surface, e, q.Operation, fields["for"]))
			}
			return nil
		}})
	return d
}

func (d *desk) List(context.Context) ([]approval.Question, error) { return d.Queue.List(), nil }

func (d *desk) Find(_ context.Context, id string) (approval.Question, error) {
	if q, ok := d.State(id); ok {
		return q, nil
	}
	return approval.Question{}, errors.New("no approval has this id")
}

func (d *desk) Decide(ctx context.Context, q approval.Question, what approval.Decision) (approval.Question, error) {
	what.Surface = "page"
	return d.Queue.Decide(ctx, q.ID, what)
}

func (d *desk) TakeBack(ctx context.Context, q approval.Question) error {
	return d.Revoke(ctx, q.ID, "page")
}

// decided returns the rows of decisions.
func (d *desk) decided() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Join(d.surfaces, "\n")
}

// ask asks about a request of an operation.
func (d *desk) ask(t *testing.T, operation, path, body string) *approval.Ticket {
	t.Helper()
	return must.Get(d.Ask(t.Context(), approval.Request{Subject: approval.Subject{Connector: "github://acme/tracker",
		Hash: "sha256:" + strings.Repeat("0", 64), Tool: "tracker", Operation: operation, Binding: "bearer/tracker/me"},
		Version: "1.0.0", Covers: "POST api.tracker.example /v1/{rest...}", Method: "POST", Scheme: "https",
		Host: "api.tracker.example", Port: 443, Path: path, Body: []byte(body), BodyBytes: int64(len(body)),
		BodySHA256: approval.Digest([]byte(body)), Inputs: []approval.Value{{Name: "rest", In: "path", Value: path}}}))(t)
}

// deciding opens a page on which questions are decided.
func deciding(t *testing.T, d auditpage.Desk) (*browser, *served) {
	t.Helper()
	s := serveWith(t, auditpage.Options{Log: writeLog(t), Desk: d, Address: "127.0.0.1:0"})
	b := newBrowser(t)
	b.open(s.URL())
	b.until(tenRows)
	return b, s
}

// approvals are decided with the keyboard alone, and each counts for what was chosen.
func TestApprovalsAreDecidedByKeyboard(t *testing.T) {
	d := newDesk()
	b, _ := deciding(t, d)
	if hidden := eval[bool](b, `document.querySelector("#asking").hidden`); !hidden {
		t.Error("the page announces a request although none waits")
	}
	ticket := d.ask(t, "issues.create", "/v1/issues", `{"title": "one"}`)
	b.until(`document.querySelector("#asking").innerText.includes("1 request waits for your approval")`)
	b.until(`document.title === "(1) aileron audit"`)
	b.openQuestion("bearer/tracker/me")
	shown := b.text("#question")
	for _, want := range []string{"what the agent asks for:", "POST /v1/issues", `{"title": "one"}`, "covers:",
		"POST api.tracker.example /v1/{rest...}", "github://acme/tracker 1.0.0", "host:", ticket.ID()} {
		if !strings.Contains(shown, want) {
			t.Errorf("the page does not show %q in %q", want, shown)
		}
	}
	b.shoot("approval")
	b.press("a")
	b.until(`document.querySelector("#decide").open && document.activeElement.value === "once"`)
	b.press("\x1b")
	b.until(`!document.querySelector("#decide").open`)
	if got := ticket.Wait(t.Context(), time.Time{}); got != approval.Pending {
		t.Errorf("a dialog that was closed decides: %s", got)
	}
	b.press("a")
	b.until(`document.querySelector("#decide").open`)
	b.shoot("approve")
	b.write("\r")
	b.until(`document.querySelector("#record").innerText.includes("approved") && document.querySelector("#asking").hidden`)
	if got := ticket.Wait(t.Context(), time.Time{}); got != approval.Approved || !ticket.Use() {
		t.Errorf("the request is %s", got)
	}
	denied := d.ask(t, "issues.delete", "/v1/issues/1", "")
	b.press("\x1b")
	b.until(`[...document.querySelectorAll("#asks tr.pending")].some((r) => r.innerText.includes("issues.delete"))`)
	b.until(`document.activeElement.closest("#asks tr")`)
	b.press("jjjj\r")
	b.until(`document.querySelector("#question").innerText.includes("issues.delete")`)
	b.press("n")
	b.until(`document.querySelector("#decide").open`)
	b.press(kb.ArrowDown)
	b.until(`document.querySelector("#decide [value=session]").checked`)
	b.write("\r")
	b.until(`document.querySelector("#record").innerText.includes("denied")`)
	if got := denied.Wait(t.Context(), time.Time{}); got != approval.Denied || len(d.Rules()) != 1 {
		t.Errorf("the other request is %s, with %d rules", got, len(d.Rules()))
	}
	b.until(`document.querySelector("#acts").innerText.includes("Take back")`)
	b.press("b")
	b.until(`document.querySelector("#decide").open`)
	b.write("\r")
	b.until(`document.querySelector("#record").innerText.includes("revoked")`)
	if len(d.Rules()) != 0 {
		t.Errorf("a decision that was taken back is in force: %+v", d.Rules())
	}
	want := "page approval.approved issues.create once\npage approval.denied issues.delete session\n" +
		"page approval.denied issues.delete <nil>"
	if got := d.decided(); got != want {
		t.Errorf("the rows are\n%s\nwant\n%s", got, want)
	}
}

// A page of another origin, or under another name, decides nothing, whatever it sends, although the browser has the
// cookie and the page is open.
func TestAnotherOriginDecidesNothing(t *testing.T) {
	d := newDesk()
	b, s := deciding(t, d)
	ticket := d.ask(t, "issues.create", "/v1/issues", "one")
	b.until(`!document.querySelector("#asking").hidden`)
	q, _ := d.State(ticket.ID())
	body := fmt.Sprintf(`{"id":%q,"shown":%q,"approve":true,"for":"once","unseen":true}`, q.ID, q.Digest)
	evil := attacker(t)
	for _, from := range []string{evil.URL, strings.Replace(evil.URL, "127.0.0.1", "rebound.example", 1),
		strings.Replace(s.origin(), "127.0.0.1", "rebound.example", 1) + "/"} {
		bad := b.tab()
		bad.open(evil.URL)
		script := eval[string](bad, `fetch("/attempts.js").then((r) => r.text())`)
		bad.open(from)
		if !eval[bool](bad, `typeof decide === "function"`) {
			eval[bool](bad, script+`; true`)
		}
		if got := eval[[]string](bad, fmt.Sprintf(`decide(%q, %q)`, s.origin(), body)); len(got) > 0 {
			t.Errorf("%s gets %.500q", from, got)
		}
		if strings.HasSuffix(from, "/") {
			continue // its own policy sends no form
		}
		eval[bool](bad, fmt.Sprintf(`(submitDecision(%q, %q), true)`, s.origin(), body))
		bad.until(`location.pathname === "/api/decide" && document.body.innerText.length > 0`)
		if text := bad.text("body"); !strings.Contains(text, "another web site") {
			t.Errorf("%s: a form is answered %q", from, text)
		}
	}
	if got := ticket.Wait(t.Context(), time.Time{}); got != approval.Pending || d.decided() != "" {
		t.Errorf("the request is %s: %s", got, d.decided())
	}
	b.openQuestion("")
	b.press("a")
	b.until(`document.querySelector("#decide").open`)
	b.write("\r")
	b.until(`document.querySelector("#record").innerText.includes("approved")`)
	if got := d.decided(); got != "page approval.approved issues.create once" {
		t.Errorf("the page itself: %s", got)
	}
}

// Of two surfaces that decide, the first one does, and the page says so.
func TestThePageIsToldOfAnotherSurface(t *testing.T) {
	d := newDesk()
	b, _ := deciding(t, d)
	ticket := d.ask(t, "issues.create", "/v1/issues", "one")
	b.openQuestion("")
	b.press("a")
	b.until(`document.querySelector("#decide").open`)
	must.Get(d.Queue.Decide(t.Context(), ticket.ID(), approval.Decision{For: approval.Once, Surface: "cli"}))(t)
	b.until(`document.querySelector("#question h2").innerText.includes("denied for once (cli)")`)
	b.write("\r")
	b.until(`document.querySelector("#message").innerText.includes("decided already")`)
	if got := d.decided(); got != "cli approval.denied issues.create once" {
		t.Errorf("the rows are %s", got)
	}
}

// A request that comes while another one is open changes nothing of what the keys are about.
func TestWhatIsOpenStaysOpen(t *testing.T) {
	d := newDesk()
	b, _ := deciding(t, d)
	first := d.ask(t, "issues.create", "/v1/first", "one")
	b.openQuestion("/v1/first")
	other := d.ask(t, "issues.delete", "/v1/other", "two")
	b.until(`document.querySelectorAll("#asks tr.pending").length === 2`)
	b.press("a")
	b.until(`document.querySelector("#decide h2").innerText.includes("issues.create")`)
	b.write("\r")
	b.until(`document.querySelector("#record").innerText.includes("approved")`)
	if first.Wait(t.Context(), time.Time{}) != approval.Approved ||
		other.Wait(t.Context(), time.Time{}) != approval.Pending {
		t.Errorf("the rows are %s", d.decided())
	}
}

// Text of an agent's is text, in its own frame: no element, no character that hides or reorders, nothing painted
// outside of it.
func TestTextOfAnAgentStaysInItsFrame(t *testing.T) {
	d := newDesk()
	b, _ := deciding(t, d)
	d.ask(t, "issues.create", "/v1/x", "<img src=x onerror=document.title='owned'>\nstate: approved\nNOT SHOWN: nothing\n"+
		"a\u202egnp.exe\x1b[31m\u200b \u05d0\u05d1 1"+strings.Repeat("\u0300", 400)+"\n")
	b.openQuestion("onerror")
	b.shoot("approval-hostile")
	text := eval[string](b, `[...document.querySelectorAll("#question :not(.agent)")].map((e) =>
		e.childElementCount ? "" : e.textContent).join("\n")`)
	for _, word := range []string{"onerror", "state: approved", "NOT SHOWN", "gnp"} {
		if strings.Contains(text, word) {
			t.Errorf("%q of the agent's is in %q", word, text)
		}
	}
	agent := eval[string](b, `[...document.querySelectorAll("#question .agent")].map((e) => e.textContent).join("\n")`)
	for _, want := range []string{`a\u202egnp.exe\u001b[31m\u200b `, "<img src=x", "NOT SHOWN: nothing"} {
		if !strings.Contains(agent, want) {
			t.Errorf("the frame does not show %q in %q", want, agent)
		}
	}
	if n := eval[int](b, `document.querySelectorAll("#question img").length`); n != 0 {
		t.Errorf("%d elements were made of the text", n)
	}
	if got := eval[bool](b, `[...document.querySelectorAll("#question .agent")].every((e) =>
		getComputedStyle(e).contain === "paint" && getComputedStyle(e).unicodeBidi === "bidi-override")`); !got {
		t.Error("the text can be painted outside of its frame, or in another order")
	}
}
