package engine

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

func TestALayerHasWhatAContainerSees(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"etc/aileron", "srv", "volume"} {
		must.Do(t, os.MkdirAll(filepath.Join(dir, name), 0o755))
	}
	for _, name := range []string{"etc/aileron/a.pem", "volume/a.pem", "srv/a.pem"} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte("a root"), 0o600))
	}
	for link, to := range map[string]string{"etc/linked": "aileron", "etc/aileron/link.pem": "a.pem"} {
		must.Do(t, os.Symlink(to, filepath.Join(dir, link)))
	}
	must.Do(t, syscall.Mkfifo(filepath.Join(dir, "etc/pipe"), 0o600))
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

func TestALayerLacksOnlyWhatIsNowhere(t *testing.T) {
	base := t.TempDir()
	layer := func(name string) string { return filepath.Join(base, name, "diff") }
	for _, dir := range []string{"upper/diff/etc", "a/diff/usr/bin", "b/diff/usr/bin", "b/diff/srv", "c/diff/opt"} {
		must.Do(t, os.MkdirAll(filepath.Join(base, dir), 0o755))
	}
	must.Do(t, os.WriteFile(filepath.Join(layer("b"), "usr/bin/tool"), nil, 0o600))
	for link, to := range map[string]string{"bin": "usr/bin", "usr/bin/gone": "nowhere"} {
		must.Do(t, os.Symlink(to, filepath.Join(layer("a"), link)))
	}
	l := Layer{dir: layer("upper"), lower: []string{layer("a"), layer("b")}, covered: []string{"/srv/"}}
	for _, c := range []struct {
		why, file string
		want      bool
	}{
		{"in no layer", "/usr/bin/other", true},
		{"in the lowest layer", "/usr/bin/tool", false},
		{"a link that leads nowhere", "/usr/bin/gone", false},
		{"behind a link", "/bin/other", false},
		{"below a file", "/usr/bin/tool/x", false},
		{"in a directory that no layer has", "/usr/lib/other", false},
		{"below a mount", "/srv/other", false},
		{"the root", "/", false},
		{"a relative path", "usr/bin/other", false},
		{"not clean", "/usr/bin/../bin/other", false},
	} {
		if got := l.Lacks(c.file); got != c.want {
			t.Errorf("%s: Lacks(%s) = %v, want %v", c.why, c.file, got, c.want)
		}
	}
	for why, other := range map[string]Layer{
		"nothing is known":           {},
		"the image's are not known":  {dir: l.dir},
		"one cannot be read":         {dir: l.dir, lower: append([]string{filepath.Join(base, "none")}, l.lower...)},
		"one has no absolute path":   {dir: l.dir, lower: append([]string{"l/ABC"}, l.lower...)},
		"one has no plain directory": {dir: l.dir, lower: append([]string{layer("c")}, l.lower...)},
	} {
		if why == "one has no plain directory" {
			must.Do(t, os.WriteFile(filepath.Join(base, "c", "composefs-data"), nil, 0o600))
		}
		if other.Lacks("/usr/bin/other") {
			t.Errorf("%s: and a file is said to be absent", why)
		}
	}
	// overlayfs has the entries of a directory that was renamed under its old name.
	err := syscall.Setxattr(filepath.Join(layer("a"), "usr"), "trusted.overlay.redirect", []byte("/old"), 0)
	if err != nil {
		t.Skipf("no attribute of overlayfs can be set here: %v", err)
	}
	if l.Lacks("/usr/bin/other") {
		t.Error("a directory that was renamed is taken for one that is where it was")
	}
}
