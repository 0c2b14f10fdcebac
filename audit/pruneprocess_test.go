package audit

import (
	"bufio"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit/internal/chain"
	"github.com/ALRubinger/aileron/e2e/must"
)

// TestHelperPruner is run as a process that prunes the rows before a time.
func TestHelperPruner(t *testing.T) {
	path := os.Getenv("AUDIT_HELPER_PRUNER")
	if path == "" {
		return // other tests start it
	}
	before := must.Get(time.Parse(chain.TimeFormat, os.Getenv("AUDIT_HELPER_BEFORE")))(t)
	plan := must.Get(openReader(t, path).PlanPrune(t.Context(), PruneQuery{Before: before}))(t)
	fmt.Println("planned", plan.Last)
	l := openSession(t, path, "")
	must.Get(l.Prune(t.Context(), plan, func(n int64) { fmt.Println("removed", n) }))(t)
	_, _ = l.Shrink(t.Context())
	closeLog(t, l)
	fmt.Println("done")
}

// startPruner starts a process that prunes, and returns a scanner of its output, from the plan on.
func startPruner(t testing.TB, path string, before time.Time) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run", "^TestHelperPruner$", "-test.v")
	cmd.Env = append(os.Environ(), "AUDIT_HELPER_PRUNER="+path,
		"AUDIT_HELPER_BEFORE="+before.UTC().Format(chain.TimeFormat))
	out := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "planned") {
		continue
	}
	return cmd, lines
}

// A prune may be killed at any moment: no row that stays is lost, the log verifies, and the next prune removes
// the rest.
func TestAPruneIsKilledAtAnyMoment(t *testing.T) {
	base := filepath.Join(t.TempDir(), databaseName)
	largeLog(t, base, 20000)
	home, before := filepath.Dir(base), tsOf(t, base, 19000)
	plan, err := openReader(t, base).PlanPrune(t.Context(), PruneQuery{Before: before})
	if err != nil || plan.Last < 2*pruneRows {
		t.Fatalf("the plan is %+v, %v; want three parts", plan, err)
	}
	stays := must.Get(openReader(t, base).List(t.Context(), Filter{AfterSeq: plan.Last}))(t)
	files := append([]string{"audit.checkpoints", "vault/audit.key"}, databaseName, headName, witnessName)
	for round := range 4 {
		dir := t.TempDir()
		path := filepath.Join(dir, databaseName)
		must.Do(t, os.Mkdir(filepath.Join(dir, "vault"), 0o700))
		for _, name := range files {
			copyFile(t, filepath.Join(home, name), filepath.Join(dir, name))
		}
		cmd, lines := startPruner(t, path, before)
		after := time.Duration(rand.IntN(30_000)) * time.Microsecond
		for range round {
			lines.Scan() // a part is removed
		}
		<-time.After(after)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		report := verifyPath(t, path)
		left, err := openReader(t, path).List(t.Context(), Filter{AfterSeq: plan.Last})
		if err != nil || !report.OK || len(left) < len(stays) {
			t.Fatalf("killed after %v: %d rows, %v; Verify = %+v", after, len(left), err, report)
		}
		for i, r := range stays {
			if left[i].Hash != r.Hash {
				t.Fatalf("killed after %v: row %d is another one", after, r.Seq)
			}
		}
		mustPrune(t, path, PruneQuery{Before: before})
		report = verifyPath(t, path)
		if report.Pruned == nil || report.Pruned.Last != plan.Last || report.Left != 0 {
			t.Errorf("killed after %v, and pruned again: Verify = %+v", after, report)
		}
	}
}

// Sessions write while old rows are removed, and the database is rewritten. None of them notices.
func TestSessionsWriteBesideAPrune(t *testing.T) {
	path, rows := indexedLog(t, 1)
	cmd, out := startWriter(t, path)
	reader := openReader(t, path)
	plan, err := reader.PlanPrune(t.Context(), PruneQuery{Before: rows[len(rows)-1].TS.Add(time.Hour)})
	if err != nil || plan.Last != int64(len(rows)) {
		t.Errorf("the plan is %+v, %v", plan, err)
	}
	l := openSession(t, path, "")
	if _, err := l.Prune(t.Context(), plan, nil); err != nil {
		t.Error(err)
	}
	if _, err := l.Shrink(t.Context()); err != nil {
		t.Log(err) // the writer may hold the lock for long
	}
	closeLog(t, l)
	for out.Scan() {
		if strings.HasPrefix(out.Text(), "broken") {
			t.Error(out.Text())
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the writer: %v", err)
	}
	left, report := all(t, path)
	if !report.OK || len(left) != 4*300+1 || countEvents(left, EventBroken) > 0 {
		t.Errorf("%d rows, Verify = %+v", len(left), report)
	}
}

// A prune of a log that another process has locked fails, and removes nothing.
func TestALockedLogIsNotPruned(t *testing.T) {
	impatient(t, &chain.BusyTimeout)
	home, _, second := agedHome(t)
	path := filepath.Join(home, databaseName)
	plan := must.Get(openReader(t, path).PlanPrune(t.Context(), PruneQuery{Before: second}))(t)
	l := openSession(t, path, "")
	l.lockWait.Last.Store(true) // it waits for no lock at length
	db := must.Get(sql.Open("sqlite", path+"?_txlock=immediate"))(t)
	defer db.Close()
	tx := must.Get(db.Begin())(t)
	if _, err := l.Prune(t.Context(), plan, nil); !IsLocked(err) {
		t.Errorf("Prune = %v, want that it is locked", err)
	}
	must.Do(t, tx.Rollback())
	_ = l.Close()
	if report := verifyPath(t, path); !report.OK || report.Rows != 1205 || report.Pruned != nil {
		t.Errorf("Verify = %+v", report)
	}
	mustPrune(t, path, PruneQuery{Before: second})
}

// A prune that cannot be signed removes nothing.
func TestAPruneThatCannotBeSigned(t *testing.T) {
	path, rows := indexedLog(t, 1)
	last := rows[len(rows)-1]
	plan := must.Get(openReader(t, path).PlanPrune(t.Context(), PruneQuery{Before: last.TS.Add(time.Hour)}))(t)
	l := openSession(t, path, "")
	plan.stands.Hash = "not a hash" // so that nothing can be signed
	if _, err := l.Prune(t.Context(), plan, nil); err == nil {
		t.Error("a prune that cannot be signed succeeds")
	}
	closeLog(t, l)
	if report := verifyPath(t, path); !report.OK || report.Pruned != nil || report.Rows != last.Seq {
		t.Errorf("Verify = %+v", report)
	}
}
