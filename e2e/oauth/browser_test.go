package oauth

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/ALRubinger/aileron/e2e/authserver"
	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
)

// browser starts Debian's Chromium, for which the name of the authorization server leads to addr, and returns the
// context of its tab.
func browser(t *testing.T, addr string) context.Context {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("there is no Chromium: scripts/prepare --tests installs it where it may")
	}
	scratch := must.Get(os.MkdirTemp("", "oauth-"))(t) // a short path: that of a socket below it is bounded
	t.Cleanup(func() {
		if !harness.Poll(harness.Patience, 20*time.Millisecond, func() bool { return os.RemoveAll(scratch) == nil }) {
			t.Errorf("the browser's %s cannot be removed", scratch)
		}
	})
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program),
		chromedp.Flag("disable-gpu", true), chromedp.WSURLReadTimeout(harness.Patience),
		chromedp.Flag("ignore-certificate-errors", true), // the root is the test's
		chromedp.Flag("host-resolver-rules", "MAP "+authserver.Accounts+" "+addr), chromedp.Env("TMPDIR="+scratch))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	ctx, end := context.WithTimeout(context.Background(), harness.Patience)
	t.Cleanup(end)
	ctx, stop := chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(stop)
	ctx, closeTab := chromedp.NewContext(ctx)
	t.Cleanup(closeTab)
	return ctx
}

// A person logs in with a browser on this machine: the page of the server, a name, a click on Allow, and the page of
// aileron.
func TestALoginInABrowser(t *testing.T) {
	t.Parallel()
	p := newPerson(t, authserver.Options{Iss: "https://" + authserver.Accounts}, "", "mail")
	tab := browser(t, p.Addr)
	l := p.begin("binding", "setup", fqn("mail"))
	page := l.page()

	var at, text string
	err := chromedp.Do(tab, chromedp.Navigate(page), chromedp.WaitVisible(`button[value="allow"]`),
		chromedp.SendKeys(`input[name="login"]`, "ann"), chromedp.Click(`button[value="allow"]`))
	if err == nil {
		harness.WaitFor(t, "the browser shows the page of aileron", func() bool {
			at, _ = chromedp.Run(tab, chromedp.Evaluate[string]("document.location.host"))
			text, err = chromedp.Run(tab, chromedp.Evaluate[string]("document.body.innerText"))
			return strings.HasPrefix(at, "localhost:") && text != ""
		})
	}
	if err != nil || !strings.Contains(text, "logged in") {
		t.Fatalf("the browser ends at %s with %q: %v\n%s", at, text, err, l.said.String())
	}
	if r := l.end(); r.code != 0 {
		t.Fatalf("exit %d\n%s", r.code, r.err)
	}
	if text := p.serve().mustGet("mail", "/api/me?echo=1"); !strings.Contains(text, `"login":"ann"`) {
		t.Errorf("the service answers %s", text)
	}
}
