package sweep

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/harness"
)

// No secret is in any output. No value of a field, query or body is in one, but in a capture.
func TestNoOutputHasACanary(t *testing.T) {
	harness.NeedEngine(t, "podman")
	p := newPerson(t)
	p.furnish()
	stops := []func(){p.follow(), p.follow("--json"), p.follow("-v")}
	s := p.serve("--learn", "--capture", filepath.Join(p.project, capture))
	s.drive()
	p.change()
	p.trust(s.SessionID)
	p.searchFiles("while a session runs")
	if n := p.searchProcesses("while a session runs"); n == 0 {
		t.Error("no process was searched")
	}
	p.run("session", "stop", s.SessionID)
	s.end(syscall.SIGTERM)
	p.serveOthers()
	p.logIn()
	p.crash()
	p.sandboxes()
	p.passwd()
	p.interrupt()
	p.others()
	p.publish()
	p.fetch()
	rows := p.rows()
	p.read(rows)
	p.readPage(rows)
	for _, stop := range stops {
		stop()
	}
	p.searchFiles("before the damage")
	p.damage()
	rows = append(rows, p.rows()...)
	p.searchFiles("at the end")
	p.searchPrinted()
	p.coverEvents(rows)
	p.coverVerbs()
	p.coverTraffic(rows)
}

// coverTraffic fails the test unless requests were sent with every credential, and every source and decision has a row.
func (p *person) coverTraffic(rows []audit.Row) {
	p.t.Helper()
	decisions, used := map[audit.Decision]bool{}, map[string]bool{}
	for _, r := range rows {
		decisions[r.Decision] = true
		if r.Decision == audit.DecisionProxied {
			used[r.Binding] = true
		}
	}
	for _, d := range audit.Decisions() {
		if !decisions[d] {
			p.t.Errorf("no row has the decision %s", d)
		}
	}
	for _, binding := range []string{"bearer/bearer/work", "api_key/query/work", "basic/basic/work", "api_key/path/work"} {
		if !used[binding] {
			p.t.Errorf("no request was sent with %s", binding)
		}
	}
}
