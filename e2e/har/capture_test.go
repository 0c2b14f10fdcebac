package har

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/audit/export"
	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
)

// page is a site of which one script makes the title, and one is compressed.
func page(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		switch r.URL.Path {
		case "/":
			_, _ = io.WriteString(w, `<!doctype html><script src="/one.js"></script><img src="/dot.png">`+
				`<script src="/two.js"></script>`)
		case "/one.js":
			w.Header().Set("Content-Type", "text/javascript")
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, _ = io.WriteString(z, `const part = "from a capture";`)
			_ = z.Close()
		case "/two.js":
			w.Header().Set("Content-Type", "text/javascript")
			_, _ = io.WriteString(w, `document.title = part + ", ümlaut";`)
		case "/dot.png":
			w.Header().Set("Content-Type", "image/png")
			_, _ = w.Write([]byte("\x89PNG\r\n\x1a\n\x00\xff"))
		}
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

// A browser replays what a session captured, and the format's validator accepts it.
func TestACaptureIsReplayed(t *testing.T) {
	t.Parallel()
	dir, home := t.TempDir(), t.TempDir()
	file := filepath.Join(dir, "session.har")
	script := `for path in '?from=har' one.js dot.png two.js; do
		curl -sS -o /dev/null -H 'Accept-Encoding: gzip' "http://page.example/$path" || exit 1; done
		curl -sS -o /dev/null --data-binary 'a b' http://denied.example:81/`
	run := func() (string, int) {
		cmd := exec.Command(binary, "run", "--egress=passthrough", "--resolve", "page.example:80:"+page(t),
			"--capture", file, "--", "sh", "-c", script)
		cmd.Env = harness.Env(home, "")
		out, errs, code := harness.Finish(t, cmd, harness.Patience)
		return out + errs, code
	}
	out, code := run()
	if code != 0 || !strings.Contains(out, "are recorded in "+file) {
		t.Fatalf("exit %d: %s", code, out)
	}
	started := harness.AuditRows(t, home, audit.Filter{Event: audit.EventSessionStarted})
	if len(started) != 1 || started[0].Fields["capture"] != file {
		t.Errorf("session.started is %+v", started)
	}
	text := must.Get(os.ReadFile(file))(t)
	if out, code := node(t, "validate.js", text); code != 0 || out != "valid 5\n" {
		t.Errorf("the validator says, with %d: %s", code, out)
	}
	if info, err := os.Stat(file); err != nil || info.Mode() != 0o600 {
		t.Errorf("the file is %v, %v", info.Mode(), err)
	}
	if out, code := node(t, "replay.js", nil, dir+":/in:ro"); code != 0 || out != "replayed from a capture, ümlaut\n" {
		t.Errorf("the browser ends with %d: %s", code, out)
	}
	if names, _ := filepath.Glob(filepath.Join(dir, ".*")); len(names) > 0 {
		t.Errorf("left behind: %q", names)
	}
	if out, code := run(); code != 1 || !strings.Contains(out, "session.har exists") {
		t.Errorf("a second capture to the file: exit %d, %s", code, out)
	}
	var log struct {
		Log struct{ Entries []export.HAREntry }
	}
	must.Do(t, json.Unmarshal(text, &log))
	for _, e := range log.Log.Entries {
		for _, h := range e.Request.Headers {
			if h.Name == "Proxy-Authorization" && h.Value != "[session token]" {
				t.Error("the session's token is in the capture: ", fmt.Sprint(len(h.Value)), " bytes")
			}
		}
	}
}
