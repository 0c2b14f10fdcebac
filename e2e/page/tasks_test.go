package page

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/auditpage"
	"github.com/ALRubinger/aileron/internal/config"
)

// opened opens the page of a log with a few sessions, and waits for its rows.
func opened(t *testing.T) (*browser, *served) {
	t.Helper()
	b := newBrowser(t)
	s := serve(t, writeLog(t))
	b.open(s.URL())
	b.until(`document.querySelectorAll("#list .row:not([hidden]):not(.waiting)").length > 10`)
	return b, s
}

// Each task of a reviewer is done with the keyboard alone.
func TestEachTaskIsDoneWithTheKeyboard(t *testing.T) {
	b, _ := opened(t)
	b.shoot("list")
	b.press("jjj" + kb.Enter)
	b.until(`!document.querySelector("#detail").hidden`)
	b.shoot("detail")
	if story := b.text("#detail"); !strings.Contains(story, "bearer/github/work") || !strings.Contains(story, "redacted") {
		t.Errorf("the exchange is told as %q", story)
	}
	b.press(kb.Escape)
	b.until(`document.querySelector("#detail").hidden`)
	b.press("r")
	b.until(`document.querySelectorAll("#list .rejected").length > 5 &&
		!document.querySelector("#list .proxied:not([hidden])")`)
	b.shoot("refused")
	b.press("x/")
	b.write(codex[:12])
	b.write(kb.Enter)
	b.until(`document.querySelector("#filter [name=session]").value === "` + codex + `"`)
	b.press("3")
	b.until(`document.querySelector("#panel").innerText.includes("path_not_allowed") &&
		!document.querySelector("#panel").innerText.includes("host_not_allowed")`)
	b.press("x3")
	b.until(`document.querySelector("#panel").innerText.includes("host_not_allowed")`)
	b.shoot("refusals")
	b.press(kb.Enter)
	b.until(`document.querySelector("#filter [name=reason]").value === "host_not_allowed"`)
	b.press("x")
	b.press("2")
	b.until(`document.querySelector("#panel").innerText.includes("claude")`)
	b.shoot("sessions")
	b.press("4")
	b.until(`document.querySelector("#panel").innerText.includes("bearer/github/work")`)
	b.until(`document.querySelector("#panel").innerText.includes("Used by model")`)
	b.shoot("use")
	b.press(kb.Enter)
	b.until(`document.querySelector("#filter [name=binding]").value === "bearer/github/work"`)
	b.press("3")
	b.until(`document.querySelector("#panel h2").innerText.includes("Refusals")`)
	b.press("1xm")
	b.write("codex\r")
	b.until(`document.querySelector("#status").innerText.includes("49 events")`)
	b.until(`document.querySelector("#chart-text").innerText.includes("refused") &&
		!document.querySelector("#chart-text").innerText.includes("141")`)
	b.shoot("agent")
	b.press("x")
	b.until(`document.querySelector("#chart-text").innerText.includes("141")`)
	b.press("t" + kb.ArrowRight)
	b.until(`document.querySelector("#chart-text").innerText.includes("Enter selects")`)
	b.shoot("time")
	b.press(kb.Enter)
	b.until(`document.querySelector("#filter [name=until]").value !== ""`)
	b.press("xv")
	b.until(`document.querySelector("#record").innerText.includes("The record verifies")`)
	b.shoot("verified")
	b.press("x?")
	b.until(`document.querySelector("#help").open`)
	b.shoot("help")
	b.press(kb.Escape)
	b.until(`!document.querySelector("#help").open`)
	b.press(kb.End)
	b.until(`document.querySelector("#list [aria-selected=true]").innerText.includes("session.started")`)
	b.prefer("prefers-color-scheme", "dark")
	b.press(kb.Home + "jj" + kb.Enter)
	b.until(`!document.querySelector("#detail").hidden`)
	b.shoot("dark")
	b.press(kb.Escape)
	b.size(360, 740)
	b.until(`document.querySelector("#list .row").getBoundingClientRect().height > 40`)
	b.shoot("narrow-dark")
	b.prefer("prefers-color-scheme", "light")
	b.shoot("narrow")
	b.press(kb.Enter)
	b.until(`!document.querySelector("#detail").hidden`)
	b.shoot("narrow-detail")
}

// Tokens and money are shown by model, agent and session; an agent and a session are opened.
func TestWhatWasUsedIsShown(t *testing.T) {
	path := writeLog(t)
	for i, session := range []string{claude, claude, codex} {
		metered := request(session, audit.NewID(), "POST", "api.anthropic.com", "/v1/messages", "messages.create", 200)
		metered[1].Fields["meters"] = map[string]any{"input_tokens": 1_500_000, "output_tokens": 20 + i}
		metered[1].Fields["meters_model"] = []string{"claude-sonnet-4-5", hostile, "gpt-5"}[i]
		appendRows(t, path, metered...)
	}
	b := newBrowser(t)
	b.open(serveWith(t, auditpage.Options{Log: path, Prices: func() (config.Prices, error) {
		return config.Prices{Currency: "EUR", Model: map[string]map[string]float64{"claude-*": {"input_tokens": 3}}}, nil
	}}).URL())
	b.until(`document.querySelectorAll("#list .row:not([hidden])").length > 10`)
	b.press("4")
	row := func(label string) string {
		t.Helper()
		b.until(`document.querySelector('#panel tr[aria-label="` + label + `"]')`)
		return strings.Join(strings.Fields(b.text(`#panel tr[aria-label="`+label+`"]`)), " ")
	}
	for label, want := range map[string]string{
		"model claude-sonnet-4-5": "claude-sonnet-4-5 1 18 kB 1 500 000 20 4.50+",
		"model gpt-5":             "gpt-5 1 18 kB 1 500 000 22 -",
		"agent codex":             "codex 47 862 kB 1 500 000 22 -",
		"session " + codex:        "codex" + codex + " 47 862 kB 1 500 000 22 -",
	} {
		if got := row(label); got != want {
			t.Errorf("%s is shown as %q, want %q", label, got, want)
		}
	}
	if heads := b.text("#panel"); !strings.Contains(heads, "Cost EUR") || !strings.Contains(heads, "input tokens") ||
		strings.Contains(heads, hostile) {
		t.Errorf("the page shows %q", heads)
	}
	b.shoot("used")
	eval[bool](b, `document.querySelector('#panel tr[aria-label="session `+codex+`"]').focus() ?? true`)
	b.press("k" + kb.ArrowDown + kb.Enter)
	b.until(`document.querySelector("#filter [name=session]").value === "` + codex + `"`)
	b.press("4")
	b.until(`document.querySelector('#panel tr[aria-label="agent codex"]') &&
		!document.querySelector('#panel tr[aria-label="agent claude"]')`)
	eval[bool](b, `document.querySelector('#panel tr[aria-label="agent codex"]').focus() ?? true`)
	b.press(kb.Enter)
	b.until(`document.querySelector("#filter [name=agent]").value === "codex"`)
}

// A person who has gone on is not taken back by an answer that comes late.
func TestALateAnswerDoesNotMoveThePerson(t *testing.T) {
	b := newBrowser(t)
	b.open(serve(t, writeLog(t)).URL())
	b.until(`document.querySelector("#chart-text").innerText.includes("141")`)
	eval[bool](b, `{ const ask = fetch; const held = new Promise((go) => { window.answer = go; });
		window.fetch = async (path, init) => { // that does not know of signals, as an answer that has come
			if (!path.startsWith("/api/started")) return ask(path, init);
			await held; return ask(path, { ...init, signal: null }); }; true }`)
	b.press("2")
	b.press("1t" + kb.ArrowRight)
	b.until(`document.querySelector("#chart-text").innerText.includes("Enter selects")`)
	eval[bool](b, `window.answer(), new Promise((done) => setTimeout(() => done(true), 500))`)
	if focus := eval[string](b, `document.activeElement.id`); focus != "chart" {
		t.Errorf("the keyboard is at %q, want the chart, where it was", focus)
	}
	b.press("3")
	b.until(`document.querySelector("#panel h2").innerText.includes("Refusals")`)
}

// A request is one line, also while it is under way; w shows every row, and w again.
func TestARequestIsOneLine(t *testing.T) {
	path := writeLog(t)
	under := request(claude, audit.NewID(), "GET", "api.github.com", "/slow", "repos.read", 200)
	appendRows(t, path, under[0])
	b := newBrowser(t)
	b.open(serve(t, path).URL())
	const first = `document.querySelector("#list .row[aria-rowindex='1']")`
	shows := func(status, line string) {
		t.Helper()
		b.until(`document.querySelector("#status").innerText.includes("` + status + `") && ` +
			first + `.innerText.includes("` + line + `")`)
	}
	shows("163 events", "waiting")
	b.press("j" + kb.Enter)
	b.until(`document.querySelector("#detail").innerText.includes("/slow")`)
	b.press(kb.Escape + "w")
	shows("304 rows", "started")
	b.press("w")
	shows("163 events", "waiting")
	appendRows(t, path, under[1])
	shows(" events", "proxied")
	b.until(`!document.querySelector("#list .underway:not([hidden])")`)
}
