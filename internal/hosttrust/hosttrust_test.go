package hosttrust

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/ca"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/hint"
)

const id = "01TEST"

// rows are a log in memory; broken makes it one that cannot be written.
type rows struct {
	all    []audit.Row
	broken error
}

func (r *rows) append(_ context.Context, row audit.Row) error {
	if r.broken == nil {
		r.all = append(r.all, row)
	}
	return r.broken
}

func (r *rows) events() (all []string) {
	for _, row := range r.all {
		all = append(all, strings.TrimSpace(string(row.Event)+" "+row.Reason))
	}
	return all
}

// newLedger returns an account, its log, and the root of a session.
func newLedger(t *testing.T) (Ledger, *rows, Root) {
	t.Helper()
	return ledgerAt(t, time.Now)
}

func ledgerAt(t *testing.T, now func() time.Time) (Ledger, *rows, Root) {
	t.Helper()
	s := must.Get(ca.NewSession(ca.Options{Session: id, HostNames: []string{"a.example"}, Now: now}))(t)
	log := &rows{}
	l := Ledger{Home: t.TempDir(), Source: audit.SourceCLI, Append: log.append}
	return l, log, Root{id, s.Host().Root, s.Host().Names}
}

// database returns a new database of NSS.
func database(t *testing.T) ca.Store {
	t.Helper()
	dir := t.TempDir()
	out, err := exec.CommandContext(t.Context(), "certutil", "-N", "--empty-password", "-d", "sql:"+dir).CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		t.Skip("certutil is not installed: scripts/prepare --tests installs it where it may")
	}
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return ca.Store{Kind: ca.NSSStore, Path: dir}
}

// breakStore makes a database one that cannot be read.
func breakStore(t *testing.T, s ca.Store) {
	t.Helper()
	must.Do(t, os.WriteFile(filepath.Join(s.Path, "cert9.db"), []byte("no database, and not empty"), 0o600))
}

func has(t *testing.T, s ca.Store) bool {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "certutil", "-L", "-d", "sql:"+s.Path).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return strings.Contains(string(out), "Aileron")
}

// trust adds the root to stores.
func trust(t *testing.T, l Ledger, root Root, stores ...ca.Store) []Outcome {
	t.Helper()
	done, _, err := l.Trust(t.Context(), stores, func(context.Context) (Root, error) { return root, nil })
	must.Do(t, err)
	return done
}

func TestWhatIsTrustedIsOnRecordUntilItIsNot(t *testing.T) {
	l, log, root := newLedger(t)
	a, b := database(t), database(t)
	trust(t, l, root, a)
	trust(t, l, root, b)
	if got := l.Records(); len(got) != 1 || got[0].Err != nil || !slices.Equal(got[0].Stores, []ca.Store{a, b}) {
		t.Errorf("the records are %+v", got)
	}
	if info, err := os.Stat(l.path(id)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the record has the mode %v, %v", info.Mode(), err)
	}
	done, err := l.Untrust(t.Context(), id)
	if err != nil || len(done) != 2 || has(t, a) || has(t, b) || len(l.Records()) != 0 {
		t.Errorf("Untrust: %+v, %v", done, err)
	}
	want := []string{"ca.trust.started", "ca.trusted", "ca.trust.started", "ca.trusted", "ca.untrust.started",
		"ca.untrusted"}
	if got := log.events(); !slices.Equal(got, want) {
		t.Errorf("the events are %q, want %q", got, want)
	}
	for i, row := range log.all {
		if row.SessionID != id || row.Fields["sha256"] != root.SHA256() || row.Source != audit.SourceCLI ||
			row.Fields["request_id"] != log.all[i/2*2].Fields["request_id"] {
			t.Errorf("the row %+v is not about the root", row)
		}
	}
	if done, err := l.Untrust(t.Context(), id); done != nil || err != nil {
		t.Errorf("again: %v, %v", done, err)
	}
}

// A store that fails does not keep the others from the root, and is not on record: it does not have it.
func TestAStoreThatFailsIsNamed(t *testing.T) {
	l, log, root := newLedger(t)
	good, bad := database(t), ca.Store{Kind: ca.NSSStore, Path: "/proc/1"}
	done := trust(t, l, root, bad, good)
	if len(done) != 2 || done[0].State != "failed" || done[0].Error == "" || done[1].State != "trusted" || !has(t, good) {
		t.Errorf("Trust: %+v", done)
	}
	last := log.all[len(log.all)-1]
	if last.Event != "ca.trusted" || !slices.Equal(last.Fields["stores"].([]string), []string{good.String()}) ||
		!slices.Equal(last.Fields["stores_failed"].([]string), []string{bad.String()}) {
		t.Errorf("the outcome is %+v", last)
	}
	l, log, root = newLedger(t)
	trust(t, l, root, ca.Store{Kind: "other", Path: t.TempDir()})
	if got := log.events(); !slices.Equal(got, []string{"ca.trust.started", "ca.trust.failed store_unavailable"}) {
		t.Errorf("without any store: %q", got)
	}
}

// A store from which the root cannot be removed stays on record, until it can.
func TestAStoreThatKeepsTheRootStaysOnRecord(t *testing.T) {
	l, log, root := newLedger(t)
	s, other := database(t), database(t)
	trust(t, l, root, s, other)
	file := filepath.Join(s.Path, "cert9.db")
	kept := must.Get(os.ReadFile(file))(t)
	breakStore(t, s)
	done, err := l.Untrust(t.Context(), id)
	if err != nil || len(done) != 2 || !done[0].Left || done[0].Hint == "" || done[1].Left || has(t, other) {
		t.Errorf("Untrust: %+v, %v", done, err)
	}
	if got := l.Records(); len(got) != 1 || !slices.Equal(got[0].Stores, []ca.Store{s}) {
		t.Errorf("the records are %+v", got)
	}
	if got := log.events(); got[len(got)-1] != "ca.untrust.failed store_unavailable" {
		t.Errorf("the events are %q", got)
	}
	must.Do(t, os.WriteFile(file, kept, 0o600))
	if _, err := l.Untrust(t.Context(), id); err != nil || has(t, s) || len(l.Records()) != 0 {
		t.Errorf("later: %v, %+v", err, l.Records())
	}
}

// What cannot be recorded is not trusted; and is removed all the same.
func TestALogThatCannotBeWrittenKeepsARootOutAndNotIn(t *testing.T) {
	l, log, root := newLedger(t)
	s := database(t)
	full := errors.New("no space left on device")
	log.broken = full
	_, _, err := l.Trust(t.Context(), []ca.Store{s}, func(context.Context) (Root, error) { return root, nil })
	if !errors.Is(err, full) || hint.Of(err) == "" || has(t, s) || len(l.Records()) != 0 {
		t.Errorf("Trust: %v; the records are %+v", err, l.Records())
	}
	log.broken = nil
	trust(t, l, root, s)
	log.broken = full
	if _, err := l.Untrust(t.Context(), id); !errors.Is(err, full) || has(t, s) || len(l.Records()) != 0 {
		t.Errorf("Untrust: %v; the records are %+v", err, l.Records())
	}
}

// The session is asked for its root while the account is locked: one that ends then finds the record.
func TestASessionThatEndsIsNotTrusted(t *testing.T) {
	l, log, _ := newLedger(t)
	ended := errors.New("the session has ended")
	_, _, err := l.Trust(t.Context(), []ca.Store{{Kind: ca.NSSStore, Path: t.TempDir()}},
		func(context.Context) (Root, error) {
			if _, err := l.Locks.Lock(filepath.Join(l.dir(), "lock"), unix.LOCK_EX|unix.LOCK_NB); !errors.Is(err,
				unix.EWOULDBLOCK) {
				t.Errorf("the account is not locked: %v", err)
			}
			return Root{}, ended
		})
	if !errors.Is(err, ended) || len(log.all) != 0 || len(l.Records()) != 0 {
		t.Errorf("Trust: %v, rows %v, records %v", err, log.events(), l.Records())
	}
}

func TestARootIsStaleWhenItsSessionOrItsTimeHasEnded(t *testing.T) {
	alive := func(string) bool { return true }
	l, _, root := newLedger(t)
	trust(t, l, root, database(t))
	if got := l.Stale(alive); got != nil {
		t.Errorf("of a session that runs: %q", got)
	}
	if got := l.Stale(func(string) bool { return false }); !slices.Equal(got, []string{id}) {
		t.Errorf("of one that does not: %q", got)
	}
	l, _, root = ledgerAt(t, func() time.Time { return time.Now().Add(-13 * time.Hour) })
	trust(t, l, root, database(t))
	if got := l.Stale(alive); !slices.Equal(got, []string{id}) {
		t.Errorf("after its end: %q", got)
	}
}

// A record is what a hostile program of this user may have written: it leads nowhere but to the removal of a root that
// has the form of a session's.
func TestAHostileRecordIsReportedAndKept(t *testing.T) {
	l, log, root := newLedger(t)
	s := database(t)
	trust(t, l, root, s)
	good, err := os.ReadFile(l.path(id))
	must.Do(t, err)
	change := func(key string, value any) []byte {
		var r map[string]any
		must.Do(t, json.Unmarshal(good, &r))
		r[key] = value
		raw := must.Get(json.Marshal(r))(t)
		return raw
	}
	log.all = nil
	for name, raw := range map[string][]byte{
		"garbage":                 {0, 1, 2},
		"nothing":                 {},
		"half of it":              good[:len(good)/2],
		"another session's":       change("session_id", "01OTHER"),
		"another fingerprint":     change("sha256", strings.Repeat("0", 64)),
		"no certificate":          change("pem", "none"),
		"a newer format":          change("format", 99),
		"a key that is unknown":   change("command", "rm"),
		"stores that are no list": change("stores", "all"),
	} {
		must.Do(t, os.WriteFile(l.path(id), raw, 0o600))
		if _, err := l.Untrust(t.Context(), id); err == nil || !strings.Contains(err.Error(), l.path(id)) {
			t.Errorf("%s: %v", name, err)
		}
		if got := l.Records(); len(got) != 1 || got[0].Err == nil {
			t.Errorf("%s: the records are %+v", name, got)
		}
	}
	must.Do(t, os.Remove(l.path(id)))
	must.Do(t, unix.Mkfifo(l.path(id), 0o600))
	if _, err := l.Untrust(t.Context(), id); err == nil {
		t.Error("a pipe is read")
	}
	must.Do(t, os.Remove(l.path(id)))
	must.Do(t, os.Symlink("/etc/passwd", l.path(id)))
	if _, err := l.Untrust(t.Context(), id); err == nil {
		t.Error("a link is followed")
	}
	if len(log.all) != 0 || !has(t, s) {
		t.Errorf("something was done: %q", log.events())
	}
	for _, name := range []string{"../../x", "", strings.Repeat("A", 27), "a"} {
		if done, err := l.Untrust(t.Context(), name); done != nil || err != nil {
			t.Errorf("the session %q: %v, %v", name, done, err)
		}
	}
}

// A record whose certificate is another one's, such as that of the machine's own CA, removes nothing.
func TestARecordOfAnotherCARemovesNothing(t *testing.T) {
	l, _, root := newLedger(t)
	s := database(t)
	trust(t, l, root, s)
	other := must.Get(ca.NewSession(ca.Options{Session: id}))(t)
	r := must.Get(l.read(id))(t)
	r.PEM, r.SHA256 = string(other.RootPEM()), fingerprint(other.Root())
	must.Do(t, l.write(r))
	done, err := l.Untrust(t.Context(), id)
	if err != nil || len(done) != 1 || !strings.Contains(done[0].Error, "not a root for this host's programs") ||
		!has(t, s) {
		t.Errorf("Untrust: %+v, %v", done, err)
	}
}

// An interrupted command removes what it has added.
func TestAnInterruptedTrustIsUndone(t *testing.T) {
	l, log, root := newLedger(t)
	a, b := database(t), database(t)
	ctx, cancel := context.WithCancel(t.Context())
	done, _, err := l.Trust(ctx, []ca.Store{a, b}, func(context.Context) (Root, error) { cancel(); return root, nil })
	if err != nil || has(t, a) || has(t, b) || len(l.Records()) != 0 || len(done) != 2 {
		t.Errorf("Trust: %+v, %v", done, err)
	}
	if got := log.events(); !slices.Equal(got, []string{"ca.trust.started", "ca.trust.failed interrupted"}) {
		t.Errorf("the events are %q", got)
	}
}
