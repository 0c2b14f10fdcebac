package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
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

func TestWhatTheLayersShowIsKnownOnlyWhereItIsCertain(t *testing.T) {
	base := t.TempDir()
	layer := func(name string) string { return filepath.Join(base, name, "diff") }
	for _, dir := range []string{"upper/diff/etc", "a/diff/usr/bin", "a/diff/usr/sbin", "b/diff/usr/bin", "b/diff/srv",
		"b/diff/usr/sbin", "c/diff/opt"} {
		must.Do(t, os.MkdirAll(filepath.Join(base, dir), 0o755))
	}
	for name, text := range map[string]string{"b/diff/usr/bin/tool": "a tool", "b/diff/usr/bin/both": "below",
		"a/diff/usr/bin/both": "above", "b/diff/usr/bin/pruned": "gone", "a/diff/usr/bin/.wh.pruned": "",
		"b/diff/usr/sbin/old": "gone", "a/diff/usr/sbin/.wh..wh..opq": ""} {
		must.Do(t, os.WriteFile(filepath.Join(base, name), []byte(text), 0o640))
	}
	for link, to := range map[string]string{"bin": "usr/bin", "usr/bin/gone": "nowhere"} {
		must.Do(t, os.Symlink(to, filepath.Join(layer("a"), link)))
	}
	must.Do(t, syscall.Mkfifo(filepath.Join(layer("a"), "usr/bin/pipe"), 0o600))
	l := Layer{dir: layer("upper"), lower: []string{layer("a"), layer("b")}, covered: []string{"/srv/"}}
	const absent, unknown = "absent", "unknown"
	for _, c := range []struct{ why, file, want string }{
		{"in no layer", "/usr/bin/other", absent},
		{"in the lowest layer", "/usr/bin/tool", "a tool"},
		{"in two layers", "/usr/bin/both", "above"},
		{"a directory", "/usr/bin", "drwxr-xr-x"},
		{"removed by the layer above", "/usr/bin/pruned", unknown},
		{"its directory is another one above", "/usr/sbin/old", unknown},
		{"a link that leads nowhere", "/usr/bin/gone", "to nowhere"},
		{"behind a link", "/bin/other", unknown},
		{"a pipe", "/usr/bin/pipe", unknown},
		{"below a file", "/usr/bin/tool/x", unknown},
		{"in a directory that no layer has", "/usr/lib/other", unknown},
		{"below a mount", "/srv/other", unknown},
		{"the root", "/", unknown},
		{"a relative path", "usr/bin/other", unknown},
		{"not clean", "/usr/bin/../bin/other", unknown},
	} {
		if got := shown(l, c.file); got != c.want {
			t.Errorf("%s: %s: %s, want %s", c.why, c.file, got, c.want)
		}
	}
	if _, sure := l.ReadFile("/usr/bin/tool", 5); sure {
		t.Error("a file above the bound is read")
	}
	image := Layer{lower: l.lower}
	if got := shown(image, "/usr/bin/tool"); got != "a tool" || image.Has("/usr/bin/tool", []byte("a tool")) {
		t.Errorf("an image shows %s, or is taken for a container", got)
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
		if got := shown(other, "/usr/bin/other"); got != unknown {
			t.Errorf("%s: %s, want %s", why, got, unknown)
		}
	}
	// overlayfs marks what is not what it seems. The names of a file are marked as those of its directory are.
	for _, c := range []struct{ mark, at, file string }{
		{"redirect", "a/diff/usr", "/usr/bin/other"}, {"opaque", "a/diff/usr/bin", "/usr/bin/tool"},
		{"whiteout", "a/diff/usr/bin/both", "/usr/bin/both"}, {"metacopy", "b/diff/usr/bin/tool", "/usr/bin/tool"},
	} {
		at := filepath.Join(base, c.at)
		if err := syscall.Setxattr(at, "trusted.overlay."+c.mark, []byte("y"), 0); err != nil {
			t.Skipf("no attribute of overlayfs can be set here: %v", err)
		}
		if got := shown(l, c.file); got != unknown {
			t.Errorf("%s: %s: %s, want %s", c.mark, c.file, got, unknown)
		}
		must.Do(t, syscall.Removexattr(at, "trusted.overlay."+c.mark))
	}
}

// shown is the contents of a file, the mode of a directory or the text of a link that a layer is certain to have, or
// absent, or unknown.
func shown(l Layer, file string) string {
	info, sure, err := l.Lstat(file)
	data, read := l.ReadFile(file, 100)
	switch {
	case !sure && read:
		return "unknown and read"
	case !sure:
		return "unknown"
	case errors.Is(err, fs.ErrNotExist) && !read:
		return "absent"
	case info.Mode&fs.ModeSymlink != 0 && !read:
		return "to " + info.Link
	case info.Mode.IsDir() && !read:
		return info.Mode.String()
	case read && int64(len(data)) == info.Size && info.Mode == 0o640:
		return string(data)
	}
	return "wrong"
}

// What is written to a layer is what an engine would have put there: the image's directories keep their owner and mode.
func TestALayerIsWrittenAsItsEngineWould(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("files get other owners")
	}
	base := t.TempDir()
	at := func(name string) string { return filepath.Join(base, name) }
	for dir, mode := range map[string]fs.FileMode{"upper/made": 0o700, "a/srv": 0o755, "a/opt/plain": 0o755,
		"b/etc/ssl": 0o750, "b/var": 0o775 | fs.ModeSetgid, "b/srv/gone/old": 0o755, "b/home": 0o711, "b/place": 0o755,
		"b/etc/ca": 0o755} {
		must.Do(t, os.MkdirAll(at(dir), 0o755))
		must.Do(t, os.Chmod(at(dir), mode))
	}
	must.Do(t, errors.Join(os.Chown(at("b/etc/ssl"), 7, 8), os.Chmod(at("b/etc/ssl"), 0o750),
		os.Symlink("../usr/zone", at("b/etc/localtime")), os.Symlink("etc", at("b/linked")),
		syscall.Mkfifo(at("upper/made/pipe"), 0o600)))
	layer := Layer{dir: at("upper"), lower: []string{at("a"), at("b")}, covered: []string{"/vol"}, own: true}
	if err := syscall.Mknod(at("a/srv/gone"), syscall.S_IFCHR, 0); err != nil {
		t.Skipf("a layer cannot hide what is below it here: %v", err)
	}
	cert := Put{Path: "/etc/ssl/certs/a.pem", Mode: 0o644, Data: []byte("a root")}
	if !layer.Write([]Put{
		cert, {Path: "/etc/localtime", Mode: 0o644, Data: []byte("TZif")}, {Path: "/var/new", Mode: 0o600},
		{Path: "/home/agent", Mode: fs.ModeDir | 0o755, UID: 1000, GID: 1001},
		{Path: "/srv/gone", Mode: fs.ModeDir | 0o755}, {Path: "/srv/gone/old/file", Mode: 0o644},
		{Path: "/made/here", Mode: 0o640, Data: []byte("first")}, {Path: "/made/here", Mode: 0o640, Data: []byte("last")},
	}) {
		t.Fatal("the engine is asked")
	}
	for name, want := range map[string]string{
		"etc": "drwxr-xr-x 0:0", "etc/ssl": "drwxr-x--- 7:8", "etc/ssl/certs": "drwxr-xr-x 0:0",
		"etc/ssl/certs/a.pem": "-rw-r--r-- 0:0 a root", "etc/localtime": "-rw-r--r-- 0:0 TZif",
		"var": "dgrwxrwxr-x 0:0", "var/new": "-rw------- 0:0 ", "home": "drwx--x--x 0:0",
		"home/agent":   "drwxr-xr-x 1000:1001",
		"srv/gone/old": "drwxr-xr-x 0:0", "made": "drwx------ 0:0", "made/here": "-rw-r----- 0:0 last",
	} {
		if got := described(t, at(filepath.Join("upper", name))); got != want {
			t.Errorf("/%s is %q, want %q", name, got, want)
		}
	}
	if !layer.Has(cert.Path, cert.Data) {
		t.Error("the layer has not what was written")
	}
	same := []byte("the program of many commands")
	if !layer.Write([]Put{{Path: "/made/a", Mode: 0o755, Data: same}, {Path: "/made/b", Mode: 0o755, Data: same},
		{Path: "/made/c", Mode: 0o644, Data: same}, {Path: "/made/d", Mode: 0o644, Data: same, UID: 3},
		{Path: "/made/d", Mode: 0o644, Data: same, UID: 3}}) {
		t.Fatal("files that are the same are not written")
	}
	links := map[string]uint64{}
	for name := range strings.SplitSeq("abcd", "") {
		links[name] = must.Get(os.Stat(at("upper/made/" + name)))(t).Sys().(*syscall.Stat_t).Nlink
	}
	if want := map[string]uint64{"a": 2, "b": 2, "c": 1, "d": 1}; !maps.Equal(links, want) ||
		described(t, at("upper/made/d")) != "-rw-r--r-- 3:0 "+string(same) {
		t.Errorf("the links of files that are the same but for a mode or an owner are %v, want %v", links, want)
	}
	for why, p := range map[string]Put{
		"behind a link":             {Path: "/linked/file", Mode: 0o644},
		"below a mount":             {Path: "/vol/file", Mode: 0o644},
		"the image has a directory": {Path: "/place", Mode: 0o644},
		"below one of its own too":  {Path: "/etc/ca", Mode: 0o644},
		"the layer has a pipe":      {Path: "/made/pipe", Mode: 0o644},
		"the layer has a directory": {Path: "/made", Mode: 0o644},
		"below a file":              {Path: "/made/here/file", Mode: 0o644},
		"a file as a directory":     {Path: "/made/here", Mode: fs.ModeDir | 0o755},
		"the root":                  {Path: "/", Mode: fs.ModeDir | 0o755},
		"not clean":                 {Path: "/etc/../made/file", Mode: 0o644},
		"a link":                    {Path: "/made/link", Mode: fs.ModeSymlink},
	} {
		if layer.Write([]Put{p}) {
			t.Errorf("%s: %s is written", why, p.Path)
		}
	}
	mark := func(name string) {
		if err := syscall.Setxattr(at(name), "trusted.x", nil, 0); err != nil {
			t.Skipf("no attribute can be set here: %v", err)
		}
	}
	others := map[string]func(*Layer){
		"":                               func(*Layer) {},
		"another's engine":               func(l *Layer) { l.own = false },
		"a layer that is not known":      func(l *Layer) { l.dir = "" },
		"an image that is not known":     func(l *Layer) { l.lower = nil },
		"an image that cannot be read":   func(l *Layer) { l.lower = []string{at("none"), at("b")} },
		"a user namespace":               func(*Layer) { must.Do(t, os.Chown(at("upper"), 100000, 100000)) },
		"a directory with attributes":    func(*Layer) { mark("a/opt/plain") },
		"a layer's root with attributes": func(*Layer) { mark("upper") },
		"a name that the image hides": func(*Layer) {
			must.Do(t, os.WriteFile(at("a/opt/plain/.wh.file"), nil, 0o600))
		},
	}
	for why, change := range others {
		other := layer
		change(&other)
		if written := other.Write([]Put{{Path: "/opt/plain/file", Mode: 0o644}}); written != (why == "") {
			t.Errorf("%s: written: %v", why, written)
		}
		must.Do(t, os.RemoveAll(at("upper/opt")))
		must.Do(t, os.Chown(at("upper"), 0, 0))
		_, _ = syscall.Removexattr(at("upper"), "trusted.x"), syscall.Removexattr(at("a/opt/plain"), "trusted.x")
		_ = os.Remove(at("a/opt/plain/.wh.file"))
	}
}

// described is the mode, the owner and the contents of a file.
func described(t *testing.T, name string) string {
	t.Helper()
	info, err := os.Lstat(name)
	if err != nil {
		return err.Error()
	}
	uid, gid := owner(info)
	text := fmt.Sprintf("%v %d:%d", info.Mode(), uid, gid)
	if info.Mode().IsRegular() {
		text += " " + string(must.Get(os.ReadFile(name))(t))
	}
	return text
}
