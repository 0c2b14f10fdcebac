package audit

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit/internal/table"
	"github.com/ALRubinger/aileron/e2e/must"
)

// TestHelperTurn is run as a process that takes its turn and keeps it until its input ends.
func TestHelperTurn(t *testing.T) {
	path := os.Getenv("AUDIT_HELPER_TURN")
	if path == "" {
		return // other tests start it
	}
	end := (&Log{path: path}).takeTurn(time.Hour)
	os.Stdout.WriteString("turn\n")
	_, _ = io.Copy(io.Discard, os.Stdin)
	end()
}

// stopInTurn starts a process and stops it in its turn. resume lets it end.
func stopInTurn(t *testing.T, path string) (resume func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run", "^TestHelperTurn$")
	cmd.Env = append(os.Environ(), "AUDIT_HELPER_TURN="+path)
	in, inErr := cmd.StdinPipe()
	out, outErr := cmd.StdoutPipe()
	must.Do(t, errors.Join(inErr, outErr, cmd.Start()))
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "turn\n" {
		t.Fatalf("the process begins with %q, %v", line, err)
	}
	must.Do(t, cmd.Process.Signal(syscall.SIGSTOP))
	return func() {
		t.Helper()
		if err := errors.Join(cmd.Process.Signal(syscall.SIGCONT), in.Close(), cmd.Wait()); err != nil {
			t.Error(err)
		}
	}
}

// turnFiles returns how many files this process has open for its turns.
func turnFiles(t *testing.T, path string) (n int) {
	t.Helper()
	entries := must.Get(os.ReadDir("/proc/self/fd"))(t)
	for _, e := range entries {
		to, _ := os.Readlink(filepath.Join("/proc/self/fd", e.Name()))
		if strings.HasPrefix(to, filepath.Join(filepath.Dir(path), table.TurnName)) {
			n++
		}
	}
	return n
}

// A process that is stopped in its turn costs the others one waiting goroutine and one file each, for any number of
// commits; that is reported once, and turns are taken again when it is over.
func TestAStoppedProcessCostsOneWaiter(t *testing.T) {
	path, session := filepath.Join(t.TempDir(), databaseName), NewID()
	reports := make(chan error, 64)
	l := must.Get(Open(path, Options{Session: session, OnTurn: func(err error) { reports <- err }}))(t)
	resume := stopInTurn(t, path)
	whileIdle(t, l, func() { l.turns.Span = time.Millisecond })
	for i := range 10 {
		appendNumbered(t, l, session, i)
		l.flush(t.Context())
		if n := l.journal.KeptRows(); n > 0 {
			t.Fatalf("%d rows are not in the database", n)
		}
	}
	if n := turnFiles(t, path); n != 1 {
		t.Errorf("after ten commits %d files are open, want 1", n)
	}
	if err := next(t, reports, "it is not reported"); !errors.Is(err, ErrNoTurn) || len(reports) > 0 {
		t.Errorf("the reports are %v and %d more", err, len(reports))
	}
	resume()
	poll(t, "the goroutine does not end", func() bool { return turnFiles(t, path) == 0 })
	appendNumbered(t, l, session, 10)
	l.flush(t.Context())
	whileIdle(t, l, func() {
		if l.turns.Missed {
			t.Error("no turn is taken any more")
		}
	})
	closeLog(t, l)
}

// The file of the queue may be removed while a process that is stopped has it, and the waiters of all logs are bounded.
func TestTheQueueIsBoundedAndCanBeMadeAnew(t *testing.T) {
	path := filepath.Join(t.TempDir(), databaseName)
	resume := stopInTurn(t, path)
	logs := make([]*Log, table.MaxAsking+5)
	for i := range logs {
		logs[i] = &Log{path: path}
		logs[i].takeTurn(time.Millisecond)()
	}
	if n := turnFiles(t, path); n != table.MaxAsking {
		t.Errorf("%d logs have %d files open, want %d", len(logs), n, table.MaxAsking)
	}
	must.Do(t, os.Remove(filepath.Join(filepath.Dir(path), table.TurnName)))
	if logs[0].takeTurn(time.Millisecond)(); logs[0].turns.Missed {
		t.Error("a new file of the queue is not used")
	}
	resume()
	poll(t, "the goroutines do not end", func() bool { return turnFiles(t, path) == 0 })
}

// A file of the queue that cannot be opened is reported once.
func TestAQueueThatCannotBeOpenedIsReportedOnce(t *testing.T) {
	path, session := filepath.Join(t.TempDir(), databaseName), NewID()
	var reports []error
	l := must.Get(Open(path, Options{Session: session, OnTurn: func(err error) { reports = append(reports, err) }}))(t)
	file := filepath.Join(filepath.Dir(path), table.TurnName)
	whileIdle(t, l, func() {
		must.Do(t, errors.Join(os.RemoveAll(file), os.Mkdir(file, 0o700)))
	})
	for i := range 3 {
		appendNumbered(t, l, session, i)
		l.flush(t.Context())
	}
	closeLog(t, l)
	if len(reports) != 1 || !errors.Is(reports[0], syscall.EISDIR) {
		t.Errorf("the reports are %v", reports)
	}
}
