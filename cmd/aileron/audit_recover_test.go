package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/filelock"
	"github.com/ALRubinger/aileron/internal/home"
)

// overwrite damages pages in the middle of the home's audit.db.
func (c runner) overwrite() {
	c.t.Helper()
	path := filepath.Join(c.Flag, "audit.db")
	raw, err := os.ReadFile(path)
	if err != nil {
		c.t.Fatal(err)
	}
	const page = 4096
	copy(raw[len(raw)/page/2*page:], bytes.Repeat([]byte{0xa5}, page))
	must.Do(c.t, os.WriteFile(path, raw, 0o600))
}

// A damaged log is named with the way out, which works once and does not run
// beside a session.
func TestADamagedLogIsRecovered(t *testing.T) {
	c := newRunner(t)
	c.write(requests(200)...)
	c.overwrite()
	const way = "aileron audit recover"
	for _, args := range []string{"list", "list --limit 0", "export", "verify"} {
		if _, errs, code := c.run(append([]string{"audit"}, strings.Fields(args)...)...); code != 1 && args != "list" ||
			code == 1 && !strings.Contains(errs, way) {
			t.Errorf("audit %s ends with %d: %s; want the hint %q", args, code, errs, way)
		}
	}
	dir := filepath.Join(c.Flag, "sessions", audit.NewID())
	must.Do(t, os.MkdirAll(dir, 0o700))
	lock := must.Get(filelock.Locker{}.Lock(filepath.Join(dir, "lock"), unix.LOCK_EX|unix.LOCK_NB))(t)
	if _, errs, code := c.run("audit", "recover"); code != 1 || !strings.Contains(errs,
		"session "+filepath.Base(dir)+" runs") || !strings.Contains(errs, "aileron session stop ID") {
		t.Errorf("beside a session audit recover ends with %d: %s", code, errs)
	}
	_ = lock.Close()
	out, _, code := c.run("audit", "recover")
	if code != 0 || !strings.HasPrefix(out, "recovered  ") || !strings.Contains(out,
		"the old file is audit.db.damaged-") || !strings.Contains(out, "  lost: ") {
		t.Errorf("audit recover ends with %d: %s", code, out)
	}
	if out := c.ok("audit", "recover"); out != "nothing to recover: every row of audit.db can be read\n" {
		t.Errorf("again: %q", out)
	}
	row := decode[audit.Row](t, c.ok("audit", "list", "--event", string(audit.EventRecovered), "--json"))
	if row.Seq != 201 || row.Fields["lost"] == 0.0 {
		t.Errorf("audit.recovered is %+v", row)
	}
	if out := c.ok("audit", "list", "--event", string(audit.EventRecovered)); !strings.Contains(out,
		" lost, the old file is audit.db.damaged-") {
		t.Errorf("audit list shows %q", out)
	}
	if out, _, code := c.run("audit", "verify"); code != 1 || !strings.Contains(out, "are missing before it") {
		t.Errorf("audit verify ends with %d: %s", code, out)
	}
	if _, errs, code := newRunner(t).run("audit", "recover"); code != 1 || !strings.Contains(errs,
		"there is no audit.db") {
		t.Errorf("without a log it ends with %d: %s", code, errs)
	}
}

// Two versions of aileron on one home: the older one reads what it knows, says
// so, and does not write.
func TestALogOfANewerAileronIsReadAndNotWritten(t *testing.T) {
	c := newRunner(t)
	c.write(requests(5)...)
	c.tamper("PRAGMA user_version = 2")
	const newer = "audit.db is of a newer aileron: its schema is 2, and this aileron knows 1"
	if out, errs, code := c.run("audit", "list"); code != 0 || strings.Count(out, "\n") != 5 || !strings.Contains(errs,
		newer) {
		t.Errorf("audit list ends with %d: %q, %q", code, out, errs)
	}
	for _, args := range []string{"audit verify", "audit recover", "run -- true"} {
		if _, errs, code := c.run(strings.Fields(args)...); code != 1 || !strings.Contains(errs, newer) ||
			!strings.Contains(errs, "use the aileron that wrote it") {
			t.Errorf("%s ends with %d: %s", args, code, errs)
		}
	}
}

// A session on a damaged log could serve no request: it does not begin.
func TestNoSessionBeginsOnADamagedLog(t *testing.T) {
	c := newRunner(t)
	c.write(requests(200)...)
	c.overwrite()
	for range 2 {
		_, errs, code := c.run("run", "--", "true")
		if code != 1 || !strings.Contains(errs, "audit.db is damaged: row ") || !strings.Contains(errs,
			"aileron audit recover") {
			t.Errorf("it ends with %d: %s", code, errs)
		}
	}
	c.ok("audit", "recover")
	if _, errs, code := c.run("run", "--", "true"); code != 0 {
		t.Errorf("after audit recover it ends with %d: %s", code, errs)
	}
}

// The way out of a damaged log begins with ending what runs: that is shown.
func TestWhatRunsBesideADamagedLogIsShown(t *testing.T) {
	o := newOwner(t)
	o.write(requests(200)...)
	ended := make(chan int)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() {
		a := cli.New(&console.Console{Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard},
			&home.Dir{})
		ended <- Main(ctx, []string{"--home", o.Flag, "proxy"}, a)
	}()
	id := o.listed()
	until(t, "the session has begun", func() bool { return strings.Contains(o.ok("audit", "list"), "session.started") })
	o.overwrite()
	for _, args := range [][]string{{"session", "list"}, {"session", "show", id}} {
		out, errs, code := o.run(args...)
		if code != 0 || !strings.Contains(out, id) || !strings.Contains(out, "running") ||
			!strings.Contains(errs, "warning: the audit log cannot be read") || !strings.Contains(errs,
			"aileron audit recover") {
			t.Errorf("%q ends with %d: %s%s", args, code, out, errs)
		}
	}
	if _, errs, code := o.run("session", "stop", id); code != 0 || !strings.Contains(errs, id+" was asked to end") {
		t.Errorf("session stop ends with %d: %s", code, errs)
	}
	if t.Failed() {
		stop()
	}
	<-ended
}
