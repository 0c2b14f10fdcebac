package attacks

import (
	"bufio"
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
	"github.com/ALRubinger/aileron/e2e/must"
)

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
	must.Do(p.t, s.ask(n))
	s.stop()
	return s
}

// copyLog copies the database and its head, each by a rename.
func copyLog(t testing.TB, from, to string) {
	t.Helper()
	for _, name := range []string{"audit.db", "audit.head"} {
		raw, err := os.ReadFile(filepath.Join(from, name))
		at := filepath.Join(to, name)
		if err = errors.Join(err, os.WriteFile(at+".new", raw, 0o600), os.Rename(at+".new", at)); err != nil {
			t.Fatal(err)
		}
	}
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

// TestTheLogKeepsItsEvidence puts an older copy of the log in its place, between sessions of the built program or under
// one, lets ordinary rows follow, and asks audit verify. Each way to change a log is tried in package audit.
func TestTheLogKeepsItsEvidence(t *testing.T) {
	for _, running := range []bool{false, true} {
		t.Run(fmt.Sprint("running ", running), func(t *testing.T) {
			t.Parallel()
			p := newPerson(t)
			p.install("plain")
			p.visits(6)
			older := t.TempDir()
			s := p.start()
			ask := func() {
				t.Helper()
				must.Do(t, s.ask(6))
			}
			ask()
			if !running {
				s.stop() // a running session has rows that are not in the database yet
			}
			copyLog(t, p.home, older)
			if !running {
				s = p.start()
			}
			ask()
			rows := p.settled()
			last := rows[len(rows)-1]
			if !running {
				s.stop()
				p.must("audit", "verify")
				rows = p.rows(0)
				last = rows[len(rows)-1]
			}
			for _, name := range []string{"audit.db-wal", "audit.db-shm"} {
				if err := os.Remove(filepath.Join(p.home, name)); err != nil && !os.IsNotExist(err) {
					t.Fatal(err)
				}
			}
			copyLog(t, older, p.home)
			if !running {
				if e := p.run("audit", "verify"); e.code != 1 {
					t.Errorf("before the next session: audit verify: %s", e)
				}
				s = p.start()
			}
			ask()
			s.stop()
			if said := s.said.String(); strings.Count(said, "the audit log was changed") != 1 {
				t.Errorf("the session writes to standard error: %s", said)
			}
			p.wantBroken("row_missing", last)
			if said := p.visits(3).said.String(); strings.Contains(said, "the audit log was changed") {
				t.Errorf("the next session reports it again: %s", said)
			}
			p.wantBroken("row_missing", last)
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
		if said := killed.said.String() +
			stays.said.String(); strings.Contains(said, "the audit log was changed") {
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
