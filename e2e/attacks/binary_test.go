package attacks

import (
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
)

// TestTheBinaryHolds runs cases of each kind against the program as people
// run it, with its own store, vault, log and standard error.
func TestTheBinaryHolds(t *testing.T) {
	p := newReleased(t)
	p.bind("api", "key", "q")
	p.install("plain")
	session := p.start()
	s := &session.subject
	s.plane = nil // it has the connectors that control requests ask for
	want := []string{"LEK-01", "LEK-02", "LEK-13", "LEK-17", "LEK-18", "LEK-20", "LEK-38", "SMG-01", "SMG-11", "SMG-14",
		"SMG-22", "SMG-23", "SMG-25",
		"PTH-01", "PTH-02", "PTH-20", "PTH-22", "AUT-01", "AUT-05", "AUT-23", "HST-01", "HST-02", "HST-07", "CRD-01",
		"CRD-05", "CRD-06", "CRD-22", "UPG-04",
		"RED-01", "CON-01", "AUD-01"}
	for _, cat := range suite() {
		for _, a := range cat.cases {
			if slices.Contains(want, a.id) && a.f == nil {
				t.Run(a.id, func(t *testing.T) { report(t, a, runCase(t, s, a)) })
			}
		}
	}
	s.release()
	session.stop()
	if session.left != nil {
		t.Errorf("aileron proxy ended: %v\n%s", session.left, s.logs())
	}
	t.Run("hygiene", func(t *testing.T) { searchFiles(t, s) })
}

// The program as it is released, and the one that opens cheap vaults; each is built once.
var (
	released = sync.OnceValues(func() (string, error) {
		at := filepath.Join(on.dir, "aileron-released")
		return at, harness.BuildReleased(at, "../../cmd/aileron")
	})
	forTests = sync.OnceValues(func() (string, error) {
		return filepath.Join(on.dir, "aileron"), harness.Build(on.dir, map[string]string{"aileron": "../../cmd/aileron"})
	})
)

func program(asReleased bool) func() (string, error) {
	if asReleased {
		return released
	}
	return forTests
}
