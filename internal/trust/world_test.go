package trust_test

import (
	"bytes"
	"io/fs"
	"log/slog"
	"path"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/ALRubinger/aileron/ca"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/imagefs"
	"github.com/ALRubinger/aileron/internal/trust"
)

// world has the roots of an image, of its Java, of the host, and of a session.
type world struct {
	own, java, host, session []byte
	log                      bytes.Buffer
	options                  trust.Options
	javaInPlace              bool // of the last install
}

func newWorld(t *testing.T) *world {
	t.Helper()
	root := func(name string) []byte {
		s := must.Get(ca.NewSession(ca.Options{Session: name}))(t)
		return s.RootPEM()
	}
	w := &world{own: root("own"), java: root("java"), host: root("host"), session: root("session")}
	w.options = trust.Options{
		Mounted:   []string{"/home/agent", "/dev", "/run"},
		Extra:     []trust.File{{Path: "/etc/aileron/tools.txt", Data: []byte("tools")}},
		HostRoots: func() ([]byte, error) { return w.host, nil },
		Log:       slog.New(slog.NewTextHandler(&w.log, nil)),
	}
	return w
}

// image returns a file system: "a/" is a directory, "a -> b" a symbolic link,
// "a = text" a file with that text, and "a" a file with the image's own roots.
func (w *world) image(lines ...string) fstest.MapFS {
	m := fstest.MapFS{}
	for _, line := range lines {
		name, text, isFile := strings.Cut(line, " = ")
		link, target, isLink := strings.Cut(line, " -> ")
		switch {
		case isLink:
			m[link] = &fstest.MapFile{Mode: fs.ModeSymlink | 0o777, Data: []byte(target)}
		case isFile:
			m[name] = &fstest.MapFile{Mode: 0o644, Data: []byte(text)}
		case strings.HasSuffix(line, "/"):
			m[path.Clean(line)] = &fstest.MapFile{Mode: fs.ModeDir | 0o755}
		default:
			m[line] = &fstest.MapFile{Mode: 0o644, Data: w.own}
		}
	}
	return m
}

// install installs the session's root, and checks what holds for all images.
func (w *world) install(t *testing.T, image fstest.MapFS) map[string]string {
	t.Helper()
	installed, err := trust.Install(image, w.session, w.options)
	if err != nil {
		t.Fatalf("Install: %v", err)
	}
	put := map[string]string{}
	w.javaInPlace = installed.JavaInPlace
	for _, f := range installed.Files {
		if _, twice := put[f.Path]; twice {
			t.Errorf("%s is put twice", f.Path)
		}
		put[f.Path] = string(f.Data)
		place, err := imagefs.Resolve(image, f.Path[1:])
		// A root file system that is read-only has the files mounted: where a
		// mount's target is a link, engines disagree.
		if err != nil || "/"+place.Path != f.Path {
			t.Errorf("%s leads to %+v, %v; want itself", f.Path, place, err)
		}
		for _, dir := range place.Missing {
			if _, made := put["/"+dir]; !made {
				t.Errorf("%s is put before its parent /%s", f.Path, dir)
			}
		}
		switch {
		case f.Mode.IsDir() && place.Exists():
			t.Errorf("%s exists, and its mode would be changed", f.Path)
		case !f.Mode.IsDir() && f.Mode != 0o644:
			t.Errorf("%s has the mode %v, want one that every user may read", f.Path, f.Mode)
		}
	}
	for _, name := range []string{trust.CAFile, trust.BundleFile, trust.JavaStoreFile} {
		if in(t, image, put, name) == "" {
			t.Errorf("%s is missing", name)
		}
	}
	return put
}

// in returns what a client reads at a name of the image with the files in it.
func in(t *testing.T, image fstest.MapFS, put map[string]string, name string) string {
	t.Helper()
	after := fstest.MapFS{}
	for name, f := range image {
		after[name] = f
	}
	for name, data := range put {
		if data != "" {
			after[name[1:]] = &fstest.MapFile{Mode: 0o644, Data: []byte(data)}
		}
	}
	data, err := imagefs.ReadFile(after, strings.TrimPrefix(name, "/"))
	if err != nil {
		t.Errorf("read %s: %v", name, err)
	}
	return string(data)
}

// hash is the name of the session's root in a directory of hash links.
func (w *world) hash(t *testing.T) string {
	t.Helper()
	link := must.Get(ca.HashLink(w.session))(t)
	return strings.TrimSuffix(link, ".0")
}
