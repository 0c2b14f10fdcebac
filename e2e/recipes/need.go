package recipes

import (
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

// found are the images that this suite's tests have found, by engine and name.
// It is locked while one looks for more: two may want the same one.
var found struct {
	sync.Mutex
	names map[[2]string]bool
}

// Need makes sure that an engine has the images. Where some are missing it
// builds them, with a line for each on standard error; in CI, where scripts/test
// builds them before the tests, it fails: a build is no part of a test's
// time-out.
func Need(t testing.TB, engine string, images ...Image) {
	t.Helper()
	found.Lock()
	defer found.Unlock()
	images = slices.DeleteFunc(slices.Clone(images),
		func(img Image) bool { return found.names[[2]string{engine, img.Ref}] })
	if len(images) == 0 {
		return
	}
	need(t, engine, images)
	if found.names == nil {
		found.names = map[[2]string]bool{}
	}
	for _, img := range images {
		found.names[[2]string{engine, img.Ref}] = true
	}
}

func need(t testing.TB, engine string, images []Image) {
	t.Helper()
	s := must.Get(Open(os.Stderr))(t)
	defer s.Close()
	missing := must.Get(s.Missing(t.Context(), engine, images...))(t)
	if len(missing) == 0 {
		return
	}
	if os.Getenv("CI") != "" {
		t.Fatal(absent(engine, missing))
	}
	must.Do(t, s.Ensure(t.Context(), engine, missing...))
}

// absent is the message of a test in CI about images that are not there.
func absent(engine string, missing []Image) string {
	var refs []string
	for _, img := range missing {
		refs = append(refs, img.Ref)
	}
	return engine + " does not have " + strings.Join(refs, ", ") + "\n" +
		"hint: in CI images are built before the tests: run just test, or first go run ./e2e/prepare images"
}
