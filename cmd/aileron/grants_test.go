package main

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ALRubinger/aileron/audit"
)

// What is installed is read while the watch over the store replaces it; the
// race detector sees a read without the lock.
func TestConnectorsAreReadWhileTheyAreReloaded(t *testing.T) {
	c := newCLI(t)
	c.ok("connector", "install", exampleGitHub, "--yes")
	s := sessionOf(t, c.home, io.Discard)
	var reloading sync.WaitGroup
	reloading.Go(func() {
		for range 20 {
			s.grants.refresh(t.Context(), true)
		}
	})
	for range 20 {
		if len(s.placeholders()) == 0 {
			t.Error("a reload shows no connector for a moment")
		}
	}
	reloading.Wait()
}

func TestWhatASessionRecordsByTheWayWaitsForItsLog(t *testing.T) {
	o := newOwner(t)
	path, away := filepath.Join(o.home, "audit.db"), filepath.Join(o.home, "away.db")
	log, err := audit.Open(path, audit.Options{Session: audit.NewID()})
	fatal(t, err)
	_, err = log.Append(t.Context(), audit.Row{Event: audit.EventSessionStarted})
	fatal(t, err)
	fatal(t, os.Rename(path, away))
	fatal(t, os.Mkdir(path, 0o700)) // nothing can be written here
	s := &session{audit: log, log: slog.New(slog.DiscardHandler)}
	g := &granter{s: s, broken: map[string]bool{}}
	g.recordBroken(t.Context(), []error{errors.New("verify: its hash differs")})
	s.disabled(t.Context(), reasonPreflight, "the image has no shell")
	fatal(t, os.Remove(path))
	fatal(t, os.Rename(away, path))
	fatal(t, log.Close())
	for _, want := range []string{audit.EventConnectorVerifyFailed, audit.EventSandboxDisabled} {
		if got := o.events(); !slices.Contains(got, want) {
			t.Errorf("the log has %q, want %s", got, want)
		}
	}
}

// sessionOf opens a session of the home, which logs to stderr.
func sessionOf(t *testing.T, home string, stderr io.Writer) *session {
	t.Helper()
	a := &app{stdin: strings.NewReader(""), stdout: io.Discard, stderr: stderr, home: home, logLevel: "warn",
		getenv: func(string) string { return "" }}
	s, err := a.openSession(t.Context(), sessionPlan{mode: "proxy", opts: &sessionOptions{}, stop: newStopRequest()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.discard() })
	return s
}

// A vault whose format cannot be read is not one whose bindings changed. What
// fails at every load is logged once, and again when it fails anew.
func TestWhatFailsAtEveryLoadIsLoggedOnce(t *testing.T) {
	o := withConnectors(t)
	o.ok("binding", "setup", githubFQN, "--secret-file", o.file("token", testToken))
	o.ok("vault", "lock") // the session needs no passphrase
	var errs bytes.Buffer
	s := sessionOf(t, o.home, &errs)
	for _, dir := range []string{"vault", "store"} {
		blocked := filepath.Join(o.home, dir, "format")
		for round := range 2 {
			if err := os.Mkdir(blocked, 0o700); err != nil { // reading a directory fails
				t.Fatal(err)
			}
			for range 5 {
				s.grants.refresh(t.Context(), true)
			}
			if err := os.Remove(blocked); err != nil {
				t.Fatal(err)
			}
			s.grants.refresh(t.Context(), true)
			said := errs.String()
			errs.Reset()
			if strings.Count(said, "\n") != 1 || !strings.Contains(said, "could not be read; requests that need it are refused until it can") {
				t.Errorf("%s, time %d: %q, want one line that says it could not be read", dir, round+1, said)
			}
		}
	}
	for _, dir := range []string{"vault", "store"} {
		if err := os.Mkdir(filepath.Join(o.home, dir, "format"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	g := s.grants
	for range 5 {
		g.refresh(t.Context(), true)
		g.complain("another thing", errors.New("of every load"))
	}
	if said := errs.String(); strings.Count(said, "\n") != 2 {
		t.Errorf("two faults, five loads: %q, want two lines", said)
	}
}
