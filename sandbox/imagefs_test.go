package sandbox_test

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/ALRubinger/aileron/internal/imagefs"
	"github.com/ALRubinger/aileron/sandbox"
	"github.com/ALRubinger/aileron/sandbox/engine"
)

func TestFilesOfAnImageAreReadThroughLinks(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e *sandbox.Engine) {
		files, err := e.OpenImage(t.Context(), testImage)
		if err != nil {
			t.Fatal(err)
		}
		defer files.Close()
		for _, want := range []struct {
			name, path string
			exists     bool
			missing    string
		}{
			{"etc/os-release", "usr/lib/os-release", true, ""}, // a link out of /etc
			{"etc/ssl/certs/none", "etc/ssl/certs/none", false, ""},
			{"bin/awk", "usr/bin/mawk", true, ""}, // three links, the first of a directory
			{"etc/alternatives/awk", "usr/bin/mawk", true, ""},
			{"etc/ssl/certs/ca-certificates.crt", "etc/ssl/certs/ca-certificates.crt", true, ""},
			{"etc/aileron/deeper/and/a.pem", "etc/aileron/deeper/and/a.pem", false, "etc/aileron/deeper etc/aileron/deeper/and"},
			{"opt/none/and/a.pem", "opt/none/and/a.pem", false, "opt/none opt/none/and"},
		} {
			got, err := imagefs.Resolve(files, want.name)
			missing := strings.Join(got.Missing, " ")
			if err != nil || got.Path != want.path || got.Exists() != want.exists || missing != want.missing {
				t.Errorf("Resolve(%s) = %+v, %v; want %+v", want.name, got, err, want)
			}
		}
		for _, name := range []string{"etc/os-release", "usr/lib/os-release"} {
			if data, err := files.ReadFile(name); err != nil || !strings.Contains(string(data), "bookworm") {
				t.Errorf("ReadFile(%s) = %q, %v", name, data, err)
			}
		}
		if _, err := files.ReadFile("usr/none"); !errors.Is(err, fs.ErrNotExist) || errors.Is(err, engine.ErrEngine) {
			t.Errorf("ReadFile of nothing: %v", err)
		}
		if _, err := files.ReadFile("usr/lib"); err == nil || !strings.Contains(err.Error(), "not a file") {
			t.Errorf("ReadFile of a directory: %v", err)
		}
		if !strings.HasPrefix(files.Getenv("PATH"), "/usr/local/sbin:") || files.Getenv("NONE") != "" {
			t.Errorf("PATH is %q", files.Getenv("PATH"))
		}
		apt, err := fs.Sub(files, "etc/apt")
		if err != nil {
			t.Fatal(err)
		}
		if err := fstest.TestFS(apt, "apt.conf.d"); err != nil {
			t.Error(err)
		}
	})
}
