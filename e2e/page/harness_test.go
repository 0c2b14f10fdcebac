// Package page drives the page of aileron audit serve with a real browser: Debian's Chromium, headless. Each task of a
// reviewer is done with the keyboard, and a page of another origin attacks it.
//
// AILERON_PAGE_SHOTS names a directory into which screenshots are written.
package page

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/auditpage"
)

// served is a page that is served.
type served struct {
	*auditpage.Page
	path string // of the log
	said chan string
}

// serve serves the log at path.
func serve(t *testing.T, path string) *served {
	t.Helper()
	return serveWith(t, auditpage.Options{Log: path})
}

// serveWith serves a page with options.
func serveWith(t *testing.T, opts auditpage.Options) *served {
	t.Helper()
	s := &served{path: opts.Log, said: make(chan string, 100)}
	opts.Report = func(m string) { s.said <- m }
	opts.Exports = []auditpage.Export{{Name: "jsonl", Type: "application/x-ndjson", Begin: jsonLines}}
	s.Page = must.Get(auditpage.Listen(t.Context(), opts))(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s
}

func jsonLines(w io.Writer) (row func(audit.Row) error, end func() error) {
	enc := json.NewEncoder(w)
	return func(r audit.Row) error { return enc.Encode(r) }, func() error { return nil }
}

// origin returns the origin of the page.
func (s *served) origin() string { return strings.Split(s.URL(), "/#")[0] }

// browser is a tab of a browser.
type browser struct {
	t   *testing.T
	ctx context.Context
}

// findBrowser returns the program of a browser, and skips the test where there is none.
func findBrowser(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("there is no Chromium: scripts/prepare --tests installs it where it may")
	return ""
}

// chromium is the one browser of all tests, in which each has a context with cookies and storage of its own.
var chromium struct {
	ctx context.Context // nil: none was started
	end func() error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if chromium.end != nil {
		if err := chromium.end(); err != nil {
			fmt.Fprintln(os.Stderr, "page: remove what the browser had:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// startChromium starts a browser in which the name rebound.example leads to this machine.
func startChromium(t *testing.T) {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(findBrowser(t)), chromedp.Flag("disable-gpu", true),
		chromedp.WSURLReadTimeout(harness.Patience), // for the browser's start
		chromedp.Flag("host-resolver-rules", "MAP rebound.example 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.*"))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	// Chromium is killed at the end, and leaves what it has in its temporary directory. The path is short, because
	// that of a socket below it is bounded.
	scratch := must.Get(os.MkdirTemp("", "page-"))(t)
	options = append(options, chromedp.Env("TMPDIR="+scratch))
	ctx, stop := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, closeTab := chromedp.NewContext(ctx)
	chromium.end = func() (err error) {
		closeTab()
		stop()
		harness.Poll(harness.Patience, 20*time.Millisecond, func() bool { err = os.RemoveAll(scratch); return err == nil })
		return err
	}
	must.Do(t, chromedp.Do(ctx))
	chromium.ctx = ctx
}

// newBrowser returns a tab of a browser that knows nothing of other tests.
func newBrowser(t *testing.T) *browser {
	t.Helper()
	if chromium.ctx == nil {
		startChromium(t)
	}
	ctx, end := context.WithTimeout(chromium.ctx, 3*harness.Patience)
	t.Cleanup(end)
	ctx, closeTab := chromedp.NewContext(ctx, chromedp.WithNewBrowserContext())
	t.Cleanup(closeTab)
	b := &browser{t, ctx}
	b.size(1440, 900)
	return b
}

// tab returns another tab of the same browser.
func (b *browser) tab() *browser {
	ctx, end := chromedp.NewContext(b.ctx)
	b.t.Cleanup(end)
	return &browser{b.t, ctx}
}

func (b *browser) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

func (b *browser) size(width, height int64) {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(width, height))
}

// prefer sets a preference of the person, such as prefers-color-scheme.
func (b *browser) prefer(name, value string) {
	b.t.Helper()
	b.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: name, Value: value}}})
		return err
	}))
}

// open opens an address.
func (b *browser) open(address string) {
	b.t.Helper()
	b.do(chromedp.Navigate(address))
}

// press presses keys, one after the other.
func (b *browser) press(keys string) {
	b.t.Helper()
	b.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		for _, key := range keys {
			for _, event := range kb.Encode(key) {
				if event.Type == kb.KeyChar { // text is inserted even if the page has used the key
					continue
				}
				if _, err := cdp.Call(ctx, target, input.DispatchKeyEvent, *event); err != nil {
					return err
				}
			}
		}
		return nil
	}))
}

// write types text into the field that has the focus.
func (b *browser) write(text string) {
	b.t.Helper()
	b.do(chromedp.KeyEvent(text))
}

// eval returns the value of an expression, which may be a promise.
func eval[T any](b *browser, expression string) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%.200s: %v", expression, err)
	}
	return v
}

// openQuestion opens the first request that waits for a person, by keyboard, and waits until it shows words.
func (b *browser) openQuestion(words string) {
	b.t.Helper()
	b.press("5")
	b.until(`document.activeElement.closest("#asks tr")`)
	b.press("\r")
	b.until(`!document.querySelector("#question").hidden`)
	b.until(fmt.Sprintf(`document.querySelector("#question").innerText.includes(%q)`, words))
}

// until waits for a condition.
func (b *browser) until(condition string) {
	b.t.Helper()
	const wait = `new Promise((done) => { const begun = performance.now(); const look = () => {
		let is = false; try { is = %s; } catch {} // what it looks at may not be there yet
		if (is) done(true); else if (performance.now() - begun > 3e5) done(false); else setTimeout(look, 20); }; look(); })`
	came := false
	var err error
	for range 3 { // a page that is left takes its promises with it
		came, err = chromedp.Run(b.ctx, chromedp.Evaluate[bool](fmt.Sprintf(wait, condition), chromedp.EvalAwaitPromise))
		if err == nil {
			break
		}
	}
	if !came {
		b.shoot("failed")
		b.t.Fatalf("%s did not come true; the page shows: %.300s (%v)", condition, b.text("body"), err)
	}
}

// text returns the text of an element as it is shown.
func (b *browser) text(selector string) string {
	b.t.Helper()
	return eval[string](b, fmt.Sprintf(`(document.querySelector(%q) || {innerText: ""}).innerText`, selector))
}

// shoot takes a screenshot, if they are wanted.
func (b *browser) shoot(name string) {
	dir := os.Getenv("AILERON_PAGE_SHOTS")
	if dir == "" {
		return
	}
	picture, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name+".png"), picture, 0o600)
	}
	if err != nil {
		b.t.Error(err)
	}
}
