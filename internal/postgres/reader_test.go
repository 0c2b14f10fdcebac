package postgres_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/postgres"
	"github.com/ALRubinger/aileron/internal/review"
)

var _ review.Log = (*postgres.Reader)(nil)

// mixed adds sessions of several agents with requests of every kind to the log of a home, some without an outcome.
func mixed(t *testing.T, home string) (running string) {
	t.Helper()
	for i, agent := range []string{"claude", "codex", "opencode"} {
		running = audit.NewID()
		l := must.Get(audit.Open(filepath.Join(home, "audit.db"), audit.Options{Session: running}))(t)
		add := func(r audit.Row) {
			r.SessionID, r.Source = running, audit.SourceLauncher
			must.Get(l.Append(t.Context(), r))(t)
		}
		add(audit.Row{Event: audit.EventSessionStarted, Fields: map[string]any{"agent": agent}})
		for j := range 20 {
			request := audit.NewID()
			row := audit.Row{Event: audit.EventProxyStarted, Host: fmt.Sprintf("h%d.example", j%3), Tool: "t",
				Operation: fmt.Sprintf("o%d", j%2), Binding: "bearer/github/work", ConnectorFQN: "github://acme/github",
				RequestID: request}
			add(row)
			if j%7 == 3 {
				continue // no outcome
			}
			row.Event, row.Decision, row.Redactions = audit.EventProxyProxied, audit.DecisionProxied, j
			add(row)
		}
		add(audit.Row{Event: audit.EventSandboxRejected, Decision: audit.DecisionRejected, Reason: "host_not_allowed",
			Host: "other.example", Fields: map[string]any{"requests": 5, "text": `"requests":9`}})
		if i < 2 {
			add(audit.Row{Event: audit.EventSessionEnded})
		}
		must.Do(t, l.Close())
	}
	return running
}

// What the commands ask for is answered as the log of the host answers it.
func TestTheDatabaseAnswersAsTheLogDoes(t *testing.T) {
	name, home := database(t), t.TempDir()
	running := mixed(t, home)
	must.Get(shipper(t, home, "shipper", name).Once(t.Context()))(t)
	l := must.Get(audit.OpenReader(filepath.Join(home, "audit.db")))(t)
	defer l.Close()
	r := must.Get(postgres.OpenReader(t.Context(), open(t, "auditor", name), ""))(t)
	all := must.Get(l.List(t.Context(), audit.Filter{}))(t)
	middle := all[len(all)/2]
	for _, filter := range []audit.Filter{
		{}, {Limit: 7}, {Limit: 7, Newest: true}, {Session: running}, {Event: audit.EventSessionStarted},
		{Host: "h1.example"},
		{Decision: audit.DecisionRejected}, {Reason: "host_not_allowed"}, {Connector: "github://acme/github", Limit: 5},
		{Operation: "o1"}, {Binding: "bearer/github/work", Newest: true, Limit: 9}, {Since: middle.TS}, {Until: middle.TS},
		{NoIntents: true}, {AfterSeq: middle.Seq}, {ThroughSeq: middle.Seq}, {Sessions: []string{running}},
		{Sessions: []string{}}, {Host: "none.example"},
	} {
		for what, ask := range map[string]func(review.Log) (any, error){
			"List": func(l review.Log) (any, error) { return l.List(t.Context(), filter) },
			"Groups": func(l review.Log) (any, error) {
				return sorted(l.Groups(t.Context(), filter, audit.GroupBy{Hosts: true}))
			},
			"Unfinished": func(l review.Log) (any, error) {
				u, err := l.Unfinished(t.Context(), filter)
				return u.Rows, err
			},
			"Summarize": func(l review.Log) (any, error) {
				s, groups, err := l.Summarize(t.Context(), filter)
				groups, _ = sorted(groups, nil)
				return []any{s, groups}, err
			},
		} {
			if filter.Limit > 0 && what != "List" {
				continue // which rows are counted is the log's own
			}
			want, err := ask(l)
			must.Do(t, err)
			got, err := ask(r)
			if a, b := text(t, got), text(t, want); err != nil || a != b {
				t.Errorf("%s(%+v) = %.300s, %v, want %.300s", what, filter, a, err, b)
			}
		}
	}
	for _, id := range []string{middle.ID, middle.ID[:20], all[0].ID} {
		got, want := must.Get(r.Find(t.Context(), id, 9))(t), must.Get(l.Find(t.Context(), id, 9))(t)
		if got, want := text(t, got), text(t, want); got != want {
			t.Errorf("Find(%s) = %s, want %s", id, got, want)
		}
	}
	if _, err := r.Find(t.Context(), "01ZZZ", 9); !errors.Is(err, audit.ErrNotFound) {
		t.Errorf("Find of no row: %v", err)
	}
	if start := must.Get(r.SessionStart(t.Context(), running))(t); start.Fields["agent"] != "opencode" {
		t.Errorf("SessionStart = %+v", start)
	}
	if report := must.Get(r.Verify(t.Context()))(t); !report.OK || report.Rows != all[len(all)-1].Seq {
		t.Errorf("Verify = %+v", report)
	}
}

// sorted returns groups in the order of their names: those of one time have no other.
func sorted(groups []audit.Group, err error) ([]audit.Group, error) {
	slices.SortFunc(groups, func(a, b audit.Group) int {
		if a.First.Equal(b.First) {
			return len(fmt.Sprint(a)) - len(fmt.Sprint(b))
		}
		return a.First.Compare(b.First)
	})
	return groups, err
}

func text(t *testing.T, v any) string {
	t.Helper()
	raw := must.Get(json.Marshal(v))(t)
	if string(raw) == "null" {
		return "[]"
	}
	return string(raw)
}

// Rows of several hosts are read together, in the order of their times, and followed as they arrive.
func TestRowsOfSeveralHostsAreReadAndFollowed(t *testing.T) {
	name := database(t)
	homes := []string{t.TempDir(), t.TempDir()}
	for _, home := range homes {
		write(t, home, 3, true)
		must.Get(shipper(t, home, "shipper", name).Once(t.Context()))(t)
	}
	r := must.Get(postgres.OpenReader(t.Context(), open(t, "auditor", name), ""))(t)
	rows := must.Get(r.List(t.Context(), audit.Filter{}))(t)
	inOrder := slices.IsSortedFunc(rows, func(a, b audit.Row) int { return a.TS.Compare(b.TS) })
	if len(rows) != 12 || !r.Several() || !inOrder {
		t.Errorf("List = %d rows", len(rows))
	}
	_ = r.Close()
	if _, err := postgres.OpenReader(t.Context(), open(t, "auditor", name), audit.NewID()); err == nil {
		t.Error("an origin that the database does not have is read")
	}
	f := must.Get(postgres.OpenReader(t.Context(), open(t, "auditor", name), ""))(t)
	ctx, stop := context.WithCancel(t.Context())
	seen, ended := make(chan audit.Row, 100), make(chan error, 1)
	go func() {
		ended <- f.Follow(ctx, audit.Filter{Limit: 1, Newest: true}, func(r audit.Row) error { seen <- r; return nil })
	}()
	<-seen // the newest
	session := write(t, homes[0], 2, true)
	must.Get(shipper(t, homes[0], "shipper", name).Once(t.Context()))(t)
	for n := 0; n < 4; n++ {
		select {
		case row := <-seen:
			if row.SessionID != session {
				t.Errorf("row %d of session %s is shown as new", row.Seq, row.SessionID)
			}
		case <-time.After(must.Patience(time.Minute)):
			t.Fatalf("%d rows were shown, want 4", n)
		}
	}
	stop()
	must.Do(t, <-ended)
}
