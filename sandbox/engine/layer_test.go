package engine

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestALayerHasWhatAContainerSees(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"etc/aileron", "srv", "volume"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"etc/aileron/a.pem", "volume/a.pem", "srv/a.pem"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("a root"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"etc/linked": "aileron", "etc/aileron/link.pem": "a.pem"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "etc/pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	l := Layer{dir: dir, covered: []string{"/volume/", "/srv/a.pem"}}
	for _, c := range []struct {
		why, file, data string
		want            bool
	}{
		{"as it was put", "/etc/aileron/a.pem", "a root", true},
		{"other bytes", "/etc/aileron/a.pem", "A root", false},
		{"cut off", "/etc/aileron/a.pem", "a root and more", false},
		{"too much", "/etc/aileron/a.pem", "a", false},
		{"not there", "/etc/aileron/b.pem", "a root", false},
		{"a directory", "/etc/aileron", "", false},
		{"a pipe", "/etc/pipe", "", false},
		{"behind a link", "/etc/linked/a.pem", "a root", false},
		{"a link", "/etc/aileron/link.pem", "a root", false},
		{"outside of the layer", "/etc/../etc/aileron/a.pem", "a root", false},
		{"a relative path", "etc/aileron/a.pem", "a root", false},
		{"below a mount", "/volume/a.pem", "a root", false},
		{"under a mount", "/srv/a.pem", "a root", false},
	} {
		if got := l.Has(c.file, []byte(c.data)); got != c.want {
			t.Errorf("%s: Has(%s) = %v, want %v", c.why, c.file, got, c.want)
		}
	}
	if (Layer{}).Has("/etc/hostname", nil) {
		t.Error("a layer that is not known has a file")
	}
}
