package page

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
)

// shell runs statements in SQLite's own program, and returns when they have run. The program, with its locks, stays
// until the function that is returned is called.
func shell(t *testing.T, path, statements string) (end func()) {
	t.Helper()
	program, err := exec.LookPath("sqlite3")
	if err != nil {
		t.Skip("there is no sqlite3: scripts/prepare --tests installs it where it may")
	}
	cmd := exec.CommandContext(t.Context(), program, "-bail", path)
	in := must.Get(cmd.StdinPipe())(t)
	out := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	must.Get(io.WriteString(in, ".timeout 300000\n"+statements+"\n.print done\n"))(t)
	for lines := bufio.NewScanner(out); lines.Text() != "done"; {
		if !lines.Scan() {
			t.Fatalf("sqlite3 does not run %q", statements)
		}
	}
	return func() {
		if err := in.Close(); err != nil {
			t.Error(err)
		}
		_ = cmd.Wait() // of a transaction that is rolled back, too
	}
}

// alive checks that the page has a message with words, and still does what keys ask for.
func (b *browser) alive(name, words string) {
	b.t.Helper()
	b.until(`document.querySelector("#message").innerText.includes("` + words + `")`)
	b.shoot("broken-" + name)
	b.press("?")
	b.until(`document.querySelector("#help").open`)
	b.press("\x1b")
	b.until(`!document.querySelector("#help").open`)
	if lines := eval[int](b, `document.querySelector("#message").innerText.trim().split("\n").length`); lines != 1 {
		b.t.Errorf("%s: the message has %d lines", name, lines)
	}
}

const tenRows = `document.querySelectorAll("#list .row:not([hidden]):not(.waiting)").length > 10`

// A log that is locked is one line; its rows come when the lock is released.
func TestALockedLogIsOneLine(t *testing.T) {
	path := writeLog(t)
	unlock := shell(t, path, "PRAGMA locking_mode=EXCLUSIVE; BEGIN EXCLUSIVE; SELECT count(*) FROM events;")
	b := newBrowser(t)
	b.open(serve(t, path).URL())
	b.alive("locked", "locked")
	unlock()
	b.until(tenRows)
	b.until(`document.querySelector("#message").hidden`)
}

// A log of a newer version is shown as far as it is known, with one line.
func TestANewerLogIsOneLine(t *testing.T) {
	path := writeLog(t)
	shell(t, path, "PRAGMA user_version=9;")()
	b := newBrowser(t)
	b.open(serve(t, path).URL())
	b.until(tenRows)
	b.alive("newer", "of a newer aileron")
}

// A log whose pages are overwritten while it is shown is one line, with what repairs it.
func TestADamagedLogIsOneLine(t *testing.T) {
	b, s := opened(t)
	file := must.Get(os.OpenFile(s.path, os.O_RDWR, 0))(t)
	defer file.Close()
	info := must.Get(file.Stat())(t)
	garbage := make([]byte, info.Size()-4096)
	for i := range garbage {
		garbage[i] = 0xa5
	}
	must.Get(file.WriteAt(garbage, 4096))(t)
	b.press("u")
	b.alive("damaged", "aileron audit recover")
}

// A log that vanishes while it is shown is one line, and the next one is shown.
func TestALogThatVanishesIsOneLine(t *testing.T) {
	b, s := opened(t)
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(s.path + suffix); err != nil && suffix == "" {
			t.Fatal(err)
		}
	}
	b.alive("gone", "there is no audit log")
	appendRows(t, s.path, refused(audit.NewID(), "after.example", "/", "host_not_allowed"))
	b.until(`document.querySelector("#list").innerText.includes("after.example")`)
	b.until(`document.querySelector("#message").hidden`)
}
