package main

import (
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
	a := &app{stdin: strings.NewReader(""), stdout: io.Discard, stderr: io.Discard, home: c.home,
		getenv: func(string) string { return "" }}
	s, err := a.openSession(t.Context(), sessionPlan{mode: "proxy", opts: &sessionOptions{}, stop: newStopRequest()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.discard()
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

func TestAVerificationThatFailsIsRecordedOnceTheLogCanBeWritten(t *testing.T) {
	o := newOwner(t)
	path, away := filepath.Join(o.home, "audit.db"), filepath.Join(o.home, "away.db")
	log, err := audit.Open(path, audit.Options{Session: audit.NewID()})
	fatal(t, err)
	_, err = log.Append(t.Context(), audit.Row{Event: audit.EventSessionStarted})
	fatal(t, err)
	fatal(t, os.Rename(path, away))
	fatal(t, os.Mkdir(path, 0o700)) // nothing can be written here
	g := &granter{s: &session{audit: log, log: slog.New(slog.DiscardHandler)}, broken: map[string]bool{}}
	g.recordBroken(t.Context(), []error{errors.New("verify: its hash differs")})
	fatal(t, os.Remove(path))
	fatal(t, os.Rename(away, path))
	fatal(t, log.Close())
	if got := o.events(); !slices.Contains(got, audit.EventConnectorVerifyFailed) {
		t.Errorf("the log has %q", got)
	}
}
