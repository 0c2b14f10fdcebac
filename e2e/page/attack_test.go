package page

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// attacker is a web site on another port of this machine, which is the same site for cookies and another origin.
func attacker(t *testing.T) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/attempts.js" {
			http.ServeFile(w, r, "testdata/attempts.js")
			return
		}
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<!doctype html><title>attacker</title><body><script src=/attempts.js></script></body>")
	}))
	t.Cleanup(s.Close)
	return s
}

// A page of another origin gets nothing of the log, whatever it tries, although the browser has the cookie.
func TestAnotherOriginGetsNothing(t *testing.T) {
	b, s := opened(t)
	evil := attacker(t)
	for _, from := range []string{evil.URL, strings.Replace(evil.URL, "127.0.0.1", "rebound.example", 1)} {
		bad := b.tab()
		bad.open(from)
		if got := eval[[]string](bad, fmt.Sprintf(`attack(%q)`, s.origin())); len(got) > 0 {
			t.Errorf("%s gets %.500q", from, got)
		}
		eval[bool](bad, fmt.Sprintf(`(submit(%q), true)`, s.origin()))
		bad.until(`document.body.innerText.includes("another web site")`)
	}
}

// A name of an attacker that leads to the listener's address gets nothing: for the browser it is the page's own origin.
func TestAReboundNameIsRefusedWithTheReason(t *testing.T) {
	b, s := opened(t)
	bad := b.tab()
	bad.open(strings.Replace(s.origin(), "127.0.0.1", "rebound.example", 1) + "/")
	bad.until(`document.body.innerText.includes("DNS rebinding")`)
	bad.shoot("rebound")
	for _, path := range []string{"/api/rows", "/app.js", "/session"} {
		text := eval[string](bad,
			`fetch("`+path+`").then((r) => r.status + " " + r.headers.get("access-control-allow-origin") + " " + r.text())`)
		if !strings.HasPrefix(text, "403 null ") {
			t.Errorf("%s under another name answers %.200q", path, text)
		}
	}
}

// Text of a row is shown as text: no element is made of it, no character hides or reorders, a field is bounded.
func TestHostileTextIsText(t *testing.T) {
	b, _ := opened(t)
	b.press("f")
	b.write("evil.example\r")
	b.until(`document.querySelectorAll("#list .row:not([hidden])").length === 1 &&
		document.querySelector("#list .target").innerText.includes("script")`)
	b.press("j\r")
	b.until(`!document.querySelector("#detail").hidden`)
	b.shoot("hostile")
	page := b.text("body")
	for _, want := range []string{`<img src=x onerror=document.title='owned'>`, `\u202egnp.exe`, `\u001b[31m`,
		"10485760 bytes: aileron audit show has all"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not show %q", want)
		}
	}
	if len(page) > 64<<10 {
		t.Errorf("the page shows %d bytes", len(page))
	}
	if title := eval[string](b, `document.title`); title != "aileron audit" {
		t.Errorf("the title became %q", title)
	}
	if n := eval[int](b, `document.querySelectorAll("img, #view script").length`); n != 0 {
		t.Errorf("%d elements were made of the text", n)
	}
}

// A link opens one tab; the next one that uses it is told what to do.
func TestALinkIsUsedOnce(t *testing.T) {
	b, s := opened(t)
	second := b.tab()
	second.open(s.URL())
	second.until(`document.querySelector("#message").innerText.includes("this link was used already")`)
	if rows := eval[int](second, `document.querySelectorAll("#list .row").length`); rows != 0 {
		t.Errorf("a second tab shows %d rows", rows)
	}
	if url := eval[string](second, `location.href`); strings.Contains(url, "#") {
		t.Errorf("the token stays in %s", url)
	}
	eval[bool](b, `(location.reload(), true)`)
	b.until(`document.querySelectorAll("#list .row:not([hidden]):not(.waiting)").length > 10`)
}
