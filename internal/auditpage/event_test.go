package auditpage

import (
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/review"
)

// sessionsOf writes a log of two sessions of different agents, each with an intent and its outcome, and returns their
// ids and that of the first outcome.
func sessionsOf(t *testing.T) (path string, sessions [2]string, outcome string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "audit.db")
	l := must.Get(audit.Open(path, audit.Options{}))(t)
	add := func(r audit.Row) string {
		stored := must.Get(l.Append(t.Context(), r))(t)
		return stored.ID
	}
	for i, agent := range []string{"claude", "codex"} {
		sessions[i] = audit.NewID()
		grant := map[string]any{"connector": "github://acme/github", "version": "1.2.0", "hash": "sha256:abc"}
		add(audit.Row{Event: audit.EventSessionStarted, SessionID: sessions[i],
			Fields: map[string]any{"agent": agent, "mode": "sandbox", "grants": []any{grant}}})
		r := audit.Row{Event: audit.EventProxyStarted, SessionID: sessions[i], ConnectorFQN: "github://acme/github",
			ConnectorVersion: "1.2.0", Operation: "issues.get", Binding: "bearer/github/work", Method: "GET",
			Host: "api.example", Path: "/" + agent, Fields: map[string]any{"request_id": audit.NewID()}}
		add(r)
		r.Event, r.Decision = audit.EventProxyProxied, audit.DecisionProxied
		if id := add(r); i == 0 {
			outcome = id
		}
	}
	must.Do(t, l.Close())
	return path, sessions, outcome
}

// An exchange has what the commands tell of it: the hash that was in force, and the slot, which the caller knows.
func TestAnExchangeIsToldWithHashAndSlot(t *testing.T) {
	path, _, _ := sessionsOf(t)
	v := visit(t, Options{Log: path, Explain: func(s *review.Story) {
		if s.ConnectorHash == "sha256:abc" {
			s.Slot = ", in header Authorization"
		}
	}})
	for _, seq := range []string{"2", "3"} { // the intent, and its outcome
		got := get[struct {
			Parts []part
			Story []pair
		}](v, "/api/event?seq="+seq)
		raw := must.Get(json.Marshal(got.Story))(t)
		for _, want := range []string{"sha256:abc", "bearer/github/work, in header Authorization", "of claude"} {
			if !strings.Contains(string(raw), want) {
				t.Errorf("row %s is told as %s, without %q", seq, raw, want)
			}
		}
		if len(got.Parts) != 2 || got.Parts[0].Seq != 2 || got.Parts[1].Seq != 3 {
			t.Errorf("row %s has the rows %+v", seq, got.Parts)
		}
	}
}

// Filters take an agent, and the beginning of a session's id; a beginning of several is refused with the ids.
func TestFiltersTakeAgentsAndBeginnings(t *testing.T) {
	path, sessions, outcome := sessionsOf(t)
	v := visit(t, Options{Log: path})
	agents := func(query string) (found []string) {
		for _, r := range get[struct{ Rows []rowLine }](v, "/api/rows?"+query).Rows {
			if r.Agent != "" && (len(found) == 0 || found[len(found)-1] != r.Agent) {
				found = append(found, r.Agent)
			}
		}
		return found
	}
	for query, want := range map[string]string{"agent=codex": "codex", "agent=none": "", "": "codex claude",
		"session=" + strings.ToLower(sessions[0][:25]): "claude"} {
		if got := strings.Join(agents(query), " "); got != want {
			t.Errorf("%q selects the sessions of %q, want %q", query, got, want)
		}
	}
	find := func(id string) (int, string) {
		res, body := v.do("GET", "/api/find?id="+url.QueryEscape(id), "", nil)
		return res.StatusCode, strings.TrimSpace(body)
	}
	for _, c := range []struct {
		id     string
		status int
		answer string
	}{
		{sessions[1], 200, sessions[1]},
		{strings.ToLower(outcome), 200, `{"seq":3}`},
		{sessions[0][:4], 400, "the ids of several"},
		{"01ZZZZ", 400, "no event and no session has an id that begins with"},
		{"<b>", 400, "no event and no session"},
	} {
		if status, body := find(c.id); status != c.status || !strings.Contains(body, c.answer) {
			t.Errorf("%q finds %d %s, want %d %s", c.id, status, body, c.status, c.answer)
		}
	}
}

// The verdict of the page is that of aileron audit verify.
func TestThePageVerifiesTheRecord(t *testing.T) {
	v := visit(t, Options{Log: rowsOf(t, 9)})
	got := get[verdict](v, "/api/verify")
	if !got.OK || !strings.Contains(got.Text, "All 9 rows") {
		t.Errorf("the record: %+v", got)
	}
	broken := verdictOf(audit.Report{Why: "row 3 has another hash", Findings: make([]audit.Finding, 2)})
	if broken.OK || broken.Text != "row 3 has another hash, and 1 more findings" {
		t.Errorf("a broken record: %+v", broken)
	}
}

// A request is the row of its outcome; one that has none is listed apart, and every row on demand.
func TestARequestIsOneRow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.db")
	session := audit.NewID()
	row := func(event audit.Event, decision audit.Decision, id string) audit.Row {
		return audit.Row{Event: event, Decision: decision, SessionID: session, Method: "GET", Host: "a.example",
			Port: 443, Path: "/" + id, Fields: map[string]any{"request_id": id}}
	}
	l := must.Get(audit.Open(path, audit.Options{}))(t)
	for _, r := range []audit.Row{
		{Event: audit.EventSessionStarted, SessionID: session},
		row(audit.EventProxyStarted, "", "one"), row(audit.EventProxyStarted, "", "two"),
		row(audit.EventProxyProxied, audit.DecisionProxied, "one"),
	} {
		must.Get(l.Append(t.Context(), r))(t)
	}
	must.Do(t, l.Close())
	v := visit(t, Options{Log: path})
	for query, want := range map[string]string{
		"/api/rows?": "4proxied 1", "/api/rows?rows=1": "4proxied 3 2 1", "/api/waiting?": "3waiting",
		"/api/rows?event=connector.proxy.started": "3 2", "/api/waiting?decision=proxied": "",
		"/api/waiting?host=b.example": "",
	} {
		var got []string
		for _, r := range get[struct{ Rows []rowLine }](v, query).Rows {
			got = append(got, fmt.Sprint(r.Seq, r.Decision))
		}
		if got := strings.Join(got, " "); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	if _, chunks := v.do("GET", "/api/chunks", "", nil); !strings.Contains(chunks, "[[4,1,2]]") {
		t.Errorf("the chunks are %s, want one of two rows", chunks)
	}
}
