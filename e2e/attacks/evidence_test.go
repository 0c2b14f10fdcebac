package attacks

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/harness"
)

// logFiles are what the audit log consists of.
var logFiles = []string{"audit.db", "audit.db-wal", "audit.db-shm", "audit.head"}

// ask sends n requests of different paths through a session, and stops at the
// first that is not answered; every third one is refused.
func (s *session) ask(n int) error {
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	c, br := &testCase{s: &s.subject}, bufio.NewReader(conn)
	for i := range n {
		host, path, want := "plain.good.test", "/v1/items", 200
		if i%3 == 2 {
			host, path, want = "evil.test", fmt.Sprintf("/%d", i), 403
		}
		_, _ = io.WriteString(conn, "GET http://"+host+path+" HTTP/1.1\r\nHost: "+host+"\r\n"+c.authorization()+"\r\n")
		if a := readAnswer(br, "GET"); a.status != want {
			return fmt.Errorf("request %d: %s (%w)", i, a, errors.Join(a.err, errRefused))
		}
	}
	return nil
}

var errRefused = errors.New("it is not answered as it should be")

// visits runs a session that sends n requests.
func (p *person) visits(n int) *session {
	p.t.Helper()
	s := p.start()
	if err := s.ask(n); err != nil {
		p.t.Fatal(err)
	}
	s.stop()
	return s
}

// copyLog copies what there is of the log's files; those that from lacks are
// removed where without says so.
func copyLog(t testing.TB, from, to string, write func(path string, raw []byte) error, names ...string) {
	t.Helper()
	for _, name := range names {
		raw, err := os.ReadFile(filepath.Join(from, name))
		if os.IsNotExist(err) {
			continue
		}
		if err = errors.Join(err, write(filepath.Join(to, name), raw)); err != nil {
			t.Fatal(err)
		}
	}
}

func inPlace(path string, raw []byte) error { return os.WriteFile(path, raw, 0o600) }

func byRename(path string, raw []byte) error {
	return errors.Join(os.WriteFile(path+".new", raw, 0o600), os.Rename(path+".new", path))
}

func (p *person) drop(names ...string) {
	p.t.Helper()
	for _, name := range names {
		if err := os.Remove(filepath.Join(p.home, name)); err != nil && !os.IsNotExist(err) {
			p.t.Fatal(err)
		}
	}
}

// edit changes the database behind aileron's back, without the triggers that would refuse it.
func (p *person) edit(query string, args ...any) {
	p.t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(p.home, "audit.db"))
	if err != nil {
		p.t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("DROP TRIGGER IF EXISTS events_update; DROP TRIGGER IF EXISTS events_delete"); err != nil {
		p.t.Fatal(err)
	}
	if _, err := db.Exec(query, args...); err != nil {
		p.t.Fatal(err)
	}
}

// rechain changes every host to another and computes all hashes again, by
// having a log of its own write the same rows.
func (p *person) rechain() {
	p.t.Helper()
	dir := p.t.TempDir()
	log, err := audit.Open(filepath.Join(dir, "audit.db"), audit.Options{})
	if err != nil {
		p.t.Fatal(err)
	}
	for _, r := range p.rows(0) {
		if r.Host != "" {
			r.Host = "innocent.example"
		}
		if _, err := log.Append(context.Background(), r); err != nil {
			p.t.Fatal(err)
		}
	}
	if err := log.Close(); err != nil {
		p.t.Fatal(err)
	}
	p.drop(logFiles[:3]...)
	copyLog(p.t, dir, p.home, inPlace, "audit.db")
}

// wantBroken wants audit verify to end with 1 and to name the row that was
// there, and one event with the reason.
func (p *person) wantBroken(reason string, lost audit.Row) {
	p.t.Helper()
	e := p.run("audit", "verify")
	if e.code != 1 || !strings.Contains(e.out, lost.Hash) || !strings.Contains(e.out, fmt.Sprintf("row %d", lost.Seq)) {
		p.t.Errorf("audit verify: %s; want exit 1 and row %d with %s", e, lost.Seq, lost.Hash)
	}
	out := strings.TrimSpace(p.must("audit", "list", "--event", "audit.broken", "--json").out)
	var r audit.Row
	if err := json.Unmarshal([]byte(out), &r); err != nil { // none, or several
		p.t.Fatalf("audit list --event audit.broken prints %q", out)
	}
	if r.Reason != reason || r.Fields["expected_hash"] != lost.Hash {
		p.t.Errorf("audit.broken has %q and %v; want %q and row %d with %s", r.Reason, r.Fields, reason, lost.Seq, lost.Hash)
	}
}

// TestTheLogKeepsItsEvidence changes the log between sessions of the built
// program, lets ordinary rows follow, and asks audit verify.
func TestTheLogKeepsItsEvidence(t *testing.T) {
	foreign := func(rows int, names ...string) func(*person, string) {
		return func(p *person, _ string) {
			other := newPerson(p.t)
			other.install("plain")
			other.visits(rows)
			p.drop(logFiles[:3]...)
			copyLog(p.t, other.home, p.home, byRename, names...)
		}
	}
	older := func(names ...string) func(*person, string) {
		return func(p *person, old string) { copyLog(p.t, old, p.home, byRename, names...) }
	}
	for _, c := range []struct {
		name   string
		change func(p *person, old string)
		reason string
	}{
		{"cut tail", func(p *person, _ string) { p.edit("DELETE FROM events WHERE seq > 8") }, "row_missing"},
		{"all rows chained again", func(p *person, _ string) { p.rechain() }, "row_changed"},
		{"head removed", func(p *person, _ string) { p.drop("audit.head") }, "head_missing"},
		{"database removed", func(p *person, _ string) { p.drop(logFiles[:3]...) }, "row_missing"},
		{"both removed", func(p *person, _ string) { p.drop(logFiles...) }, "row_missing"},
		{"longer history", foreign(40, "audit.db"), "row_changed"},
		{"shorter history", foreign(1, "audit.db"), "row_missing"},
		{"longer history with its head", foreign(40, "audit.db", "audit.head"), "row_changed"},
		{"shorter history with its head", foreign(1, "audit.db", "audit.head"), "row_missing"},
		{"older copy", older("audit.db"), "row_missing"},
		{"older copy with its head", older("audit.db", "audit.head"), "row_missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPerson(t)
			p.install("plain")
			p.visits(6)
			old := t.TempDir()
			copyLog(t, p.home, old, inPlace, logFiles...)
			p.visits(6)
			p.must("audit", "verify")
			rows := p.rows(0)
			last := rows[len(rows)-1]
			c.change(p, old)
			if e := p.run("audit", "verify"); e.code != 1 {
				t.Errorf("before the next session: audit verify: %s", e)
			}
			if said := p.visits(6).said.bytes(); strings.Count(string(said), "the audit log was changed") != 1 {
				t.Errorf("the session writes to standard error: %s", said)
			}
			p.wantBroken(c.reason, last)
			if said := p.visits(6).said.bytes(); strings.Contains(string(said), "the audit log was changed") {
				t.Errorf("the next session reports it again: %s", said)
			}
			p.wantBroken(c.reason, last)
		})
	}
}

// TestARunningSessionKeepsItsEvidence changes the log's files under a session.
func TestARunningSessionKeepsItsEvidence(t *testing.T) {
	sides := logFiles[1:3]
	for _, c := range []struct {
		name   string
		change func(p *person, old string)
		reason string
	}{
		{"cut tail", func(p *person, _ string) { p.edit("DELETE FROM events WHERE seq > 4") }, "row_missing"},
		{"head removed", func(p *person, _ string) { p.drop("audit.head") }, "head_missing"},
		{"database removed", func(p *person, _ string) { p.drop(logFiles[:3]...) }, "row_missing"},
		{"both removed", func(p *person, _ string) { p.drop(logFiles...) }, "row_missing"},
		{"older database by rename", func(p *person, old string) { copyLog(p.t, old, p.home, byRename, "audit.db") },
			"database_replaced"},
		{"older database by rename, without its log and index", func(p *person, old string) {
			p.drop(sides...)
			copyLog(p.t, old, p.home, byRename, "audit.db")
		}, "row_missing"},
		{"older database, log and index by rename", func(p *person, old string) {
			copyLog(p.t, old, p.home, byRename, logFiles[:3]...)
		}, "row_missing"},
		{"older database, log and index in place", func(p *person, old string) {
			copyLog(p.t, old, p.home, inPlace, logFiles[:3]...)
		}, "row_missing"},
		{"older pair by rename", func(p *person, old string) {
			p.drop(sides...)
			copyLog(p.t, old, p.home, byRename, "audit.db", "audit.head")
		}, "row_missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPerson(t)
			p.install("plain")
			p.visits(6)
			s := p.start()
			ask := func() {
				t.Helper()
				if err := s.ask(6); err != nil {
					t.Fatal(err)
				}
			}
			ask()
			old := t.TempDir()
			copyLog(t, p.home, old, inPlace, logFiles...)
			ask()
			rows := p.settled()
			last := rows[len(rows)-1]
			c.change(p, old)
			ask()
			s.stop()
			p.wantBroken(c.reason, last)
			if n := strings.Count(string(s.said.bytes()), "the audit log was changed"); n != 1 {
				t.Errorf("the session logs it %d times: %s", n, s.said.bytes())
			}
			p.visits(3)
			p.wantBroken(c.reason, last)
		})
	}
}

// settled returns all rows once the last request has its outcome and the head
// is written.
func (p *person) settled() []audit.Row {
	p.t.Helper()
	var rows []audit.Row
	var err error
	if !harness.Poll(patience, 5*time.Millisecond, func() bool {
		rows = p.rows(0)
		last := rows[len(rows)-1]
		var head []byte
		head, err = os.ReadFile(filepath.Join(p.home, "audit.head"))
		return err == nil && strings.Contains(string(head), last.Hash) &&
			(last.Decision != "" || last.Event == audit.EventCheckpoint)
	}) {
		p.t.Fatalf("audit.head does not get row %d: %v", rows[len(rows)-1].Seq, err)
	}
	return rows
}

// TestHonestSessionsRaiseNoAlarm runs sessions beside each other under load,
// kills some at any moment, and finds nothing to report.
func TestHonestSessionsRaiseNoAlarm(t *testing.T) {
	p := newPerson(t)
	p.install("plain")
	for round := range 6 {
		var asking sync.WaitGroup
		killed, stays := p.start(), p.start()
		for _, s := range []*session{killed, stays, killed, stays} {
			asking.Go(func() {
				if err := s.ask(60); err != nil && s == stays {
					t.Errorf("round %d: %v", round, err)
				}
			})
		}
		for range rand.IntN(40) {
			if err := killed.ask(1); err != nil {
				t.Errorf("round %d: %v", round, err)
			}
		}
		killed.kill()
		asking.Wait()
		stays.stop()
		if said := string(killed.said.bytes()) +
			string(stays.said.bytes()); strings.Contains(said, "the audit log was changed") {
			t.Errorf("round %d: %s", round, said)
		}
		if err := p.whole(); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
	}
	if out := p.must("audit", "list", "--event", "audit.broken", "--json").out; out != "" {
		t.Errorf("audit.broken: %s", out)
	}
}
