package changes

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/home"
)

// recorder records in a home of its own.
type recorder struct {
	Recorder
	t      *testing.T
	warned string
}

func newRecorder(t *testing.T) *recorder {
	t.Helper()
	r := &recorder{t: t}
	r.Dir = &home.Dir{Flag: t.TempDir(),
		Warn: func(format string, args ...any) { r.warned += fmt.Sprintf(format, args...) }}
	return r
}

// rows returns the log as it is on disk.
func (o *recorder) rows() []audit.Row {
	o.t.Helper()
	log := must.Get(audit.OpenReader(filepath.Join(o.Flag, "audit.db")))(o.t)
	defer log.Close()
	rows := must.Get(log.List(o.t.Context(), audit.Filter{}))(o.t)
	return rows
}

func (o *recorder) events() (list []audit.Event) {
	o.t.Helper()
	for _, r := range o.rows() {
		list = append(list, r.Event)
	}
	return list
}

// pendingFiles are the changes without an outcome.
func (o *recorder) pendingFiles() []string {
	list, _ := filepath.Glob(filepath.Join(o.Flag, "changes", "*"))
	return list
}

func TestAnActComesAfterItsIntent(t *testing.T) {
	o := newRecorder(t)
	acted := false
	must.Do(t, o.Enact(t.Context(), Change{What: audit.ChangeVaultLock}, func() error {
		acted = true
		if got := o.events(); !slices.Equal(got, []audit.Event{"vault.lock.started"}) || len(o.pendingFiles()) != 1 {
			t.Errorf("when it acts the log has %q, and %q is left", got, o.pendingFiles())
		}
		return nil
	}))
	if got := o.events(); !acted || !slices.Equal(got, []audit.Event{"vault.lock.started", "vault.locked"}) {
		t.Errorf("acted %v, the log has %q", acted, got)
	}
}

func TestAnActThatFailsHasAnOutcome(t *testing.T) {
	o := newRecorder(t)
	err := o.Enact(t.Context(), Change{What: audit.ChangeVaultLock}, func() error { return os.ErrInvalid })
	rows := o.rows()
	if err != os.ErrInvalid || len(rows) != 2 || rows[1].Event != "vault.lock.failed" || rows[1].Reason != "failed" {
		t.Errorf("the error is %v, the rows %+v", err, rows)
	}
}

func TestAKilledCommandWithoutAnIntentLeavesNoRow(t *testing.T) {
	o := newRecorder(t)
	log := must.Get(o.OpenLog(o.Flag))(t)
	defer log.Close()
	p := must.Get(BeginChange(t.Context(), o.Locks, log, o.Flag, Change{What: audit.ChangeVaultLock}))(t)
	whole := must.Get(os.ReadFile(p.Path))(t)
	must.Do(t, p.End(t.Context(), log, nil))
	before := len(o.rows())
	for name, raw := range map[string][]byte{
		"cut":           whole[:len(whole)/2],
		"empty":         nil,
		"no intent":     bytes.ReplaceAll(whole, []byte(p.Intent), []byte(audit.NewID())),
		"outcome there": whole,
	} {
		must.Do(t, os.WriteFile(p.Path, raw, 0o600))
		o.SettleChanges(t.Context())
		if now := o.rows(); len(now) != before || len(o.pendingFiles()) != 0 {
			t.Errorf("%s: %d rows, want %d; left %q", name, len(now), before, o.pendingFiles())
		}
	}
}

// A command that still runs settles its change itself.
func TestAChangeUnderWayIsLeftAlone(t *testing.T) {
	o := newRecorder(t)
	must.Do(t, o.Enact(t.Context(), Change{What: audit.ChangeVaultLock}, func() error {
		o.SettleChanges(t.Context())
		if got := o.pendingFiles(); len(got) != 1 || len(o.rows()) != 1 || o.warned != "" {
			t.Errorf("another command left %q and %q: %s", got, o.events(), o.warned)
		}
		return nil
	}))
	if got := o.events(); len(got) != 2 || got[1] != audit.EventVaultLocked {
		t.Errorf("the log has %q", got)
	}
}
