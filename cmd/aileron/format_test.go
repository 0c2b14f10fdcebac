package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
)

// Two ailerons share a home, and the newer one has been there first: the older
// one names the format, says what to do, and leaves every byte.
func TestWhatANewerAileronWroteIsRefusedAndKept(t *testing.T) {
	secret := func(o owner) string { return o.file("secret", testToken+"2") }
	binding := filepath.Join("vault/bindings", githubBinding+"work.json")
	for name, c := range map[string]struct {
		file, from, to string // an edit, or a new file where from is ""
		calls          func(o owner) [][]string
	}{
		"store": {"store/format", "", "2\n", func(owner) [][]string {
			return [][]string{{"connector", "list"}, {"connector", "install", exampleGitHub, "--yes"}, {"connector", "remove",
				githubFQN},
				{"run", "--", "true"}}
		}},
		"vault": {"vault/format", "", "3\n", func(o owner) [][]string {
			return [][]string{{"binding", "list"}, {"binding", "revoke", githubBinding + "work", "--yes"}, {"vault", "unlock"},
				{"vault", "passwd", "--new-passphrase-file", o.file("fresh", "another long passphrase")}, {"vault", "lock"},
				{"binding", "setup", githubFQN, "--identity", "home", "--secret-file", secret(o)}, {"run", "--", "true"}}
		}},
		"binding": {binding, "{\n", "{\n  \"format\": 2,\n", func(o owner) [][]string {
			return [][]string{{"binding", "inspect", githubBinding + "work"}, {"binding", "revoke", githubBinding + "work",
				"--yes"},
				{"binding", "rebind", githubBinding + "work", "--secret-file", secret(o)}, {"run", "--", "true"}}
		}},
		"config": {"config.toml", "", "format = 2\n[limits]\nlater = \"x\"\n", func(owner) [][]string {
			return [][]string{{"run", "--", "true"}, {"proxy"}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			o := withConnectors(t)
			o.ok("binding", "setup", githubFQN, "--identity", "work", "--secret-file", o.file("first", testToken))
			path := filepath.Join(o.Flag, c.file)
			text := c.to
			if c.from != "" {
				old := must.Get(os.ReadFile(path))(t)
				text = strings.Replace(string(old), c.from, c.to, 1)
			}
			must.Do(t, os.WriteFile(path, []byte(text), 0o600))
			before := o.inForce()
			for _, args := range c.calls(o) {
				_, errs, code := o.run(append([]string{"--json"}, args...)...)
				if code != 1 || !strings.Contains(errs, `"reason":"newer_format"`) || !strings.Contains(errs,
					path[len(o.Flag):][:len("/vault")]) ||
					!strings.Contains(errs, "has the format ") || !strings.Contains(errs,
					"use the aileron that wrote it, or a newer one") {
					t.Errorf("%q ends with %d: %s", args, code, errs)
				}
				if now := o.inForce(); now != before {
					t.Fatalf("%q changed the home:\n%s\nwas\n%s", args, now, before)
				}
			}
		})
	}
}

// The directory of a newer aileron's session, and its change, are left to it.
func TestANewerAileronsSessionIsLeftAlone(t *testing.T) {
	o := newOwner(t)
	id := audit.NewID()
	dir := filepath.Join(o.Flag, "sessions", id)
	must.Do(t, os.MkdirAll(dir, 0o700))
	described := filepath.Join(dir, "session.json")
	must.Do(t, os.WriteFile(described, []byte(`{"format":2,"session":{"id":"`+id+`"}}`), 0o600))
	changes := filepath.Join(o.Flag, "changes")
	must.Do(t, os.MkdirAll(changes, 0o700))
	pending := filepath.Join(changes, audit.NewID()+".json")
	must.Do(t, os.WriteFile(pending, []byte(`{"format":2,"change":{"kind":"vault.lock"}}`), 0o600))
	old := time.Now().Add(-time.Hour)
	must.Do(t, os.Chtimes(dir, old, old)) // or the sweep takes it for one that begins

	_, errs, code := o.run("run", "--", "true")
	if code != 0 || strings.Count(errs, "an interrupted change is not recorded yet: "+pending+" has the format 2") != 1 {
		t.Errorf("exit %d: %s", code, errs)
	}
	for _, path := range []string{described, pending} {
		if _, err := os.Stat(path); err != nil {
			t.Errorf("it was removed: %v", err)
		}
	}
	list := o.ok("session", "show", id)
	if !strings.Contains(list, "has the format 2, and this aileron") {
		t.Errorf("session show: %s", list)
	}
	for _, r := range o.rows() {
		if r.SessionID == id {
			t.Errorf("its end was recorded: %+v", r)
		}
	}
}
