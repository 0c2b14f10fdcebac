package sandbox_test

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/sandbox"
)

// derived is an image on top of the base, for one test.
func derived(t *testing.T, e *sandbox.Engine, name, recipe string) string {
	t.Helper()
	img := sandbox.Image{Ref: "localhost/aileron/test-" + name + ":1", Dockerfile: []byte("FROM " + testImage.Ref + "\n" + recipe + "\n")}
	if err := e.EnsureImage(t.Context(), img, "always", io.Discard); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if out, err := exec.Command(e.Kind(), "rmi", "-f", img.Ref).CombinedOutput(); err != nil {
			t.Errorf("remove %s: %v: %s", img.Ref, err, out)
		}
	})
	return img.Ref
}

func TestWhatAnImageLacksIsNamedBeforeItStarts(t *testing.T) {
	engines(t, func(t *testing.T, e *sandbox.Engine) {
		b, out, _ := box(t, idleGateway, "echo", "started")
		b.Image = derived(t, e, "ghost", "USER ghost:spirits")
		if err := os.Chmod(b.Dir, 0o777); err != nil { // whose project it is would decide, else
			t.Fatal(err)
		}
		code, err := e.Run(t.Context(), b)
		var lacks *sandbox.ImageError
		if code != 1 || !errors.As(err, &lacks) || len(lacks.Missing) != 2 || out.Len() > 0 {
			t.Fatalf("Run = %d, %v with %q; want two faults and no start", code, err, out)
		}
		for _, want := range []string{b.Image, "ghost in its /etc/passwd", "spirits in its /etc/group"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v does not name %q", err, want)
			}
		}
		r, err := e.Check(t.Context(), b)
		if err != nil || len(r.Missing) != 2 {
			t.Errorf("Check = %+v, %v; want the same faults", r, err)
		}
		b.Image, b.Needs = testImage.Ref, []string{"sh", "ls", "no-such-tool"}
		if _, err := e.Run(t.Context(), b); !errors.As(err, &lacks) || len(lacks.Missing) != 1 || !strings.Contains(err.Error(), "no-such-tool") {
			t.Errorf("Run = %v; want that no-such-tool is missing", err)
		}
	})
}

func TestAnImageWithoutAShellIsChecked(t *testing.T) {
	engines(t, func(t *testing.T, e *sandbox.Engine) {
		b, _, _ := box(t, idleGateway, "/bin/true") // a real gateway needs no shell
		b.Image = derived(t, e, "shellless", "USER root\nRUN rm -f /bin/sh /usr/bin/sh")
		r, err := e.Check(t.Context(), b)
		if err != nil || len(r.Missing) > 0 || r.Command != "/bin/true" {
			t.Errorf("Check = %+v, %v; want /bin/true and nothing missing", r, err)
		}
	})
}
