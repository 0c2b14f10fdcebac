package recipes

import (
	"os"
	"strings"
	"sync"
	"testing"
)

// needing is held while a suite looks for its images: two of its tests may
// want the same one.
var needing sync.Mutex

// Need makes sure that an engine has the images. Where some are missing it
// builds them, with a line for each on standard error; in CI, where scripts/test
// builds them before the tests, it fails: a build is no part of a test's
// time-out.
func Need(t testing.TB, engine string, images ...Image) {
	t.Helper()
	needing.Lock()
	defer needing.Unlock()
	s, err := Open(os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	missing, err := s.Missing(t.Context(), engine, images...)
	if err != nil {
		t.Fatal(err)
	}
	if len(missing) == 0 {
		return
	}
	if os.Getenv("CI") != "" {
		t.Fatal(absent(engine, missing))
	}
	if err := s.Ensure(t.Context(), engine, missing...); err != nil {
		t.Fatal(err)
	}
}

// absent is what a test says in CI of images that are not there.
func absent(engine string, missing []Image) string {
	var refs []string
	for _, img := range missing {
		refs = append(refs, img.Ref)
	}
	return engine + " does not have " + strings.Join(refs, ", ") + "\n" +
		"hint: in CI images are built before the tests: run just test, or first go run ./e2e/prepare images"
}
