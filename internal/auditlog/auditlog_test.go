package auditlog_test

import (
	"bytes"
	"database/sql"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/auditlog"
	"github.com/ALRubinger/aileron/internal/hint"
)

// reporting returns a reporter that logs to a buffer.
func reporting() (auditlog.Reporter, *bytes.Buffer) {
	var out bytes.Buffer
	return auditlog.Reporter{Log: slog.New(slog.NewTextHandler(&out, nil))}, &out
}

// newLog returns the path of a log with a few pages of rows.
func newLog(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "audit.db")
	log := must.Get(audit.Open(path, audit.Options{}))(t)
	for range 200 {
		row := audit.Row{Event: audit.EventProxyProxied, Path: strings.Repeat("/items", 40)}
		must.Get(log.Append(t.Context(), row))(t)
	}
	must.Do(t, log.Close())
	return path
}

// locked returns the error of a log on which another process holds a lock.
func locked(t *testing.T) error {
	t.Helper()
	path := newLog(t)
	begin := func() error {
		db, err := sql.Open("sqlite", path)
		if err != nil {
			t.Fatal(err)
		}
		db.SetMaxOpenConns(1)
		t.Cleanup(func() { _ = db.Close() })
		_, err = db.Exec("BEGIN IMMEDIATE")
		return err
	}
	must.Do(t, begin())
	return begin()
}

// damaged returns the error of reading a log whose middle is overwritten.
func damaged(t *testing.T) error {
	t.Helper()
	path := newLog(t)
	raw := must.Get(os.ReadFile(path))(t)
	const page = 4096
	copy(raw[len(raw)/page/2*page:], bytes.Repeat([]byte{0xa5}, page))
	must.Do(t, os.WriteFile(path, raw, 0o600))
	log := must.Get(audit.OpenReader(path))(t)
	defer log.Close()
	return log.Each(t.Context(), audit.Filter{}, func(audit.Row) error { return nil })
}

// An outage has one line at its start and one at its end, however many requests
// are refused in between.
func TestAnOutageHasTwoLines(t *testing.T) {
	r, out := reporting()
	o := audit.Outage{Err: errors.New("disk full")}
	r.Outage(o)
	o.Over, o.Refused = true, 41
	r.Outage(o)
	r.Lost(2)
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	for i, want := range []string{"cannot be written: requests are refused", "refused_requests=41", "rows=2"} {
		if len(lines) != 3 || !strings.Contains(lines[i], want) {
			t.Errorf("%q, want %q in line %d", lines, want, i+1)
		}
	}
}

// A locked log does not claim that requests are refused.
func TestALockedLogServes(t *testing.T) {
	r, out := reporting()
	r.Outage(audit.Outage{Err: unix.EWOULDBLOCK, Admitting: true})
	for _, want := range []string{"level=WARN", "requests are served until", "end it and try again"} {
		if got := out.String(); !strings.Contains(got, want) || strings.Contains(got, "requests are refused") {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestDamageAndChangesAreLogged(t *testing.T) {
	r, out := reporting()
	r.Damaged(&audit.DamageError{Seq: 7, Err: errors.New("no page")})
	r.Damaged(nil)
	r.Broken(audit.Row{ID: "01BROKEN", Event: audit.EventBroken, Reason: "rows_missing"})
	for _, want := range []string{
		"level=ERROR msg=\"the audit log is damaged: requests are refused;", " row=7 ",
		"level=WARN msg=\"the audit log can be read again: requests are served\"",
		"audit_id=01BROKEN reason=rows_missing",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the log has no %q:\n%s", want, out)
		}
	}
}

// What to do depends on why the log cannot be written.
func TestAnOutageNamesItsRemedy(t *testing.T) {
	for _, c := range []struct {
		name       string
		err        error
		hint, loss string
	}{
		{"locked", locked(t), "end it and try again", "end the process that holds a lock on audit.db"},
		{"damaged", damaged(t), "aileron audit recover", "aileron audit recover"},
		{"newer", &audit.SchemaError{}, "use the aileron that wrote it", "the next command of the aileron"},
		{"disk full", errors.New("disk full"), "", "free space on the disk of /h"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := hint.Of(auditlog.Hint(c.err)); !strings.Contains(got, c.hint) || (got == "") != (c.hint == "") {
				t.Errorf("the hint of %v is %q, want %q", c.err, got, c.hint)
			}
			r, out := reporting()
			r.Outage(audit.Outage{Err: c.err})
			if got := out.String(); !strings.Contains(got, c.hint) || strings.Contains(got, "hint=") != (c.hint != "") {
				t.Errorf("the line of %v is %q, want the hint %q", c.err, got, c.hint)
			}
			err := auditlog.LossHint(&audit.LostError{Kept: 1, Err: c.err}, "/h")
			if !strings.Contains(hint.Of(err), c.loss) {
				t.Errorf("the hint of lost rows is %q, want %q", hint.Of(err), c.loss)
			}
		})
	}
	gone := &audit.LostError{Lost: 1, Err: errors.New("disk full")}
	if got, want := hint.Of(auditlog.LossHint(gone, "/h")), "check the disk of /h"; got != want {
		t.Errorf("the hint of rows that are nowhere is %q, want %q", got, want)
	}
	if err := auditlog.LossHint(nil, "/h"); err != nil {
		t.Errorf("LossHint(nil) = %v", err)
	}
}

// A session that gets no turn names the cause, and what can be done about it.
func TestATurnThatDoesNotComeIsReportedWithItsHint(t *testing.T) {
	for err, want := range map[error]string{
		audit.ErrNoTurn: "fuser audit.lock",
		&os.PathError{Op: "open", Path: "audit.lock", Err: unix.EACCES}: "remove it",
	} {
		r, out := reporting()
		r.Turn(err)
		if line := out.String(); !strings.Contains(line, err.Error()) || !strings.Contains(line, want) {
			t.Errorf("%v is reported as %s; want %q", err, line, want)
		}
	}
}
