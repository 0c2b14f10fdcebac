package session

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/approvals"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/unixsocket"
	"github.com/ALRubinger/aileron/proxy/approval"
)

var mergeSubject = approval.Subject{Connector: "github://acme/x", Hash: "sha256:" + strings.Repeat("0", 64), Tool: "x",
	Operation: "merge", Binding: "bearer/x/me"}

// waiting asks about a request, and returns its ticket.
func waiting(t *testing.T, s *Session, path string) *approval.Ticket {
	t.Helper()
	return must.Get(s.approvals.Ask(t.Context(), approval.Request{Subject: mergeSubject, Version: "1.0.0", Method: "POST",
		Scheme: "https", Host: "x.example", Port: 443, Path: path, Body: []byte("secret body"), BodyBytes: 11,
		BodySHA256: approval.Digest([]byte("secret body")), RequestID: audit.NewID()}))(t)
}

// state returns what a ticket's question has become.
func state(t *testing.T, ticket *approval.Ticket) approval.State {
	t.Helper()
	return ticket.Wait(t.Context(), time.Time{})
}

func TestTheOwnerDecidesOnTheControlSocket(t *testing.T) {
	o := newOptions(t)
	s := open(t, o)
	must.Do(t, s.Serve(t.Context(), true))
	first, second := waiting(t, s, "/1"), waiting(t, s, "/2")
	all := must.Get(AllApprovals(t.Context(), o.Home))(t)
	if len(all) != 2 || all[0].ID != first.ID() || all[0].SessionID != s.ID() || all[0].Body != nil ||
		all[0].Agent != "curl" || all[0].Waiting != 1 {
		t.Fatalf("what waits is %+v", all)
	}
	q := must.Get(FindApproval(t.Context(), o.Home, strings.ToLower(first.ID()), true))(t)
	if string(q.Body) != "secret body" {
		t.Errorf("the question has the body %q", q.Body)
	}
	approve := approval.Decision{Approve: true, For: approval.Once, Surface: "cli"}
	got := must.Get(DecideApproval(t.Context(), o.Home, q.SessionID, q.ID, approve))(t)
	if got.State != approval.Approved || state(t, first) != approval.Approved {
		t.Errorf("it is %s, and the request sees %s", got.State, state(t, first))
	}
	if state(t, second) != approval.Pending {
		t.Error("the other one is decided too")
	}
	for want, d := range map[string]struct {
		id   string
		what approval.Decision
	}{
		"409: it is approved already (cli)":         {first.ID(), approval.Decision{For: approval.Once, Surface: "page"}},
		"404: there is no such approval":            {audit.NewID(), approve},
		"409: it is not what was shown":             {second.ID(), approval.Decision{For: approval.Once, Shown: q.Digest}},
		"400: the body is no decision":              {second.ID(), approval.Decision{Approve: true, For: "ever"}},
		"decide about x: there is no such question": {"x", approve},
	} {
		if _, err := DecideApproval(t.Context(), o.Home, s.ID(), d.id, d.what); err == nil || !strings.Contains(err.Error(),
			want) || hint.Of(err) == "" {
			t.Errorf("%+v: %v, want %s", d, err, want)
		}
	}
	if _, err := FindApproval(t.Context(), o.Home, first.ID()[:8], false); err == nil || !strings.Contains(err.Error(),
		"the ids of 2 approvals begin with") {
		t.Errorf("an ambiguous id: %v", err)
	}
	if _, err := FindApproval(t.Context(), o.Home, "../x", false); !errors.As(err, new(*UnknownApprovalError)) {
		t.Errorf("an id that is none: %v", err)
	}
	must.Do(t, RevokeApproval(t.Context(), o.Home, s.ID(), first.ID(), "cli"))
	if first.Use() {
		t.Error("a revoked approval lets its request pass")
	}
	must.Do(t, s.Close(t.Context(), 0, "done"))
	if s.Tally().Approvals != (Asked{Requested: 2, Approved: 1, Expired: 1}) {
		t.Errorf("the report counts %+v", s.Tally().Approvals)
	}
	var events []string
	for _, r := range rows(t, o.Home) {
		if name, ok := strings.CutPrefix(string(r.Event), "approval."); ok {
			events = append(events, name)
			if r.Operation != "merge" || r.Binding != "bearer/x/me" || r.Host != "x.example" || r.Fields["approval_id"] == nil {
				t.Errorf("the row of %s is %+v", name, r)
			}
		}
		if r.Event == audit.EventApprovalRequested && (r.Fields["body_bytes"] != 11.0 || r.Fields["body_sha256"] !=
			approval.Digest([]byte("secret body")) || r.Path == "") {
			t.Errorf("the question is in the log as %+v", r)
		}
	}
	if want := []string{"requested", "requested", "approved", "denied", "expired"}; !slices.Equal(events, want) {
		t.Errorf("the events are %v, want %v", events, want)
	}
	for _, name := range []string{"audit.db", "audit.db-wal"} {
		if raw, err := os.ReadFile(filepath.Join(o.Home, name)); err == nil && strings.Contains(string(raw), "secret body") {
			t.Errorf("%s has the body", name)
		}
	}
}

func TestAlwaysIsForAllSessionsOfAHome(t *testing.T) {
	o := newOptions(t)
	one, other := open(t, o), open(t, o)
	for _, s := range []*Session{one, other} {
		must.Do(t, s.Serve(t.Context(), true))
	}
	first := waiting(t, one, "/1")
	d := approval.Decision{Approve: true, For: approval.Always, Surface: "cli"}
	must.Get(DecideApproval(t.Context(), o.Home, one.ID(), first.ID(), d))(t)
	if next := waiting(t, other, "/2"); state(t, next) != approval.Approved || next.ID() != first.ID() || !next.Use() {
		t.Error("another session asks")
	}
	info := must.Get(os.Stat(filepath.Join(o.Home, "approvals", first.ID()+".json")))(t)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the file has the mode %v", info.Mode())
	}
	q := must.Get(FindApproval(t.Context(), o.Home, first.ID(), true))(t)
	if q.For != approval.Always || q.SessionID != "" {
		t.Errorf("it is listed as %+v", q)
	}
	must.Do(t, approvals.Revoke(t.Context(), o.Home, q, "cli", func() (*audit.Log, error) {
		return audit.Open(filepath.Join(o.Home, "audit.db"), audit.Options{})
	}))
	if next := waiting(t, one, "/3"); state(t, next) != approval.Pending {
		t.Error("a revoked decision approves")
	}
	if err := approvals.In(o.Home).Drop(first.ID()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
	if err := approvals.In(o.Home).Drop("../config"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an id that is a path: %v", err)
	}
}

// A file that aileron did not write decides nothing: a person is asked.
func TestARuleThatIsNotWholeDecidesNothing(t *testing.T) {
	o := newOptions(t)
	s := open(t, o)
	dir := filepath.Join(o.Home, "approvals")
	must.Do(t, os.Mkdir(dir, 0o700))
	id := audit.NewID()
	whole := `{"format":1,"id":"` + id + `","approve":true,"for":"always","connector_fqn":"github://acme/x",` +
		`"connector_hash":"` + mergeSubject.Hash + `","tool":"x","operation":"merge","binding":"bearer/x/me"}`
	for name, text := range map[string]string{
		"cut":                       whole[:len(whole)-1],
		"of another id":             strings.Replace(whole, id, audit.NewID(), 1),
		"for a session":             strings.Replace(whole, "always", "session", 1),
		"of a newer format":         strings.Replace(whole, `"format":1`, `"format":99`, 1),
		"without a hash":            strings.Replace(whole, mergeSubject.Hash, "", 1),
		"of another version's hash": strings.Replace(whole, "sha256:0", "sha256:1", 1),
	} {
		must.Do(t, os.WriteFile(filepath.Join(dir, id+".json"), []byte(text), 0o600))
		if ticket := waiting(t, s, "/"+name); state(t, ticket) != approval.Pending {
			t.Errorf("a file %s approves", name)
		}
	}
	broken := must.Get(FindApproval(t.Context(), o.Home, id, true))(t)
	desk := NewDesk(o.Home, "page", func(home string) (*audit.Log, error) {
		return audit.Open(filepath.Join(home, "audit.db"), audit.Options{})
	})
	must.Do(t, desk.TakeBack(t.Context(), broken))
	if _, err := FindApproval(t.Context(), o.Home, id, true); !errors.As(err, new(*UnknownApprovalError)) {
		t.Errorf("a broken file that was revoked: %v", err)
	}
	must.Do(t, os.WriteFile(filepath.Join(dir, id+".json"), []byte(whole), 0o600))
	if ticket := waiting(t, s, "/whole"); state(t, ticket) != approval.Approved {
		t.Errorf("a whole file: %s", state(t, ticket))
	}
}

// A session that does not respond hides no other.
func TestASessionThatHangsHidesNoOther(t *testing.T) {
	o := newOptions(t)
	hangs, s := open(t, o), open(t, o)
	hangs.closeControl()
	path := filepath.Join(hangs.dir, "control.sock")
	_ = os.Remove(path)
	l := must.Get(unixsocket.Listen(path, 0o600))(t) // a path of any length
	defer l.Close()
	ticket := waiting(t, s, "/1")
	all, err := AllApprovals(t.Context(), o.Home)
	if len(all) != 1 || all[0].ID != ticket.ID() || err == nil || !strings.Contains(err.Error(), hangs.ID()) {
		t.Errorf("%+v, %v", all, err)
	}
}

// A session asks its decider, and notes why a question is left to the owner.
func TestADeciderOfASessionIsAskedFirst(t *testing.T) {
	o := newOptions(t)
	var log must.Output
	o.Log = slog.New(slog.NewTextHandler(&log, nil))
	program := filepath.Join(t.TempDir(), "decide")
	must.Do(t, os.WriteFile(program, []byte(`#!/bin/sh
		case $(cat) in
		*'"path":"/yes"'*) echo '{"decision": "approve", "reason": "on the list"}' ;;
		*'"path":"/no"'*) echo '{"decision": "deny"}' ;;
		*) echo '{"decision": "ask", "reason": "not on the list"}' ;;
		esac`), 0o700))
	o.Decider = approvals.NewDecider(&approvals.Decider{Command: []string{program},
		Environ: approvals.NewEnviron([]string{"PATH=/usr/bin:/bin"})})
	s := open(t, o)
	must.Do(t, s.Serve(t.Context(), true))
	for path, want := range map[string]approval.State{"/yes": approval.Approved, "/no": approval.Denied} {
		ticket := waiting(t, s, path)
		if got := ticket.Wait(t.Context(), time.Now().Add(must.Patience(time.Minute))); got != want {
			t.Errorf("%s is %s\n%s", path, got, log.String())
		}
	}
	other := waiting(t, s, "/other")
	for until := time.Now().Add(must.Patience(time.Minute)); !strings.Contains(log.String(), "not on the list") &&
		time.Now().Before(until); {
		<-time.After(5 * time.Millisecond)
	}
	if text := log.String(); !strings.Contains(text, other.ID()) || !strings.Contains(text, "not on the list") ||
		state(t, other) != approval.Pending {
		t.Errorf("the last one is %s, and the log\n%s", state(t, other), text)
	}
	// No other surface takes its name.
	forged := approval.Decision{Approve: true, For: approval.Once, Surface: approvals.SurfaceDecider}
	if _, err := DecideApproval(t.Context(), o.Home, s.ID(), other.ID(), forged); err == nil ||
		!strings.Contains(err.Error(), "the body is no decision") {
		t.Errorf("a decision in the name of the decider: %v", err)
	}
	must.Do(t, s.Close(t.Context(), 0, "done"))
	for _, r := range rows(t, o.Home) {
		reason, has := r.Fields["decider_reason"]
		switch r.Event {
		case audit.EventApprovalApproved:
			if reason != "on the list" || r.Fields["surface"] != "decider" || r.Fields["for"] != "once" ||
				r.Source != audit.SourceLauncher {
				t.Errorf("the row of the approval is %+v", r)
			}
		case audit.EventApprovalDenied:
			if has || r.Fields["surface"] != "decider" || r.Source != audit.SourceLauncher {
				t.Errorf("the row of the denial is %+v", r)
			}
		}
	}
	if s.Tally().Approvals != (Asked{Requested: 3, Approved: 1, Denied: 1, Expired: 2}) { // one was approved, and not used
		t.Errorf("the report counts %+v", s.Tally().Approvals)
	}
}
