package audit

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit/internal/chain"
	"github.com/ALRubinger/aileron/e2e/must"
)

// TestHelperWriter is run as a process that writes 300 rows in each of four goroutines or, with AUDIT_HELPER_ENDLESS,
// writes until it is killed. Each committed row is a line of its output.
func TestHelperWriter(t *testing.T) {
	path := os.Getenv("AUDIT_HELPER_WRITER")
	if path == "" {
		return // other tests start it
	}
	l, err := Open(path, Options{Session: NewID(), OnBroken: func(r Row) { fmt.Println("broken", r.Reason, r.Fields) }})
	if err != nil {
		t.Fatal(err)
	}
	var writers sync.WaitGroup
	for w := range 4 {
		host := fmt.Sprintf("w%d.example", w)
		writers.Go(func() {
			for i := 0; i < 300 || os.Getenv("AUDIT_HELPER_ENDLESS") != ""; i++ {
				if i%3 == 0 {
					_ = l.AppendSoon(context.Background(), Row{Event: EventProxyProxied, Status: i, Host: host})
					continue
				}
				r, err := l.Append(context.Background(), Row{Event: EventProxyStarted, Host: host, Path: fmt.Sprintf("/%d", i)})
				if err != nil {
					t.Error(err)
					return
				}
				fmt.Println("row", r.ID)
			}
		})
	}
	writers.Wait()
	closeLog(t, l)
}

// startWriter starts a process that writes, and returns a scanner of its output.
func startWriter(t testing.TB, path string, env ...string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run", "^TestHelperWriter$", "-test.v")
	cmd.Env = append(append(os.Environ(), "AUDIT_HELPER_WRITER="+path), env...)
	out := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	return cmd, bufio.NewScanner(out)
}

// Processes that write at the same time never take each other's rows for tampering.
func TestHonestProcessesRaiseNoAlarm(t *testing.T) {
	path := filepath.Join(t.TempDir(), databaseName)
	var running sync.WaitGroup
	for range 3 {
		running.Go(func() {
			for range 2 { // sessions come and go beside others
				cmd, out := startWriter(t, path)
				for out.Scan() {
					if line := out.Text(); len(line) > 6 && line[:6] == "broken" {
						t.Error(line)
					}
				}
				if err := cmd.Wait(); err != nil {
					t.Errorf("writer: %v", err)
				}
			}
		})
	}
	running.Wait()
	rows, report := all(t, path)
	if !report.OK || len(rows) != 3*2*4*300 {
		t.Errorf("%d rows; Verify = %+v", len(rows), report)
	}
	dir := filepath.Dir(path)
	known, err := chain.ReadHeads(filepath.Join(dir, headName), filepath.Join(dir, witnessName))
	if err != nil || len(known.Lines) != 6 || known.Witness.Line.Number != 6 || known.Expected().Seq != report.Rows {
		t.Errorf("audit.head has %d lines, the witness counts %d, the newest head is row %d: %v; want a line for each writer",
			len(known.Lines), known.Witness.Line.Number, known.Expected().Seq, err)
	}
}

// Writers that create a home at the same time do not take each other's files for tampering, nor does a reader beside
// them.
func TestTheFirstWritersOfAHomeRaiseNoAlarm(t *testing.T) {
	for round := range 20 {
		path := filepath.Join(t.TempDir(), databaseName)
		var begin sync.WaitGroup
		for range 4 {
			begin.Go(func() {
				l, err := Open(path, Options{OnBroken: func(r Row) { t.Errorf("round %d: %s %v", round, r.Reason, r.Fields) }})
				if err != nil {
					t.Error(err)
					return
				}
				for i := range 3 {
					if _, err := l.Append(context.Background(), Row{Event: EventProxyProxied, Status: i}); err != nil {
						t.Error(err)
					}
				}
				if err := l.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		begin.Go(func() {
			for range 20 {
				l, err := OpenReader(path)
				if err != nil {
					continue // not yet
				}
				if report, err := l.Verify(context.Background()); err == nil && !report.OK && report.Rows > 0 {
					t.Errorf("round %d: a reader finds %s", round, whys(report))
				}
				_ = l.Close()
			}
		})
		begin.Wait()
		if rows, report := all(t, path); !report.OK || len(rows) != 12 {
			t.Fatalf("round %d: %d rows; Verify = %+v", round, len(rows), report)
		}
	}
}

// A process that is killed at any moment leaves an intact log, and the next one has nothing to report.
func TestAKillIsNoBreach(t *testing.T) {
	path := filepath.Join(t.TempDir(), databaseName)
	var last string
	for round := range 12 {
		cmd, out := startWriter(t, path, "AUDIT_HELPER_ENDLESS=1")
		for n := 1 + rand.IntN(60); n > 0 && out.Scan(); {
			if id, ok := strings.CutPrefix(out.Text(), "row "); ok {
				last = id
				n--
			} else if strings.HasPrefix(out.Text(), "broken") {
				t.Errorf("round %d: %s", round, out.Text())
			}
		}
		_ = cmd.Process.Kill()
		for out.Scan() { // what was committed before the kill
			if id, ok := strings.CutPrefix(out.Text(), "row "); ok && len(id) == len(NewID()) {
				last = id
			}
		}
		_ = cmd.Wait()
		if round%5 == 0 {
			if _, report := all(t, path); !report.OK {
				t.Fatalf("round %d: Verify = %+v", round, report)
			}
		}
	}
	history(t, filepath.Dir(path), "after", 6)
	rows, report := all(t, path)
	found := false
	for _, r := range rows {
		found = found || r.ID == last
		if r.Event == EventBroken {
			t.Errorf("row %d reports a broken log: %s %v", r.Seq, r.Reason, r.Fields)
		}
	}
	if !report.OK || !found {
		t.Errorf("the last committed row is there: %v; Verify = %+v", found, report)
	}
}

// BenchmarkAppendAfterAPause compares the log with what is known of it before every row, as for requests more than
// groupDelay apart.
func BenchmarkAppendAfterAPause(b *testing.B) {
	l := must.Get(Open(filepath.Join(b.TempDir(), databaseName), Options{}))(b)
	defer l.Close()
	for b.Loop() {
		whileIdle(b, l, func() { l.attested, l.head.Written = time.Time{}, time.Time{} })
		appendNumbered(b, l, "bench", 1)
	}
}
