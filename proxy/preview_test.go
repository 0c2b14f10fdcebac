package proxy

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/proxy/approval"
	"github.com/ALRubinger/aileron/proxy/meter"
	"github.com/ALRubinger/aileron/spec"
)

const previewSpec = `{"schema_version":"aileron.connector.v1",
"connector":{"fqn":"github://acme/calls","version":"1.0.0"},"tools":[{"name":"calls","operations":[
 {"name":"merge","method":"POST","path":"/v1/things/{id}/merge","hosts":["api.good.example"],"credential":"bearer",
   "inputs":[{"name":"of","in":"query"},{"name":"part","in":"body"}],"query":"declared","approval":"required",
   "preview":{"operation":"get","args":{"id":"${path.id}"},"render":["title","user.login","secret"]}},
 {"name":"part","method":"POST","path":"/v1/things","hosts":["api.good.example"],"credential":"bearer",
   "inputs":[{"name":"part","in":"body"}],"approval":"required",
   "preview":{"operation":"get","args":{"id":"${body.part}"}}},
 {"name":"pinned","method":"POST","path":"/v1/things/{id}/pinned","hosts":["api.good.example"],"credential":"bearer",
   "inputs":[{"name":"sha","type":"string","required":true}],"query":"declared","approval":"required",
   "preview":{"operation":"get","args":{"id":"${path.id}"},"render":["title"],"match":{"body.sha":"head.sha"}}},
 {"name":"bare","method":"POST","path":"/v1/bare","hosts":["api.good.example"],"credential":"bearer",
   "approval":"required"},
 {"name":"get","method":"GET","path":"/v1/things/{id}","hosts":["api.good.example"],"credential":"bearer",
   "idempotency":"idempotent"}]}]}`

// previews is a world whose operations have previews.
type previews struct {
	*asks
	fetch func(ctx context.Context, id string)
}

func newPreviews(t *testing.T, answer http.HandlerFunc, set ...func(*Config)) *previews {
	t.Helper()
	a := newAsks(t, time.Hour, answer, set...)
	c := must.Get(spec.Load([]byte(callsManifest), []byte(previewSpec)))(t)
	c.Hash = "sha256:1"
	a.index = must.Get(spec.NewIndex([]*spec.Connector{c}))(t)
	a.grant("api_key/x/me")
	p := &previews{asks: a}
	var wait func()
	p.fetch, wait = NewPreviews(a.plane, a.queue)
	t.Cleanup(wait)
	return p
}

// of returns the preview of the only question.
func (p *previews) of() (*approval.Preview, string) {
	p.t.Helper()
	id := p.pending(1)[0].ID
	p.fetch(p.t.Context(), id)
	q, _ := p.queue.State(id)
	return q.Preview, id
}

// escapedSecret is a form of the secret that JSON undoes.
var escapedSecret = strings.ReplaceAll(testSecret, "t", "\\u0074")

// things is a service that has a title, and a secret in it, for each thing.
func things(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		_, _ = io.WriteString(w, "merged")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"title":"Fix \u001b[2J it","user":{"login":%q},"secret":"the %s."}`, r.URL.Path, escapedSecret)
}

func TestAPreviewIsFetchedOnceForTheOneWhoIsAsked(t *testing.T) {
	p := newPreviews(t, things)
	got := p.later(mergeURL, `{"sha":"1"}`, "Content-Type", "application/json")
	var all sync.WaitGroup
	p.pending(1)
	for range 8 {
		all.Go(func() { p.of() })
	}
	all.Wait()
	v, id := p.of()
	if n := len(p.requests()); n != 1 {
		t.Fatalf("the upstream got %d requests, want that of the preview alone", n)
	}
	r := p.requests()[0]
	if r.Method != "GET" || r.RequestURI != "/v1/things/7" || r.Header.Get("Authorization") != "Bearer "+testSecret {
		t.Errorf("the preview is %s %s with %v", r.Method, r.RequestURI, r.Header)
	}
	want := []approval.Value{{Name: "title", Value: "Fix \x1b[2J it"}, {Name: "user.login", Value: "/v1/things/7"},
		{Name: "secret", Value: "the " + strings.Repeat("*", len(escapedSecret)) + "."}}
	if v == nil || v.Problem != "" || v.Status != 200 || !slices.Equal(v.Values, want) || v.SHA256 == "" {
		t.Errorf("the preview is %+v, want %v", v, want)
	}
	rows := p.rows()
	for _, event := range []audit.Event{audit.EventProxyStarted, audit.EventProxyProxied} {
		i := slices.IndexFunc(rows, func(r audit.Row) bool { return r.Event == event })
		if i < 0 || rows[i].Fields["preview_of"] != id || rows[i].Operation != "get" ||
			rows[i].Source != audit.SourceLauncher {
			t.Errorf("the row %s of the preview is %+v", event, rows)
		}
	}
	digest := v.SHA256
	p.approve(id)
	if status, body := got(); status != 200 || body != "merged" {
		t.Errorf("the request that was approved: %d %s", status, body)
	}
	if q, _ := p.queue.State(id); q.Preview != nil {
		t.Errorf("a question that was decided has %+v", q.Preview)
	}
	for _, r := range p.rows() {
		if r.Event == audit.EventApprovalApproved && r.Fields["preview_sha256"] != digest {
			t.Errorf("the row of the approval is %+v", r)
		}
		if text := fmt.Sprint(r); strings.Contains(text, "Fix") {
			t.Errorf("a row has what the service said: %s", text)
		}
	}
}

// What cannot be fetched is told in words of aileron's, and leaves the question as it is.
func TestAPreviewThatFailsHasAReason(t *testing.T) {
	big := strings.Repeat("x", approval.MaxPreview)
	for _, c := range []struct {
		name, target, body, want string
		answer                   http.HandlerFunc
		set                      func(*Config)
	}{
		{"not found", mergeURL, "", "the service responded with status 404", http.NotFound, nil},
		{"no JSON", mergeURL, "", "the response is not JSON", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "<html>")
		}, nil},
		{"another JSON", mergeURL, "", "the response has nothing of what is to be shown",
			func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `[]`) }, nil},
		{"too long", mergeURL, "", "the response has more than 65536 bytes", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"title":"`+big+`"}`)
		}, nil},
		{"breaks off", mergeURL, "", "the response broke off", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, `{"title":`)
		}, nil},
		{"no such input", "https://api.good.example/v1/things", `{}`, "the request has no single body part", things, nil},
		{"doubled", "https://api.good.example/v1/things", `{"part":"1","part":"2"}`, "the request has no single body part",
			things, nil},
		{"dots", "https://api.good.example/v1/things", `{"part":".."}`, "it is a dot segment of the path", things, nil},
		{"budget", mergeURL, "", "it was not sent, or failed (budget_exhausted)", things, func(c *Config) {
			c.Ledger = meter.New(meter.Options{Limits: map[string]int64{meter.Requests: 1}})
			must.Get(c.Ledger.Admit(nil, ""))(t) // it is under way
		}},
		{"asks itself", mergeURL, "", "it was not sent, or failed (approval_required)", things, func(c *Config) {
			c.AskFirst = func(a Asked) bool { return a.Target.Method == http.MethodGet }
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPreviews(t, c.answer, func(cfg *Config) {
				if c.set != nil {
					c.set(cfg)
				}
			})
			got := p.later(c.target, c.body, "Content-Type", "application/json")
			v, id := p.of()
			if v == nil || !strings.Contains(v.Problem, c.want) || len(v.Values) > 0 || v.SHA256 != "" {
				t.Errorf("the preview is %+v, want the problem %q", v, c.want)
			}
			if q, _ := p.queue.State(id); q.State != approval.Pending || q.Waiting != 1 {
				t.Errorf("the question is %+v", q)
			}
			must.Get(p.queue.Decide(t.Context(), id, approval.Decision{For: approval.Once, Surface: "cli"}))(t)
			if status, _ := got(); status != 403 {
				t.Errorf("what was denied got %d", status)
			}
		})
	}
}

// Without paths, the text of the response is shown, or its beginning.
func TestAPreviewWithoutPathsIsTheResponse(t *testing.T) {
	p := newPreviews(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "é"+strings.Repeat("é", approval.MaxPreview))
	})
	got := p.later("https://api.good.example/v1/things", `{"part":"7"}`, "Content-Type", "application/json")
	v, id := p.of()
	if v == nil || v.Problem != "" || !v.Cut || len(v.Values) != 1 || len(v.Values[0].Value) != approval.MaxPreview {
		t.Errorf("the preview is %.200s", fmt.Sprintf("%+v", v))
	}
	p.approve(id)
	got()
}

// Neither another credential nor another connector than the one that is asked about is used for a preview.
func TestAPreviewIsOfWhatIsAskedAbout(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(t *testing.T, p *previews)
		problem string
	}{
		"another credential": {func(_ *testing.T, p *previews) { p.grant("api_key/x/other") }, "another than the one"},
		"other bytes": {func(t *testing.T, p *previews) {
			changed := must.Get(spec.Load([]byte(callsManifest), []byte(previewSpec)))(t)
			changed.Hash = "sha256:2"
			p.index = must.Get(spec.NewIndex([]*spec.Connector{changed}))(t)
			p.grant("api_key/x/me")
		}, ""},
		"no connector": {func(t *testing.T, p *previews) {
			p.plane.SetGrants(&Grants{Index: must.Get(spec.NewIndex(nil))(t)})
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPreviews(t, things)
			got := p.later(mergeURL, "")
			id := p.pending(1)[0].ID
			c.change(t, p)
			p.fetch(t.Context(), id)
			q, _ := p.queue.State(id)
			if n := len(p.requests()); n != 0 || (q.Preview != nil) != (c.problem != "") ||
				q.Preview != nil && !strings.Contains(q.Preview.Problem, c.problem) {
				t.Errorf("%d requests, and the preview is %+v, want the problem %q", n, q.Preview, c.problem)
			}
			must.Get(p.queue.Decide(t.Context(), id, approval.Decision{For: approval.Once, Surface: "cli"}))(t)
			got()
		})
	}
}

// The sandbox learns the state of a question, and nothing of its preview.
func TestASandboxSeesNoPreview(t *testing.T) {
	p := newPreviews(t, things)
	got := p.later(mergeURL, "")
	_, id := p.of()
	res, body := p.do("GET", "http://aileron.internal/v1/approvals/"+id, "", "Authorization", "Bearer "+testToken)
	var state map[string]any
	if err := json.Unmarshal([]byte(body), &state); res.StatusCode != 200 || err != nil || state["state"] != "pending" ||
		strings.Contains(body, "preview") || strings.Contains(body, "Fix") {
		t.Errorf("the sandbox gets %d %s", res.StatusCode, body)
	}
	p.approve(id)
	got()
}

// An approval is for what the request names, if the operation says what that is: without it there is none to ask for.
// Where the service has another one, it is not what a person sees.
func TestAnApprovalIsForWhatTheRequestNames(t *testing.T) {
	const target, media = "https://api.good.example/v1/things/7/pinned", "application/json"
	p := newPreviews(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			_, _ = io.WriteString(w, `{"title":"T","head":{"sha":"abc"}}`)
			return
		}
		_, _ = io.WriteString(w, "merged")
	})
	for why, c := range map[string]struct{ body, media string }{
		"none":            {`{"how":"squash"}`, media},
		"no body":         {``, media},
		"null":            {`{"sha":null}`, media},
		"an object":       {`{"sha":{"a":1}}`, media},
		"twice":           {`{"sha":"abc","sha":"def"}`, media},
		"another case":    {`{"sha":"abc","SHA":"def"}`, media},
		"a form":          {`sha=abc`, "application/x-www-form-urlencoded"},
		"JSON as a form":  {`{"sha":"abc"}`, "application/x-www-form-urlencoded"},
		"another charset": {`{"sha":"abc"}`, media + "; charset=utf-16"},
		"too long":        {`{"sha":"abc","x":"` + strings.Repeat("x", approval.MaxShown) + `"}`, media},
	} {
		res, got := p.do("POST", target, c.body, "Content-Type", c.media)
		if res.StatusCode != 403 || !strings.Contains(got, "which is for one head.sha: name it as sha in the body") ||
			!strings.Contains(got, `"retriable":false`) {
			t.Errorf("%s: %d %s", why, res.StatusCode, got)
		}
	}
	if n := len(p.requests()); n != 0 || len(p.queue.List()) != 0 {
		t.Fatalf("%d requests were sent, and these are asked about: %+v", n, p.queue.List())
	}
	const another = "its sha is another than head.sha"
	for sha, differs := range map[string]string{"abc": "", "def": another, "ABC": another} {
		got := p.later(target, `{"sha":"`+sha+`"}`, "Content-Type", media+"; charset=utf-8")
		v, id := p.of()
		if v == nil || v.Problem != "" || v.Differs != differs {
			t.Errorf("%s: the preview is %+v", sha, v)
		}
		p.approve(id)
		if status, body := got(); status != 200 || body != "merged" {
			t.Errorf("%s: %d %s", sha, status, body)
		}
	}
}

// A preview that fails, as an agent can have it do by spending a budget, does not pass for one that was compared.
func TestWhatWasNotComparedIsNotSeen(t *testing.T) {
	for answer, problem := range map[string]string{
		`{"title":"T"}`:                   "the response has no head.sha",
		`{"title":"T","head":{"sha":[]}}`: "the response has no head.sha",
		`[]`:                              "the response has nothing",
		`<html>`:                          "the response is not JSON",
		"":                                "status 404",
	} {
		p := newPreviews(t, func(w http.ResponseWriter, _ *http.Request) {
			if answer == "" {
				w.WriteHeader(http.StatusNotFound)
			}
			_, _ = io.WriteString(w, answer)
		})
		got := p.later("https://api.good.example/v1/things/7/pinned", `{"sha":"abc"}`, "Content-Type", "application/json")
		v, id := p.of()
		if v == nil || !strings.Contains(v.Problem, problem) || v.Differs != "its sha was not compared with head.sha" {
			t.Errorf("%s: the preview is %+v", answer, v)
		}
		p.approve(id)
		got()
	}
}
