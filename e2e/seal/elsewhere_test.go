package seal

import (
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/e2e/recipes"
)

// elsewhere is a person whose Docker runs elsewhere, as Docker Desktop does.
func elsewhere(t *testing.T) *person {
	t.Helper()
	p := newPerson(t, "docker", 0, must.OpenDir(t))
	temporary := must.ShortDir(t)
	recipes.Need(t, "podman", recipes.Base())
	harness.ElsewhereDocker(t, p.project, temporary)
	t.Setenv("TMPDIR", temporary)
	harness.HandOver(t, []string{image}, "docker")
	return p
}
