package imagefs

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/ALRubinger/aileron/e2e/must"
)

// entry is one of an archive's: a directory if its name ends in a slash, a
// link if it has a target, else a file.
type entry struct{ name, target, data string }

func archive(t *testing.T, entries ...entry) *bytes.Buffer {
	t.Helper()
	var out bytes.Buffer
	tw := tar.NewWriter(&out)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Mode: 0o644, Typeflag: tar.TypeReg, Size: int64(len(e.data))}
		switch {
		case strings.HasSuffix(e.name, "/"):
			h.Typeflag, h.Mode = tar.TypeDir, 0o755
		case strings.HasPrefix(e.target, "="):
			h.Typeflag, h.Linkname = tar.TypeLink, e.target[1:]
		case e.target != "":
			h.Typeflag, h.Linkname = tar.TypeSymlink, e.target
		}
		must.Do(t, tw.WriteHeader(h))
		must.Get(io.WriteString(tw, e.data))(t)
	}
	must.Do(t, tw.Close())
	return &out
}

func tree(t *testing.T, entries ...entry) Tree {
	t.Helper()
	return must.Get(ReadTree(archive(t, entries...)))(t)
}

// outside is a Source of nodes that counts its calls.
func outside(nodes map[string]Node, calls map[string]int) Source {
	return Source{
		Lstat: func(name string) (Node, error) {
			calls[name]++
			if n, ok := nodes[name]; ok {
				return n, nil
			}
			return Node{}, fs.ErrNotExist
		},
		ReadFile: func(name string) ([]byte, error) { return nodes[name].data, nil },
	}
}

func TestResolveFollowsLinksAsTheKernelDoes(t *testing.T) {
	etc := tree(t, entry{name: "etc/"}, entry{name: "etc/ssl/"}, entry{name: "etc/pki/"}, entry{name: "etc/pki/tls/"},
		entry{name: "etc/pki/tls/certs/"},
		entry{name: "etc/pki/x.pem", data: "pem"},
		entry{name: "etc/ssl/certs", target: "../pki/tls/certs"},
		entry{name: "etc/pki/tls/certs/ca-bundle.crt", target: "/etc/pki/x.pem"},
		entry{name: "etc/ssl/cert.pem", target: "certs/ca-certificates.crt"}, // leads to nothing yet
		entry{name: "etc/ssl/high", target: "../../../../../etc/pki/x.pem"},
		entry{name: "etc/ssl/out", target: "/var/roots"},
		entry{name: "etc/ssl/up", target: "../pki/tls/.."},
		entry{name: "etc/ssl/root", target: "/"},
		entry{name: "etc/a", target: "b"}, entry{name: "etc/b", target: "a"},
		entry{name: "etc/self", target: "self/x"},
		entry{name: "etc/latin", target: "caf\xe9"},
		entry{name: "etc/long", target: strings.Repeat("pki/../", 300)},
	)
	dir, file := Node{Mode: fs.ModeDir | 0o755}, Node{Mode: 0o644}
	source := outside(map[string]Node{
		"var": dir, "var/roots": dir, "var/roots/x": {Mode: fs.ModeSymlink, Link: "/etc/pki/x.pem"},
		"usr": dir, "usr/share": {Mode: fs.ModeSymlink, Link: "/home/agent"}, "home": dir, "home/agent": dir,
		"usr/file": file,
	}, map[string]int{})
	image := New(etc, source)
	for _, c := range []struct {
		name, path string
		exists     bool
		missing    string
		err        string
	}{
		{name: "etc/ssl/certs/ca-bundle.crt", path: "etc/pki/x.pem", exists: true},
		{name: "etc/ssl/cert.pem", path: "etc/pki/tls/certs/ca-certificates.crt"},
		{name: "etc/ssl/high", path: "etc/pki/x.pem", exists: true},
		{name: "etc/ssl/up", path: "etc/pki", exists: true},
		{name: "etc/ssl/root", path: ".", exists: true},
		{name: "etc/ssl/out/x", path: "etc/pki/x.pem", exists: true},
		{name: "etc/ssl/out/y", path: "var/roots/y"},
		{name: "etc/new/deep/f", path: "etc/new/deep/f", missing: "etc/new etc/new/deep"},
		{name: "usr/share/certs/f", path: "home/agent/certs/f", missing: "home/agent/certs"}, // a link among the parents
		{name: "usr/x", path: "usr/x"},
		{name: "opt/x/y", path: "opt/x/y", missing: "opt opt/x"},
		{name: "etc/a", err: "circle"},
		{name: "etc/self", err: "circle"},
		{name: "etc/latin", err: "UTF-8"},
		{name: "etc/long", err: "elements"},
		{name: "etc/pki/x.pem/y", err: "not a directory"},
		{name: "usr/file/y", err: "not a directory"},
		{name: "/etc/a", err: "invalid"},
		{name: "etc/../etc/a", err: "invalid"},
	} {
		got, err := Resolve(image, c.name)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("Resolve(%s) = %+v, %v; want an error with %q", c.name, got, err, c.err)
			}
			continue
		}
		missing := strings.Join(got.Missing, " ")
		if err != nil || got.Path != c.path || got.Exists() != c.exists || missing != c.missing {
			t.Errorf("Resolve(%s) = %+v, %v; want %+v", c.name, got, err, c)
		}
	}
	if _, err := Resolve(image, "etc/a"); !errors.Is(err, ErrLoop) {
		t.Errorf("a circle is %v, want ErrLoop", err)
	}
	got, err := Resolve(New(Tree{}, source), "etc/ssl/certs/f")
	if want := []string{"etc", "etc/ssl", "etc/ssl/certs"}; err != nil || !slices.Equal(got.Missing, want) {
		t.Errorf("in an image without /etc: %+v, %v; want %q missing", got, err, want)
	}
}

// A file system of tests resolves as that of an image does.
func TestResolveInAnotherFileSystem(t *testing.T) {
	fsys := fstest.MapFS{
		"etc/ssl/certs": {Mode: fs.ModeSymlink | 0o777, Data: []byte("../pki/certs")},
		"etc/pki/certs": {Mode: fs.ModeDir | 0o755},
		"etc/up":        {Mode: fs.ModeSymlink | 0o777, Data: []byte("../../../etc/pki")},
	}
	for name, want := range map[string]string{
		"etc/ssl/certs/f": "etc/pki/certs/f", "etc/up/certs": "etc/pki/certs", ".": ".",
	} {
		if got, err := Resolve(fsys, name); err != nil || got.Path != want {
			t.Errorf("Resolve(%s) = %+v, %v; want %s", name, got, err, want)
		}
	}
}

func TestEtcIsAFileSystem(t *testing.T) {
	etc := tree(t, entry{name: "etc/"}, entry{name: "etc/ssl/"}, entry{name: "etc/ssl/certs/"}, entry{name: "etc/empty/"},
		entry{name: "etc/ssl/certs/a.pem", data: "a root"}, entry{name: "etc/ssl/certs/b.pem", target: "a.pem"},
		entry{name: "etc/ssl/certs/c.pem", target: "=etc/ssl/certs/a.pem"},
		entry{name: "etc/os-release", target: "/usr/lib/os-release"})
	calls := map[string]int{}
	image := New(etc, outside(map[string]Node{
		"usr": {Mode: fs.ModeDir | 0o755}, "usr/lib": {Mode: fs.ModeDir | 0o755},
		"usr/lib/os-release": {Mode: 0o644, Size: 4, data: []byte("bird")},
	}, calls))
	sub := must.Get(fs.Sub(image, Etc))(t)
	want := []string{"ssl/certs/a.pem", "ssl/certs/b.pem", "ssl/certs/c.pem", "os-release", "empty"}
	if err := fstest.TestFS(sub, want...); err != nil {
		t.Error(err)
	}
	for name, n := range calls {
		if n != 1 {
			t.Errorf("the engine was asked %d times for %s, want once", n, name)
		}
	}
	if data, err := image.ReadFile("etc/ssl/certs/c.pem"); err != nil || string(data) != "a root" {
		t.Errorf("a hard link reads %q, %v", data, err)
	}
	if _, err := image.ReadDir("usr/lib"); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("ReadDir outside of /etc: %v, want ErrUnsupported", err)
	}
	if _, err := image.ReadDir("etc/os-release"); err == nil || !strings.Contains(err.Error(), "not a directory") {
		t.Errorf("ReadDir of a file: %v", err)
	}
}

func TestReadFileRefusesWhatIsNoFileOrTooLarge(t *testing.T) {
	big := strings.Repeat("x", MaxFile+1)
	etc := tree(t, entry{name: "etc/"}, entry{name: "etc/big", data: big}, entry{name: "etc/link", target: "/usr/big"})
	usr := map[string]Node{
		"usr": {Mode: fs.ModeDir}, "usr/big": {Size: MaxFile + 1}, "usr/dev": {Mode: fs.ModeDevice},
	}
	image := New(etc, outside(usr, map[string]int{}))
	for name, want := range map[string]string{
		"etc/big": "larger than 8 MiB", "usr/big": "larger than 8 MiB", "etc/link": "larger than 8 MiB",
		"etc": "not a file", "usr/dev": "not a file",
		"etc/none": "does not exist", "usr/none": "does not exist", "/etc/big": "invalid",
	} {
		if _, err := image.ReadFile(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("(*FS).ReadFile(%s): %v, want an error with %q", name, err, want)
		}
		if _, err := ReadFile(image, name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ReadFile(%s): %v, want an error with %q", name, err, want)
		}
		if _, err := image.Open(name); name != "etc" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("Open(%s): %v, want an error with %q", name, err, want)
		}
	}
	if _, err := image.Stat("etc/none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Stat of nothing: %v, want fs.ErrNotExist", err)
	}
	if _, err := image.ReadLink("etc/big"); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("ReadLink of a file: %v, want fs.ErrInvalid", err)
	}
}

// What a tree keeps is bounded; the rest is asked for when it is read.
func TestATreeKeepsABoundedAmount(t *testing.T) {
	entries := []entry{{name: "etc/"}, {name: "etc/large", data: "nine bytes"[:9]}}
	for _, base := range strings.Split("abcdefghij", "") {
		entries = append(entries, entry{name: "etc/" + base, data: strings.Repeat(base, 8)})
	}
	etc := must.Get(readTree(archive(t, entries...), bounds{file: 8, kept: 64, archive: 1 << 20}))(t)
	var asked []string
	image := New(etc, Source{ReadFile: func(name string) ([]byte, error) {
		asked = append(asked, name)
		return []byte(name), nil
	}})
	kept := 0
	for _, e := range entries[1:] {
		place := must.Get(Resolve(image, e.name))(t)
		if data, ok := image.Kept(place); ok {
			kept += len(data)
		}
		if _, err := image.ReadFile(e.name); err != nil {
			t.Error(err)
		}
	}
	if want := []string{"etc/large", "etc/i", "etc/j"}; kept != 64 || !slices.Equal(asked, want) {
		t.Errorf("%d bytes are kept, and %v are asked for; want 64 and %v", kept, asked, want)
	}
	if _, err := New(etc, Source{}).ReadFile("etc/j"); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("without a source: %v, want ErrUnsupported", err)
	}
}

func TestReadTreeRefusesABrokenArchive(t *testing.T) {
	whole := archive(t, entry{name: "etc/"}, entry{name: "etc/passwd", data: "root:x:0:0:"}).Bytes()
	for _, n := range []int{100, 600, 1030} {
		if _, err := ReadTree(bytes.NewReader(whole[:n])); err == nil || !strings.Contains(err.Error(), "read /etc") {
			t.Errorf("cut off after %d bytes: %v", n, err)
		}
	}
	endless := io.MultiReader(hugeFile(t), zeros{})
	_, err := readTree(endless, bounds{file: 8, kept: 64, archive: 2 << 20})
	if err == nil || !strings.Contains(err.Error(), "larger than 2 MiB") {
		t.Errorf("an endless file: %v", err)
	}
}

// hugeFile begins a file of a terabyte.
func hugeFile(t *testing.T) io.Reader {
	t.Helper()
	var out bytes.Buffer
	h := &tar.Header{Name: "etc/endless", Typeflag: tar.TypeReg, Size: 1 << 40, Mode: 0o644}
	must.Do(t, tar.NewWriter(&out).WriteHeader(h))
	return &out
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// Names of an archive that lead out of its root are inside.
func TestAnArchivesNamesStayInside(t *testing.T) {
	image := New(tree(t, entry{name: "../../etc/"}, entry{name: "/etc/../../etc/passwd", data: "root"}), Source{})
	if data, err := image.ReadFile("etc/passwd"); err != nil || string(data) != "root" {
		t.Errorf("ReadFile = %q, %v", data, err)
	}
	if names, err := image.ReadDir(Etc); err != nil || len(names) != 1 {
		t.Errorf("ReadDir = %v, %v", names, err)
	}
}

func TestTheFirstFileOfAnArchive(t *testing.T) {
	if data, err := ReadFirst(archive(t, entry{name: "a", data: "bytes"})); err != nil || string(data) != "bytes" {
		t.Errorf("ReadFile = %q, %v", data, err)
	}
	large := entry{name: "a", data: strings.Repeat("x", MaxFile+1)}
	for _, broken := range [][]entry{{{name: "d/"}}, {{name: "l", target: "a"}}, {}, {large}} {
		if data, err := ReadFirst(archive(t, broken...)); err == nil {
			t.Errorf("ReadFile = %d bytes, want an error", len(data))
		}
	}
}

// What an engine could not answer is asked for again; what it answered is not.
func TestAFailureOfTheSourceIsPassedOn(t *testing.T) {
	broken := errors.New("the engine is gone")
	var asked []string
	image := New(Tree{}, Source{Lstat: func(name string) (Node, error) {
		asked = append(asked, name)
		if len(asked) == 1 {
			return Node{}, broken
		}
		return Node{}, fs.ErrNotExist
	}})
	if _, err := Resolve(image, "usr/x"); !errors.Is(err, broken) {
		t.Errorf("Resolve: %v, want the engine's error", err)
	}
	for range 2 {
		if place, err := Resolve(image, "usr/x"); err != nil || place.Exists() {
			t.Errorf("Resolve = %+v, %v", place, err)
		}
	}
	if !slices.Equal(asked, []string{"usr", "usr"}) {
		t.Errorf("asked for %v, want usr twice", asked)
	}
}
