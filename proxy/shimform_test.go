package proxy

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
)

// asked returns a request of a command for an operation.
func (w *world) asked(ctx context.Context, form, token, body string) *http.Request {
	w.t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+w.addr+operationsPath, strings.NewReader(body))
	must.Do(w.t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Accept", form)
	req.Close = true
	return req
}

// shim runs an operation as a command does, and returns the words of the first line and what follows.
func (w *world) shim(form, token, body string) (head []string, rest string, res *http.Response) {
	w.t.Helper()
	res = must.Get(http.DefaultTransport.RoundTrip(w.asked(w.t.Context(), form, token, body)))(w.t)
	defer res.Body.Close()
	got := must.Get(io.ReadAll(res.Body))(w.t)
	first, rest, ok := strings.Cut(string(got), "\n")
	head = strings.Split(first, " ")
	if !ok || len(head) != 4 || res.StatusCode != 200 || res.Header.Get("Content-Type") != form {
		w.t.Fatalf("%.200s: %d %s %q", body, res.StatusCode, res.Header, got)
	}
	if id := res.Header.Get("X-Aileron-Audit-Id"); id != head[2] && (id != "" || head[2] != "-") {
		w.t.Errorf("the field has the id %q, and the line %q", id, head[2])
	}
	return head, rest, res
}

func TestAShellCanReadTheResponse(t *testing.T) {
	status := 200
	w := newCalls(t, func(*Config) {}, func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "text/plain")
		rw.WriteHeader(status)
		_, _ = io.WriteString(rw, "you sent "+r.Header.Get("Authorization")+"\r\n\x00\xff\n0 200 - response\n")
	})
	mask := strings.Repeat("*", len(testSecret))
	for status = range map[int]int{200: 0, 201: 0, 302: 0, 404: 1, 500: 1} {
		exit := "0"
		if status >= 400 {
			exit = "1"
		}
		head, rest, _ := w.shim(formShim, testToken, invocation("get", `{"id":"7"}`))
		if want := "you sent Bearer " + mask + "\r\n\x00\xff\n0 200 - response\n"; rest != want {
			t.Errorf("%d: the body is %q, want %q", status, rest, want)
		}
		row := w.last()
		if strings.Join(head, " ") != exit+" "+strconv.Itoa(status)+" "+row.ID+" response" || row.Status != status ||
			row.Source != audit.SourceConnectorShim || row.Event != audit.EventProxyProxied || row.Redactions != 1 {
			t.Errorf("%d: %s, and the row %+v", status, head, row)
		}
		head, rest, _ = w.shim(formShimJSON, testToken, invocation("get", `{"id":"7"}`))
		var r result
		if err := json.Unmarshal([]byte(rest), &r); err != nil || r.Upstream != status || r.AuditID != w.last().ID ||
			head[2] != r.AuditID || head[0] != exit || head[3] != "response" {
			t.Errorf("%d: %s %q %v", status, head, rest, err)
		}
	}
}

func TestAShellCanReadADenial(t *testing.T) {
	w := newCalls(t, func(*Config) {}, hello)
	unknown := strings.Replace(invocation("get", `{}`), "/calls", "/none", 1)
	for _, c := range []struct {
		token, body, exit string
		status            int
		reason            Reason
	}{
		{testToken, invocation("drop", `{"id":"7"}`), "75", 403, ReasonApproval},
		{testToken, invocation("get", `{"id":"7","q":NaN}`), "2", 400, ReasonArguments},
		{testToken, invocation("get", `{"id":"7","\u001b[2J\u202e\n0 200 - response":1}`), "2", 400, ReasonArguments},
		{testToken, "", "2", 400, ReasonArguments},
		{testToken, invocation("get", `{"id":"mine"}`), "1", 403, ReasonNotMatched},
		{testToken, unknown, "1", 403, ReasonNotMatched},
		{testToken, invocation("get", `{"id":"`+strings.Repeat("x", 2<<20)+`"}`), "1", 413, ReasonTooLarge},
		{"x", invocation("open", `{}`), "1", 401, ReasonToken},
	} {
		for _, form := range []string{formShim, formShimJSON} {
			head, rest, _ := w.shim(form, c.token, c.body)
			message, object, _ := strings.Cut(rest, "\n")
			var denied struct{ Error struct{ Message string } }
			if err := json.Unmarshal([]byte(object), &denied); err != nil || denied.Error.Message == "" {
				t.Fatalf("%.100s: %q, %v", c.body, rest, err)
			}
			if _, why := reason(t, object); why != c.reason || head[0] != c.exit || head[1] != strconv.Itoa(c.status) ||
				head[2] != w.last().ID || head[3] != "denial" || w.last().Status != c.status {
				t.Errorf("%.100s: %s %q, want %s for %s", c.body, head, rest, c.exit, c.reason)
			}
			if !strings.HasPrefix(message, "aileron: ") || strings.ContainsFunc(message, func(r rune) bool {
				return r < ' ' || r > '~'
			}) {
				t.Errorf("%.100s: the message is %q", c.body, message)
			}
		}
	}
	if n := len(w.requests()); n != 0 {
		t.Errorf("the upstream got %d requests", n)
	}
}

// Only an exact Accept asks for a form, and only at an endpoint for commands.
func TestTheFormForAShellIsAskedForExactly(t *testing.T) {
	w := newCalls(t, func(*Config) {}, hello)
	for _, accept := range []string{"*/*", formShim + ", */*", formShim + ";q=1", strings.ToUpper(formShim), " "} {
		req := w.asked(t.Context(), accept, testToken, invocation("drop", `{"id":"7"}`))
		res := must.Get(http.DefaultTransport.RoundTrip(req))(t)
		_ = res.Body.Close()
		if res.StatusCode != 403 || res.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%q: %d %s", accept, res.StatusCode, res.Header.Get("Content-Type"))
		}
	}
	req := w.asked(t.Context(), formShim, testToken, "")
	req.URL.Path = "/v1/audit"
	res := must.Get(http.DefaultTransport.RoundTrip(req))(t)
	_ = res.Body.Close()
	if res.StatusCode != 403 {
		t.Errorf("another endpoint responds with %d", res.StatusCode)
	}
	if res, _ := w.do("GET", "https://api.good.example/none", "", "Accept", formShim); res.StatusCode != 403 {
		t.Errorf("on the wire the denial is %d", res.StatusCode)
	}
}

// A response that breaks off has no end, in the eyes of the programs that commands are made of.
func TestWgetFailsWhenTheResponseBreaksOff(t *testing.T) {
	var breaksOff atomic.Bool
	w := newCalls(t, func(*Config) {}, func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "text/plain")
		_, _ = io.WriteString(rw, "half of it")
		if breaksOff.Load() {
			_ = http.NewResponseController(rw).Flush()
			panic(http.ErrAbortHandler)
		}
	})
	for name, wget := range map[string][]string{"GNU": {"wget", "--tries=1"}, "BusyBox": {"busybox", "wget"}} {
		if _, err := exec.LookPath(wget[0]); err != nil {
			t.Logf("not with %s wget: %v", name, err)
			continue
		}
		for _, torn := range []bool{false, true} {
			breaksOff.Store(torn)
			out := filepath.Join(t.TempDir(), "out")
			args := append(wget[1:len(wget):len(wget)], "-q", "-O", out, "--header", "Authorization: Bearer "+testToken,
				"--header", "Accept: "+formShim, "--post-data", invocation("get", `{"id":"7"}`),
				"http://"+w.addr+operationsPath)
			ctx, cancel := context.WithTimeout(t.Context(), testPatience)
			cmd := exec.CommandContext(ctx, wget[0], args...)
			cmd.Env = append(os.Environ(), "http_proxy=", "HTTP_PROXY=")
			said, err := cmd.CombinedOutput()
			cancel()
			got, _ := os.ReadFile(out)
			if (err != nil) != torn || !strings.HasPrefix(string(got), "0 200 ") ||
				!strings.HasSuffix(string(got), "half of it") {
				t.Errorf("%s, torn=%v: %v %q, and wrote %q", name, torn, err, said, got)
			}
		}
	}
	w.untilRows(func(r []audit.Row) bool { return r[len(r)-1].Event == audit.EventProxyProxied })
	if row := w.last(); row.Reason == "" || row.Reason == string(ReasonUndelivered) {
		t.Errorf("the row is %+v", row)
	}
}

// The body streams, and ends upstream when the client goes away.
func TestAShellsResponseStreams(t *testing.T) {
	more, gone := make(chan struct{}), make(chan struct{})
	w := newCalls(t, func(*Config) {}, func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "text/plain")
		_, _ = io.WriteString(rw, "first\n")
		_ = http.NewResponseController(rw).Flush()
		<-more
		_, _ = io.WriteString(rw, "second\n")
		_ = http.NewResponseController(rw).Flush()
		<-r.Context().Done()
		close(gone)
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	res, err := http.DefaultTransport.RoundTrip(w.asked(ctx, formShim, testToken, invocation("get", `{"id":"7"}`)))
	must.Do(t, err)
	defer res.Body.Close()
	next := func(want string) {
		got := make([]byte, len(want))
		if _, err := io.ReadFull(res.Body, got); err != nil || string(got) != want {
			t.Errorf("got %q, %v; want %q", got, err, want)
		}
	}
	next("0 200 " + res.Header.Get("X-Aileron-Audit-Id") + " response\nfirst\n")
	close(more)
	next("second\n")
	cancel()
	<-gone
	w.untilRows(func(r []audit.Row) bool { return r[len(r)-1].Event == audit.EventProxyProxied })
	if row := w.last(); row.Reason != string(ReasonUndelivered) || row.ID != res.Header.Get("X-Aileron-Audit-Id") {
		t.Errorf("the row is %+v", row)
	}
}
