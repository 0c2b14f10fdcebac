package sandbox

import (
	"os"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/sandbox/engine"
)

// What was put into a box and is not there as it was put ends the start.
func TestAFileThatDidNotArriveIsNoticed(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: needs an engine")
	}
	for _, kind := range []string{"podman", "docker"} {
		t.Run(kind, func(t *testing.T) {
			e, err := Find(t.Context(), kind, engine.Patience{})
			if err != nil {
				if os.Getenv("CI") != "" {
					t.Fatal(err)
				}
				t.Skip(err)
			}
			defer e.Close()
			image := BaseImage()
			if image, err = e.EnsureImage(t.Context(), image, "auto", t.Output()); err != nil {
				t.Fatal(err)
			}
			id := must.Get(e.CreateScratch(t.Context(), scratch(image)))(t)
			defer func() { _ = e.Remove(t.Context(), id) }()
			files := []File{
				{Path: "/etc/aileron/a.pem", Mode: 0o644, Data: []byte("a root")},
				{Path: "/usr/local/share/b.pem", Mode: 0o644, Data: []byte("a root")},
			}
			if err := e.put(t.Context(), id, engine.Layer{}, files); err != nil {
				t.Fatalf("put: %v", err)
			}
			made := must.Get(e.Inspect(t.Context(), id))(t)
			about := must.Get(e.About(t.Context()))(t)
			for _, f := range files {
				if known := made.Layer.Has(f.Path, f.Data); !known && os.Geteuid() == 0 && about.Storage == "overlay" {
					t.Errorf("the container's layer lacks %s, want it as it was put", f.Path)
				}
			}
			for name, want := range map[string]File{
				"other bytes": {Path: "/etc/aileron/a.pem", Data: []byte("A root")},
				"cut off":     {Path: "/usr/local/share/b.pem", Data: []byte("a root and more")},
				"not there":   {Path: "/etc/aileron/c.pem", Data: []byte("a root")},
				"a directory": {Path: "/etc/ssl/certs", Data: []byte("a root")},
			} {
				for _, layer := range []engine.Layer{{}, made.Layer} {
					err := e.verify(t.Context(), id, layer, []File{want})
					if err == nil || !strings.Contains(err.Error(), want.Path) {
						t.Errorf("%s: verify = %v, want an error that names %s", name, err, want.Path)
					}
				}
			}
		})
	}
}
