package auditpage

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/config"
)

// usedOf returns the last line of the response to a query.
func usedOf(v *visitor, query string) (u usage) {
	v.t.Helper()
	_, body := v.do("GET", "/api/used"+query, "", nil)
	for line := range strings.Lines(body) {
		u = usage{}
		must.Do(v.t, json.Unmarshal([]byte(line), &u))
	}
	if !u.Done || u.Error != "" {
		v.t.Fatalf("%s responds %s", query, body)
	}
	return u
}

// text returns the uses of one kind, in a line each.
func (u usage) text(by string) (lines []string) {
	for _, g := range u.Groups {
		for _, use := range g.Uses {
			if g.By == by {
				lines = append(lines, fmt.Sprintf("%s %s %d %d %s", use.Name, use.Agent, use.Requests, use.Meters["tokens"],
					use.Cost))
			}
		}
	}
	return lines
}

// Tokens and money are those of aileron audit used: by model, agent and session, of what the filter selects.
func TestWhatWasUsedIsSummed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.db")
	l := must.Get(audit.Open(path, audit.Options{}))(t)
	sessions := []string{audit.NewID(), audit.NewID()}
	slices.Sort(sessions) // two of one millisecond have no order
	for i, s := range sessions {
		must.Get(l.Append(t.Context(), audit.Row{Event: audit.EventSessionStarted, SessionID: s,
			Fields: map[string]any{"agent": []string{"claude", "codex"}[i]}}))(t)
	}
	for i := range 9 {
		r := audit.Row{Event: audit.EventProxyProxied, Decision: audit.DecisionProxied, SessionID: sessions[i%2],
			ConnectorFQN: "github://acme/model", Fields: map[string]any{"meters": map[string]any{"tokens": 1000.0},
				"meters_model": []string{"large", "small", "large"}[i%3]}}
		if i == 8 {
			r.Event, r.Decision = audit.EventProxyRejected, audit.DecisionRejected
		}
		must.Get(l.Append(t.Context(), r))(t)
	}
	must.Do(t, l.Close())
	prices := config.Prices{Currency: "EUR", Model: map[string]map[string]float64{"large": {"tokens": 500}}}
	v := visit(t, Options{Log: path, Prices: func() (config.Prices, error) { return prices, nil }})
	for _, c := range []struct {
		query, by string
		want      []string
	}{
		{"", "model", []string{"large  6 6000 3.00", "small  3 3000 "}},
		{"", "agent", []string{"claude  5 5000 2.00+", "codex  4 4000 1.00+"}},
		{"", "session", []string{sessions[0] + " claude 5 5000 2.00+", sessions[1] + " codex 4 4000 1.00+"}},
		{"?agent=codex", "model", []string{"large  2 2000 1.00", "small  2 2000 "}},
		{"?decision=rejected", "model", []string{"large  1 1000 0.50"}},
	} {
		u := usedOf(v, c.query)
		if got := u.text(c.by); fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s by %s: %q, want %q", c.query, c.by, got, c.want)
		}
		if c.want != nil && (u.Currency != "EUR" || fmt.Sprint(u.Meters) != "[tokens]") {
			t.Errorf("%s: meters %v in %q", c.query, u.Meters, u.Currency)
		}
	}
	prices = config.Prices{}
	if got := usedOf(v, "").text("model"); fmt.Sprint(got) != "[large  6 6000  small  3 3000 ]" {
		t.Errorf("without prices: %q", got)
	}
}

// Upstreams choose the names of models and connectors those of meters: a page shows no more than its bounds.
func TestWhatWasUsedIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.db")
	l := must.Get(audit.Open(path, audit.Options{}))(t)
	for i := range maxGroups + 40 {
		must.Get(l.Append(t.Context(), audit.Row{Event: audit.EventProxyProxied, Decision: audit.DecisionProxied,
			Fields: map[string]any{"meters": map[string]any{fmt.Sprint("m", i): 1.0}, "meters_model": fmt.Sprint("m", i)}}))(t)
	}
	must.Do(t, l.Close())
	u := usedOf(visit(t, Options{Log: path}), "")
	if len(u.Meters) != maxMeters || len(u.Groups[0].Uses) != maxGroups || u.Groups[0].More != 40 {
		t.Errorf("%d meters, %d models and %d more", len(u.Meters), len(u.Groups[0].Uses), u.Groups[0].More)
	}
}
