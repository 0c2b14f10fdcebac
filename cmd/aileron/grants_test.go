package main

import (
	"io"
	"strings"
	"sync"
	"testing"
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
