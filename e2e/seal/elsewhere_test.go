package seal

import (
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/e2e/recipes"
)

// elsewhere is a person whose engine runs elsewhere, as Docker Desktop and podman machine do.
func elsewhere(t *testing.T, engine string) *person {
	t.Helper()
	p := newPerson(t, engine, 0, must.OpenDir(t))
	temporary := must.ShortDir(t)
	recipes.Need(t, "podman", recipes.Base())
	e := harness.StartElsewhere(t, engine, p.project, temporary)
	t.Setenv("TMPDIR", temporary)
	e.HandOver(t, image)
	return p
}
