package trust

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
)

// What cannot be trusted is refused in one line with the fix, and changes nothing.
func TestWhatCannotBeTrustedIsRefused(t *testing.T) {
	h := newUser(t)
	refuse := func(why string, code int, args []string, want ...string) {
		t.Helper()
		r := h.run(append([]string{"ca", "trust", "--store", "nss"}, args...)...)
		if r.code != code {
			t.Errorf("%s: exit %d, want %d", why, r.code, code)
		}
		last := r.err[strings.LastIndex(strings.TrimSuffix(r.err, "\n"), "\n")+1:]
		for _, text := range append(want, "hint: ") {
			if !strings.Contains(last, text) {
				t.Errorf("%s: the last line is %q, want %q in it", why, last, text)
			}
		}
	}
	refuse("no session", 1, []string{"--yes"}, "no session runs on this host", "aileron proxy")
	ended := h.serve()
	ended.end(syscall.SIGTERM)
	refuse("a session that has ended", 1, []string{"--yes", ended.SessionID}, "its CA ended with it",
		"aileron session list")
	refuse("an id that there is not", 1, []string{"--yes", "01NONE"}, "there is none with that id")
	one := h.serve()
	refuse("no terminal", 2, []string{one.SessionID}, "no terminal to ask for confirmation on", "--yes")
	refuse("a kind that there is not", 2, []string{"--yes", "--store", "windows"}, "windows", "system, nss or java")
	two := h.serve()
	refuse("several sessions", 1, []string{"--yes"}, "2 sessions run on this host", one.SessionID, two.SessionID)
	must.Do(t, os.RemoveAll(filepath.Join(h.user, ".pki")))
	refuse("no store", 1, []string{"--yes", one.SessionID}, "no browser of this user has a database",
		"certutil -N --empty-password")
	h.checkClean("after refusals")
	if got := h.events(); len(got) > 0 {
		t.Errorf("the events are %q", got)
	}
}

// A person is asked, on a terminal, with all that is at stake; only yes is yes.
func TestAPersonIsAskedOnTheTerminal(t *testing.T) {
	h := newUser(t)
	s := h.serve()
	for _, c := range []struct {
		keys    string
		trusted bool
	}{{"\r", false}, {"n\r", false}, {"\x03", false}, {"y\r", true}} {
		screen := harness.NewScreen(t, h.command(program(), "ca", "trust", "--store", "nss"))
		for _, text := range []string{"names api.github.com, and names below them",
			"store nss " + filepath.Join(h.user, ".pki/nssdb"), "Let programs of this host trust it in 1 store?"} {
			screen.WaitFor(strings.ReplaceAll(text, " ", ""), 0)
		}
		screen.Keys(c.keys)
		harness.WaitFor(t, "the command's end", screen.Ended)
		listed := h.tool("certutil", "-L", "-d", "sql:"+filepath.Join(h.user, ".pki/nssdb"))
		if got := strings.Contains(listed, "Aileron host root "+s.SessionID); got != c.trusted {
			t.Errorf("after %q the store has the root: %v, want %v", c.keys, got, c.trusted)
		}
	}
	s.end(syscall.SIGTERM)
	h.checkClean("after the session")
}

// A store that fails is named with the reason and the fix, does not keep the others from the root, and is not said to
// have it.
func TestAStoreThatFailsIsNamedAndTheOthersStand(t *testing.T) {
	h := newUser(t)
	bad := h.database(".mozilla/firefox/bad.default")
	must.Do(t, os.WriteFile(filepath.Join(bad, "cert9.db"), []byte("no database, and not empty"), 0o600))
	foreign := h.database(".mozilla/firefox/foreign.default")
	must.Do(t, os.Chown(foreign, 65534, 65534))
	moved := h.database("data/profile")
	must.Do(t, os.Symlink(moved, filepath.Join(h.user, ".mozilla/firefox/link")))
	s := h.serve()
	r := h.run("ca", "trust", "--yes", "--store", "nss")
	for _, want := range []string{
		"failed   nss: add the root to " + bad, "is damaged, or another process holds its lock (close the browser",
		"skipped  nss: " + foreign + " belongs to the user 65534 (run the session and this command as that user)",
		"trusted  nss " + moved, "trusted  nss " + filepath.Join(h.user, ".pki/nssdb"),
	} {
		if !strings.Contains(r.out, want) {
			t.Errorf("it prints no %q: %s", want, r.out)
		}
	}
	if r.code != 1 || !strings.Contains(r.err,
		"1 of 3 stores failed; the others have it; hint: remove it from them with: "+
			"aileron ca untrust "+s.SessionID) {
		t.Errorf("exit %d: %s", r.code, r.err)
	}
	if err := os.RemoveAll(bad); err != nil { // checkClean reads it
		t.Fatal(err)
	}
	must.Do(t, os.Chown(foreign, 0, 0))
	// The link leads elsewhere at the end: what is undone is what was done.
	must.Do(t, os.Remove(filepath.Join(h.user, ".mozilla/firefox/link")))
	s.end(syscall.SIGTERM)
	h.checkClean("after the session")
	if listed := h.tool("certutil", "-L", "-d", "sql:"+moved); strings.Contains(listed, "Aileron") {
		t.Errorf("the database where the link led has %s", listed)
	}
}

// A store that cannot be changed back when the session ends is said, by the session and by doctor, and is settled by
// the first command that can.
func TestAStoreThatKeepsTheRootIsReportedUntilItDoesNot(t *testing.T) {
	h := newUser(t)
	database := filepath.Join(h.user, ".pki/nssdb/cert9.db")
	s := h.serve()
	h.must("ca", "trust", "--yes", "--store", "nss")
	kept, err := os.ReadFile(database)
	if err != nil {
		t.Fatal(err)
	}
	must.Do(t, os.WriteFile(database, []byte("no database, and not empty"), 0o600))
	must.Do(t, s.cmd.Process.Signal(syscall.SIGTERM))
	_ = s.cmd.Wait()
	left := "the root of the session " + s.SessionID + " may be in 1 trust stores still"
	for when, text := range map[string]string{
		"the session's end": s.errs.String(), "any command": h.must("session", "list").err,
		"untrust": h.run("ca", "untrust").err,
	} {
		if !strings.Contains(text, left) || !strings.Contains(text, "aileron ca untrust "+s.SessionID) {
			t.Errorf("%s: %s", when, text)
		}
	}
	if doctor := h.run("doctor").out; !strings.Contains(doctor, "FAIL  trust") {
		t.Errorf("doctor prints %s", doctor)
	}
	must.Do(t, os.WriteFile(database, kept, 0o600))
	h.must("session", "list")
	h.checkClean("after the first command that could")
}

// What scripts read.
func TestTheJSONOfTrustAndUntrust(t *testing.T) {
	h := newUser(t)
	s := h.serve()
	plain := func(text string) string {
		var v any
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		text = strings.NewReplacer(s.SessionID, "ID", h.user, "HOME").Replace(strings.TrimSpace(text))
		if m, ok := v.(map[string]any); ok {
			text = strings.NewReplacer(fmt.Sprint(m["sha256"]), "SHA256", fmt.Sprint(m["not_after"]), "TIME").Replace(text)
		}
		return text
	}
	const store = `"stores":[{"kind":"nss","path":"HOME/.pki/nssdb","state":`
	for _, c := range []struct{ got, want string }{
		{h.must("ca", "trust", "--yes", "--store", "nss", "--json").out, `{"session_id":"ID","sha256":"SHA256",` +
			`"not_after":"TIME","names":["api.github.com"],` + store + `"trusted"}]}`},
		{h.must("ca", "untrust", "--json").out, `[{"session_id":"ID",` + store + `"removed"}]}]`},
		{h.must("ca", "untrust", "--json").out, `[]`},
	} {
		if got := plain(c.got); got != c.want {
			t.Errorf("it prints %s, want %s", got, c.want)
		}
	}
}
