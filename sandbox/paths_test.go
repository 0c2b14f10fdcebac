package sandbox_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/sandbox"
)

// A project's path is whatever an archive or a repository says.
func TestAProjectsPathIsNothingButAPath(t *testing.T) {
	engines(t, func(t *testing.T, e *sandbox.Engine) {
		for name, refused := range map[string]bool{
			"with spaces and 'quotes'": false, "a,b": false, `a"b`: false, "a:b": false, "x,source=/etc": false, "x,readonly=false,source=/etc": false,
			"a,b:c": true, "a\nb": e.Kind() == "podman",
		} {
			b, out, errs := box(t, idleGateway, "ls")
			b.Dir = filepath.Join(b.Dir, name)
			if err := os.MkdirAll(b.Dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(b.Dir, "mine"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			code, err := e.Run(t.Context(), b)
			switch {
			case refused && e.Kind() == "podman":
				if err == nil || !strings.Contains(err.Error(), "rename") || out.Len() > 0 {
					t.Errorf("%q: Run = %d, %v with %q; want a refusal with its mend", name, code, err, out)
				}
			case err != nil || out.String() != "mine\n":
				t.Errorf("%q: Run = %d, %v, %s with %q; want its own file", name, code, err, errs, out)
			}
		}
	})
}

func TestAnImagesRootGroupIsNoObstacle(t *testing.T) {
	engines(t, func(t *testing.T, e *sandbox.Engine) {
		ref := derived(t, e, "rootgroup", "USER root:root")
		for _, readOnly := range []bool{false, true} {
			b, out, errs := box(t, idleGateway, "sh", "-c", "id -u; touch $HOME/mark && echo wrote")
			b.Image, b.ReadOnly = ref, readOnly
			if code, err := e.Run(t.Context(), b); err != nil || code != 0 || out.String() != "0\nwrote\n" {
				t.Errorf("Run = %d, %v, %s with %q", code, err, errs, out)
			}
		}
	})
}
