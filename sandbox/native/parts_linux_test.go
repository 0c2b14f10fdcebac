package native

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

// Where an overlay of all of /usr cannot be, there is one of each directory into which something is put, and of none
// that lies in another.
func TestThePartsOfTheSystemThatGetFiles(t *testing.T) {
	for _, c := range []struct{ host, layer, want string }{
		{"bin local/bin share", "local/bin/tracker local/bin/other", "local/bin"},
		{"bin local/bin share", "share/aileron/deep/file local/bin/tracker", "local/bin share"},
		{"bin local share/a", "local/bin/tracker share/a/file share/file", "local share"},
		{"share/a/b", "share/a/b/file share/a/file", "share/a"},
		{"bin", "lib/file bin/file", "."},
		{"bin", "file bin/file", "."},
		{"bin", "", ""},
	} {
		layer, host := t.TempDir(), t.TempDir()
		for _, dir := range strings.Fields(c.host) {
			must.Do(t, os.MkdirAll(filepath.Join(host, dir), 0o755))
		}
		for _, file := range strings.Fields(c.layer) {
			must.Do(t, os.MkdirAll(filepath.Dir(filepath.Join(layer, file)), 0o755))
			must.Do(t, os.WriteFile(filepath.Join(layer, file), nil, 0o644))
		}
		got := must.Get(parts(layer, host))(t)
		slices.Sort(got)
		if strings.Join(got, " ") != c.want {
			t.Errorf("%q on %q: %q, want %q", c.layer, c.host, got, c.want)
		}
	}
}
