package sweep

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/harness"
)

// queries are what the page is asked at each of its routes. Those that end with a question mark have a filter added.
var queries = map[string][]string{
	"/api/state": {"/api/state"}, "/api/started": {"/api/started"}, "/api/live": {"/api/live"},
	"/api/rows": {"/api/rows?", "/api/rows?rows=1"}, "/api/waiting": {"/api/waiting?"},
	"/api/chunks": {"/api/chunks?"}, "/api/counts": {"/api/counts?"}, "/api/used": {"/api/used?"},
	"/api/ticket":    {"/api/ticket?format=jsonl", "/api/ticket?format=csv", "/api/ticket?format=har"},
	"/api/event":     nil, // of each row
	"/api/find":      {"/api/find?id=0", "/api/find?id=" + trace},
	"/api/verify":    {"/api/verify"},
	"/api/approvals": {"/api/approvals"}, "/api/approval": {"/api/approval?id=" + trace}, "/api/decide": nil,
	"/export/": nil, // of each ticket
	"/":        {"/", "/app.js", "/style.css", "/nothing"}, "/session": nil,
}

// routes returns the paths that the page answers, as its sources name them.
func (p *person) routes() (all []string) {
	p.t.Helper()
	files, err := filepath.Glob("../../internal/auditpage/*.go")
	if err != nil || len(files) == 0 {
		p.t.Fatalf("the sources of the page: %v", err)
	}
	pattern := regexp.MustCompile(`"(?:GET|POST) (/[^" {]*)`)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			p.t.Fatal(err)
		}
		for _, found := range pattern.FindAllStringSubmatch(string(text), -1) {
			all = append(all, found[1])
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(all)))
}

// reader is a browser with the page.
type reader struct {
	p      *person
	client *http.Client
	origin string
	key    string
}

// readPage reads the whole page: every route, every row, every file to save.
func (p *person) readPage(rows []audit.Row) {
	p.t.Helper()
	cmd, said := p.command("audit", "serve", "--decide")
	cmd.Stdout = nil
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	}()
	link, err := bufio.NewReader(out).ReadString('\n')
	origin, token, found := strings.Cut(strings.TrimSpace(link), "/#")
	if err != nil || !found {
		p.t.Fatalf("audit serve prints %q, %v: %s", link, err, said.err.String())
	}
	said.out.WriteString(link)
	jar, _ := cookiejar.New(nil)
	r := &reader{p: p, origin: origin, client: &http.Client{Jar: jar, Timeout: harness.Patience}}
	defer r.client.CloseIdleConnections()
	var entered struct{ Key string }
	if err := json.Unmarshal(r.ask("POST", "/session", token), &entered); err != nil || entered.Key == "" {
		p.t.Fatalf("the page's session: %v", err)
	}
	r.key = entered.Key
	for _, route := range p.routes() {
		asked, known := queries[route]
		if !known {
			p.t.Errorf("the page answers %s, and the sweep does not ask for it", route)
		}
		for _, query := range asked {
			r.get(query)
		}
	}
	for _, row := range rows {
		r.get("/api/event?id=" + row.ID)
	}
	for _, bad := range []string{"/api/rows?since=", "/api/event?id=", "/api/ticket?format=", "/api/rows?connector="} {
		p.judgeQuiet("the page's refusal of a filter", r.ask("GET", bad+"none", ""))
	}
}

// judgeQuiet searches for everything that no output may have.
func (p *person) judgeQuiet(where string, data []byte) { p.canary.judge(p.t, where, data, everything) }

// get asks for one thing and searches the answer. What is about rows must have the trace.
func (r *reader) get(query string) {
	r.p.t.Helper()
	var body []byte
	if path, stream := strings.CutSuffix(query, "/live"); stream {
		body = r.first(path + "/live")
	} else {
		body = r.ask("GET", query, "")
	}
	r.p.judgeQuiet("the page's answer to "+query, body)
	if strings.HasPrefix(query, "/api/rows") && !bytes.Contains(body, []byte(trace)) {
		r.p.t.Errorf("the page's answer to %s has no path: %.200s", query, body)
	}
	if !strings.HasPrefix(query, "/api/ticket") {
		return
	}
	var ticket struct{ Path string }
	if err := json.Unmarshal(body, &ticket); err != nil {
		r.p.t.Errorf("the page's answer to %s: %v", query, err)
		return
	}
	file := r.ask("GET", ticket.Path, "")
	r.p.judgeQuiet("a file of "+query, file)
	if !bytes.Contains(file, []byte(trace)) {
		r.p.t.Errorf("a file of %s has no path: %.200s", query, file)
	}
}

func (r *reader) request(method, query, body string) *http.Response {
	r.p.t.Helper()
	req, err := http.NewRequestWithContext(r.p.t.Context(), method, r.origin+query, strings.NewReader(body))
	if err != nil {
		r.p.t.Fatal(err)
	}
	req.Header = http.Header{"Origin": {r.origin}, "Aileron-Page-Key": {r.key}}
	res, err := r.client.Do(req)
	if err != nil {
		r.p.t.Fatalf("%s %s: %v", method, query, err)
	}
	return res
}

func (r *reader) ask(method, query, body string) []byte {
	r.p.t.Helper()
	res := r.request(method, query, body)
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		r.p.t.Errorf("%s %s: %v", method, query, err)
	}
	return answer
}

// first returns the first line of a stream.
func (r *reader) first(query string) []byte {
	r.p.t.Helper()
	res := r.request("GET", query, "")
	defer res.Body.Close()
	line, _ := bufio.NewReader(res.Body).ReadBytes('\n')
	return line
}
