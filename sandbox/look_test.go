package sandbox_test

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/sandbox"
)

func TestFilesOfAnImageAreReadThroughLinks(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e *sandbox.Engine) {
		look, err := e.Look(t.Context(), testImage)
		if err != nil {
			t.Fatal(err)
		}
		defer look.Close(t.Context())
		for _, want := range []struct {
			name, path string
			there      bool
		}{
			{"/etc/os-release", "/usr/lib/os-release", true}, // a link out of /etc
			{"/etc/ssl/../ssl/certs/none", "/etc/ssl/certs/none", false},
			{"/bin/awk", "/usr/bin/mawk", true}, // two links, outside
			{"/etc/alternatives/awk", "/usr/bin/mawk", true},
			{"/etc/ssl/certs/ca-certificates.crt", "/etc/ssl/certs/ca-certificates.crt", true},
			{"/etc/aileron/proxy/deeper/and/a.pem", "/etc/aileron/proxy/deeper/and/a.pem", false},
		} {
			entry, err := look.Find(t.Context(), want.name)
			if err != nil || entry.Path != want.path || entry.There != want.there {
				t.Errorf("Find(%s) = %+v, %v; want %s, there: %v", want.name, entry, err, want.path, want.there)
			}
			if strings.HasSuffix(want.name, "a.pem") && strings.Join(entry.Missing, " ") != "/etc/aileron/proxy/deeper /etc/aileron/proxy/deeper/and" {
				t.Errorf("missing: %q", entry.Missing)
			}
		}
		if data, err := look.Read(t.Context(), "/etc/os-release"); err != nil || !strings.Contains(string(data), "bookworm") {
			t.Errorf("Read = %q, %v", data, err)
		}
		if _, err := look.Read(t.Context(), "/etc/none"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Read of nothing: %v", err)
		}
		if _, err := look.Read(t.Context(), "/etc/ssl"); err == nil || !strings.Contains(err.Error(), "not a file") {
			t.Errorf("Read of a directory: %v", err)
		}
		if !strings.HasPrefix(look.Env("PATH"), "/usr/local/sbin:") || look.Env("NONE") != "" {
			t.Errorf("PATH is %q", look.Env("PATH"))
		}
	})
}
