package spec

import (
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

func TestAPathCredentialTakesItsSegment(t *testing.T) {
	tmpl := must.Get(ParseTemplate("/{bot}/send/{to}"))(t)
	if got, ok := tmpl.Replace("/placeholder/send/me", "bot", "bot1%3Ax"); !ok || got != "/bot1%3Ax/send/me" {
		t.Errorf("Replace = %q, %v", got, ok)
	}
	for _, c := range [][2]string{{"/a/b/c", "bot"}, {"/a/send/b", "nope"}, {"/../send/b", "bot"}} {
		if got, ok := tmpl.Replace(c[0], c[1], "x"); ok {
			t.Errorf("Replace(%q, %q) = %q, want nothing", c[0], c[1], got)
		}
	}
}
