package attacks

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
)

// aud: what the audit log must and must not hold.
func aud() category {
	return category{name: "AUD", cases: join(written("audit"), []attack{
		{id: "AUD-02", does: "nothing of queries, header fields, bodies and passwords is in any file or log", f: &fixture{},
			run: audCanaries},
		{id: "AUD-04", does: "while the log cannot be written nothing leaves, and the session recovers by itself",
			run: audUnwritable},
		{id: "AUD-05", does: "killed at any point, the log tells what may have happened, and is whole", run: audKilled},
		{id: "AUD-07", does: "two hundred writers at once make one chain without a gap", run: audCrowd},
		{id: "AUD-08", does: "a clock that goes back an hour is told of, and the order stays", f: &fixture{},
			run: func(c *testCase) {
				// As if the row before had been written while the clock was right.
				_, err := c.s.plane.log.Append(context.Background(),
					audit.Row{TS: time.Now().Add(time.Hour), Event: audit.EventSandboxRejected,
						Decision: audit.DecisionRejected, Reason: "host_not_allowed",
						Fields: map[string]any{"request_id": audit.NewID()}})
				c.must(err)
				c.rows++
				c.is("the request", c.get("api.good.test", "/v1/items"), 200)
				rows := c.settledRows()
				for i, r := range rows[1:] {
					if r.Fields["clock"] != "backwards" && i == 0 || r.Seq != rows[i].Seq+1 {
						c.failf("row %d after %d says of the clock: %v", r.Seq, rows[i].Seq, r.Fields["clock"])
					}
				}
			}},
		{id: "AUD-10", does: "the box neither reads nor changes the log, and other users neither", run: func(c *testCase) {
			c.refused("a file", c.fwd("GET file://"+c.s.plane.home+"/audit.db HTTP/1.1\r\nHost: x\r\n"+c.authorization()+"\r\n"),
				malformed.as("scheme"))
			c.must(filepath.WalkDir(c.s.plane.home, func(path string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() {
					return err
				}
				info, err := d.Info()
				if err == nil && info.Mode().Perm()&0o077 != 0 {
					c.failf("%s has the mode %v", filepath.Base(path), info.Mode())
				}
				return err
			}))
		}},
	})}
}

// audCanaries sends a canary in every place that must not be kept.
func audCanaries(c *testCase) {
	c.origin("q.good.test").plays(func(v *visit) {
		v.reply(200, "BCANARY of the origin", "X-Thing", "HCANARY", "Set-Cookie", "a=HCANARY", "Location",
			"/v1/HCANARY?QCANARY")
	})
	c.origin("api.good.test").plays(func(v *visit) { v.reply(500, `{"error":"BCANARY"}`, "X-Thing", "HCANARY") })
	const fields = "X-Own: HCANARY\r\nAuthorization: Bearer HCANARY\r\nCookie: HCANARY=HCANARY\r\nX-HCANARY: 1"
	c.is("a query", c.get("q.good.test", "/v1/items?x=QCANARY", fields), 200)
	c.refused("an undeclared name", c.get("q.good.test", "/v1/items?QCANARY=QCANARY", fields), queryNotDeclared)
	c.relayed("a body", c.post("api.good.test", "/v1/items", `{"a":"BCANARY"}`, fields), 500)
	c.refused("a body to nowhere", c.post("api.good.test", "/v1/none?QCANARY", "BCANARY", fields), operationNone)
	c.refused("an escape", c.get("api.good.test", "/v1/%zz?QCANARY", fields), malformed)
	c.refused("two hosts", c.get("api.good.test", "/v1/items?QCANARY", "Host: HCANARY", fields),
		malformed.as("more than one Host"))
	c.refused("an expectation", c.post("api.good.test", "/v1/items?QCANARY", "BCANARY", "Expect: HCANARY"),
		malformed.at(417))
	for _, password := range []string{"Basic " + basicAuth("PCANARY", "PCANARY"), "Bearer PCANARY", "PCANARY"} {
		c.refused("a password", c.fwd("CONNECT api.good.test:443 HTTP/1.1\r\nHost: "+
			"api.good.test:443\r\nProxy-Authorization: "+password+"\r\n\r\n"), noToken)
	}
	c.refused("a user", c.fwd("GET http://PCANARY:PCANARY@plain.good.test/?QCANARY HTTP/1.1\r\nHost: plain.good.test\r\n"+
		c.authorization()+"\r\n"), malformed.as("no plain host"))
	c.settledRows()
	if bytes.Contains(c.s.logs(), []byte("CANARY")) {
		c.failf("the log says it")
	}
	seen := 0
	c.must(filepath.WalkDir(c.s.plane.home, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if seen++; bytes.Contains(data, []byte("CANARY")) || bytes.Contains(data, []byte(basicAuth("PCANARY", "PCANARY"))) {
			c.failf("it stands in %s", filepath.Base(path))
		}
		return err
	}))
	if seen < 3 {
		c.failf("only %d files were searched: the database, its log and its head are three", seen)
	}
}

// audUnwritable: another process's lock, a full disk, a database that is gone.
func audUnwritable(c *testCase) {
	c.elsewhere("locked", fixture{}, func(c *testCase) {
		unlock := lockLog(c.t, c.s.plane.home)
		in := c.tunnel("api.good.test")
		c.rows++
		_, err := io.WriteString(in, head("GET", "api.good.test", "/v1/items"))
		c.must(err)
		c.is("the session meanwhile", c.ask("GET", "/healthz", ""), 200)
		unlock()
		c.is("the request", readAnswer(bufio.NewReader(in), "GET"), 200)
		// Whether it left before or after: its intent was durable, in the session's journal or in the database.
		intent := func(r audit.Row) bool { return r.Event == audit.EventProxyStarted }
		outcome := func(r audit.Row) bool { return r.Event == audit.EventProxyProxied }
		rows := c.settledRows()
		if at := slices.IndexFunc(rows, intent); at < 0 || slices.IndexFunc(rows, outcome) < at {
			c.failf("the request has no intent before its outcome")
		}
	})
	c.elsewhere("removed", fixture{}, func(c *testCase) {
		c.is("before", c.get("api.good.test", "/v1/items"), 200)
		c.settledRows()
		c.rows, c.broken, c.permits = 1, 1, func(hit) bool { return true } // the first request's rows are gone with the file
		for _, name := range []string{"audit.db", "audit.db-wal", "audit.db-shm"} {
			_ = os.Remove(filepath.Join(c.s.plane.home, name))
		}
		c.after = 0
		for _, o := range on.origins {
			o.reset()
		}
		a := c.get("api.good.test", "/v1/items")
		c.rows--
		c.is("after", a, 200)
		if report, err := c.s.plane.log.Verify(context.Background()); err != nil || report.OK {
			c.failf("nothing tells that the rows before are gone: %+v, %v", report, err)
		}
	})
	p := newPerson(c.t)
	c.must(os.Mkdir(p.home, 0o700))
	c.must(syscall.Mount("tmpfs", p.home, "tmpfs", 0, "size=1m,mode=0700"))
	defer func() { _ = syscall.Unmount(p.home, syscall.MNT_DETACH) }()
	p.install("plain")
	s := p.start()
	defer s.stop()
	s.on(c, "full", func(c *testCase) {
		fill, err := os.Create(filepath.Join(p.home, "fill"))
		c.must(err)
		for size := 64 << 10; size > 0; size /= 2 {
			for err = nil; err == nil; _, err = fill.Write(make([]byte, size)) {
			}
		}
		c.must(fill.Close())
		a := answer{}
		for a.status != 503 { // until the space that it had is used up
			a = c.get("plain.good.test", "/v1/items")
			if a.status != 200 {
				c.rows--
				c.denied("the request", a, auditUnavailable)
			}
			if sent := len(c.hits("plain.good.test")); sent != c.rows {
				c.failf("%d requests left, and %d were answered", sent, c.rows)
				break
			}
		}
		c.must(os.Remove(fill.Name()))
		c.is("with room again", c.get("plain.good.test", "/v1/items"), 200)
		c.rows++ // the row of the denial, for which the journal had room, or else the row that counts it
		denied := func(r audit.Row) bool {
			if a.auditID != "" {
				return r.ID == a.auditID && r.Decision == audit.DecisionRejected &&
					r.Reason == auditUnavailable.reason && r.Status == a.status
			}
			return r.Event == audit.EventSandboxRejected && r.Reason == auditUnavailable.reason &&
				fmt.Sprint(r.Fields["requests"]) == "1"
		}
		if rows := c.settledRows(); !slices.ContainsFunc(rows, denied) {
			c.failf("no row records the request that was denied meanwhile as %q: %+v", a.auditID, rows)
		}
	})
}

// lockLog keeps every other process from writing to a log, until it is called
// back.
func lockLog(t testing.TB, home string) func() {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(home, "audit.db")+"?_txlock=immediate&_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	tx := must.Get(db.Begin())(t)
	return sync.OnceFunc(func() { _, _ = tx.Rollback(), db.Close() })
}

// whole asks SQLite and aileron itself whether a log is.
func (p *person) whole() error {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(p.home, "audit.db")+"?mode=ro")
	if err != nil {
		return err
	}
	defer db.Close()
	said := ""
	if err := db.QueryRow("PRAGMA integrity_check").Scan(&said); err != nil || said != "ok" {
		return fmt.Errorf("integrity_check: %q, %w", said, err)
	}
	if e := p.run("audit", "verify"); e.code != 0 {
		return fmt.Errorf("audit verify: %s", e)
	}
	return nil
}

// audKilled kills the built program where the intent is durable or not yet,
// where its row is only in the session's journal, and in the middle of the
// answer.
func audKilled(c *testCase) {
	const (
		atOnce       = "as soon as it is sent"
		inTheJournal = "while the database is locked"
		arrives      = "at the origin"
		inTheAnswer  = "in the answer"
	)
	p := newPerson(c.t)
	p.install("plain")
	plain := c.origin("plain.good.test")
	const kills = 16
	before, intents, unknown := int64(0), 0, 0
	for round := range kills {
		point := []string{atOnce, inTheJournal, arrives, inTheAnswer}[round%4]
		plain.reset()
		arrived, release := make(chan struct{}, 8), make(chan struct{})
		plain.plays(func(v *visit) {
			if point == inTheAnswer {
				v.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
			}
			arrived <- struct{}{}
			<-release
			v.close = true
		})
		s := p.start()
		d := &testCase{t: c.t, s: &s.subject, name: c.name}
		unlock := func() {}
		in := d.tunnel("plain.good.test")
		if point == inTheJournal {
			unlock = lockLog(c.t, p.home)
		}
		_, err := io.WriteString(in, head("GET", "plain.good.test", "/v1/items"))
		c.must(err)
		switch point {
		case atOnce:
			// The request is anywhere between the socket and the origin.
		case inTheJournal, arrives:
			d.wait("the request at the origin", arrived)
		default:
			got := make([]byte, 4)
			for all := ""; !strings.HasSuffix(all, "half"); all += string(got) {
				if _, err := io.ReadFull(in, got[:1]); err != nil {
					c.failf("%s: the answer broke off after %q", point, all)
					break
				}
				got = got[:1]
			}
		}
		s.kill()
		unlock()
		close(release)
		started := 0
		for _, r := range p.rows(before) {
			switch {
			case r.Event == audit.EventProxyStarted:
				started++
			case r.Event == audit.EventProxyUnknown: // this start's, of a session killed before
				unknown++
			case strings.HasPrefix(string(r.Event), "connector.proxy"):
				c.failf("%s: a killed process wrote %s", point, r.Event)
			}
			before = r.Seq
		}
		intents += started
		on.settle(patience) // what the process sent before its end
		hits, _ := plain.reset()
		switch {
		case point == atOnce && len(hits) <= started && started <= 1:
		case point != atOnce && len(hits) == 1 && started == 1:
		default:
			c.failf("%s: %d rows say that a request leaves, %d left", point, started, len(hits))
		}
		c.fails = append(c.fails, d.fails...)
		for _, l := range d.lines {
			_ = l.Close()
		}
	}
	p.start().stop()
	for _, r := range p.rows(before) {
		if r.Event == audit.EventProxyUnknown {
			unknown++
		}
	}
	if unknown != intents {
		c.failf("%d of %d requests under way have the row of an outcome that is not known", unknown, intents)
	}
	if err := p.whole(); err != nil {
		c.failf("%v", err)
	}
	if n := strings.Count(p.must("session", "list").out, "unclean"); n != kills {
		c.failf("%d sessions are listed as ended uncleanly, want %d", n, kills)
	}
}

// audCrowd has two hundred connections ask at once, and looks at the chain.
func audCrowd(c *testCase) {
	w := newWorld(c.t, fixture{connectors: []string{"plain"}})
	const crowd, each = 200, 5
	d := &testCase{t: c.t, s: &w.subject, name: c.name}
	var asking sync.WaitGroup
	for i := range crowd {
		asking.Go(func() {
			conn, err := net.Dial("tcp", w.addr)
			if err != nil {
				c.failf("%v", err)
				return
			}
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(patience))
			br := bufio.NewReader(conn)
			for range each {
				host, want := "plain.good.test", 200
				if i%2 == 0 {
					host, want = "evil.test", 403
				}
				_, _ = io.WriteString(conn, "GET http://"+host+"/v1/items HTTP/1.1\r\nHost: "+host+"\r\n"+d.authorization()+"\r\n")
				if a := readAnswer(br, "GET"); a.status != want {
					c.failf("%s: %s", host, a)
				}
			}
		})
	}
	c.waitAll("the answers to a crowd", &asking)
	rows := w.rows(0)
	requests := slices.DeleteFunc(slices.Clone(rows), func(r audit.Row) bool { return r.Event == audit.EventCheckpoint })
	if want := crowd*each + crowd*each/2; len(requests) != want {
		c.failf("%d rows, want %d", len(requests), want)
	}
	if !slices.IsSortedFunc(rows, func(a, b audit.Row) int { return int(a.Seq - b.Seq) }) || len(rows) > 0 &&
		rows[len(rows)-1].Seq != int64(len(rows)) {
		c.failf("the sequence has a gap")
	}
	w.stop()
	log, err := audit.OpenReader(filepath.Join(w.home, "audit.db"))
	c.must(err)
	defer log.Close()
	if report, err := log.Verify(context.Background()); err != nil || !report.OK {
		text, _ := json.Marshal(report)
		c.failf("the chain does not hold: %s, %v", text, err)
	}
}
