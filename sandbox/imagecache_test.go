package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/imagefs"
	"github.com/ALRubinger/aileron/sandbox/engine"
)

// An image that was looked into once is not asked for again: the engine of this
// test has no file.
func TestWhatIsKnownOfAnImageNeedsNoEngine(t *testing.T) {
	e, _ := recorder(t, "podman", container.Config{})
	e.cache = filepath.Join(t.TempDir(), "cache")
	there := imagefs.Source{Lstat: func(string) (imagefs.Node, error) { return imagefs.Node{Mode: 0o755}, nil }}
	known := imagefs.New(imagefs.Tree{}, there)
	must.Get(known.Ask("usr/bin/true"))(t)
	e.keep("sha256:pinned", known)
	e.seen.Clear() // as in the next session

	image := must.Get(e.OpenImage(t.Context(), Image{Ref: "any"}))(t)
	defer image.Close()
	if node, err := image.Ask("usr/bin/true"); err != nil || !executable(node.Mode) {
		t.Errorf("Ask = %v, %v; want what is kept", node, err)
	}
	if _, err := image.Ask("usr/bin/false"); err == nil {
		t.Error("what is not known was not asked for")
	}
	info, err := os.Stat(e.cacheFile("sha256:pinned"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v, %v; want one of its owner's", info, err)
	}
}

func TestADamagedFileOfAnImageIsNotUsed(t *testing.T) {
	e, _ := recorder(t, "docker", container.Config{})
	e.cache = t.TempDir()
	must.Do(t, os.WriteFile(e.cacheFile("sha256:pinned"), []byte("not what was written"), 0o600))
	if e.known("sha256:pinned") != nil {
		t.Error("a damaged file was used")
	}
}

func TestOnlySomeImagesAreKept(t *testing.T) {
	e, _ := recorder(t, "docker", container.Config{})
	e.cache = t.TempDir()
	old := filepath.Join(e.cache, "1-old")
	must.Do(t, os.WriteFile(old, nil, 0o600))
	must.Do(t, os.Chtimes(old, time.Time{}, time.Now().Add(-time.Hour)))
	for i := range maxCached {
		e.keep(string(rune('a'+i)), imagefs.New(imagefs.Tree{}, imagefs.Source{}))
	}
	entries, err := os.ReadDir(e.cache)
	if err != nil || len(entries) != maxCached {
		t.Errorf("%d files are kept, %v; want %d", len(entries), err, maxCached)
	}
	if _, err := os.Stat(old); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the oldest is still there: %v", err)
	}
}

// What is mounted may lie over the image's command.
func TestACommandBelowAMountIsNotTheImages(t *testing.T) {
	e, _ := recorder(t, "podman", container.Config{})
	executables := imagefs.Source{Lstat: func(string) (imagefs.Node, error) { return imagefs.Node{Mode: 0o755}, nil }}
	known := imagefs.New(imagefs.Tree{}, executables)
	for _, name := range []string{"usr/bin/true", "tmp/true"} {
		must.Get(known.Ask(name))(t)
	}
	e.seen.Store("sha256:pinned", known)
	b := anyBox(t)
	b.Image = Image{Ref: "any"}
	find := func(place string) string { return e.commandInImage(t.Context(), b, []string{place}) }
	if got := find("/usr/bin/true"); got != "/usr/bin/true" {
		t.Errorf("the image's command is %q", got)
	}
	if got := find("/tmp/true"); got != "" {
		t.Errorf("below what the engine mounts, the image's command is %q", got)
	}
	b.covers = []Cover{{Source: "/x", Path: ".git/hooks"}, {Source: "/x", Path: "/srv/repo/.git"}}
	b.Spec.Mounts = []engine.Mount{{Source: "/x", Target: "/srv/data"}}
	if got := find("/usr/bin/true"); got != "/usr/bin/true" {
		t.Errorf("beside what is mounted elsewhere, the image's command is %q", got)
	}
	b.covers = []Cover{{Source: "/x", Path: "/usr/bin"}}
	if got := find("/usr/bin/true"); got != "" {
		t.Errorf("below a cover, the image's command is %q", got)
	}
	b.covers, b.Spec.Mounts = nil, []engine.Mount{{Source: "/x", Target: "/usr"}}
	if got := find("/usr/bin/true"); got != "" {
		t.Errorf("below a mount, the image's command is %q", got)
	}
}

// withEtc returns an engine that has opened an image with these lists.
func withEtc(t *testing.T, files map[string]string) (*Engine, Image) {
	t.Helper()
	all := []File{{Path: "/etc", Mode: fs.ModeDir | 0o755}, {Path: "/etc/apt", Mode: fs.ModeDir | 0o755},
		{Path: "/etc/apt/apt.conf.d", Mode: fs.ModeDir | 0o755}}
	if files["etc/apt/apt.conf.d/10"] == "" {
		all = all[:1]
	}
	for name, data := range files {
		all = append(all, File{Path: "/" + name, Mode: 0o644, Data: []byte(data)})
	}
	archive := must.Get(archiveOf(all))(t)
	tree := must.Get(imagefs.ReadTree(archive))(t)
	e := &Engine{}
	e.seen.Store("image", imagefs.New(tree, imagefs.Source{}))
	return e, Image{id: "image"}
}

func TestAUserWithoutAnEntryGetsOne(t *testing.T) {
	const passwd, group = "root:x:0:0:root:/root:/bin/bash\nagent:x:1000:1000::/home/agent:/bin/bash\n",
		"root:x:0:\nagent:x:1000:\nusers:x:100:"
	for _, c := range []struct{ user, passwd, group string }{
		{"4321:4321", "user:x:4321:4321::/home/agent:/bin/bash\n", "\nuser:x:4321:\n"},
		{"4321:100", "user:x:4321:100::/home/agent:/bin/bash\n", ""},
		{"1000:77", "", "\nuser:x:77:\n"},
		{"1000:1000", "", ""}, {"0:0", "", ""},
	} {
		e, image := withEtc(t, map[string]string{"etc/passwd": passwd, "etc/group": group})
		files := must.Get(e.userFiles(t.Context(), image, c.user))(t)
		got := map[string]string{}
		for _, f := range files {
			got[f.Path] = string(f.Data)
		}
		want := map[string]string{"/etc/passwd": passwd + c.passwd, "/etc/group": group + c.group}
		for path, added := range map[string]string{"/etc/passwd": c.passwd, "/etc/group": c.group} {
			if added == "" {
				want[path] = ""
			}
			if got[path] != want[path] {
				t.Errorf("user %q: %s is %q, want %q", c.user, path, got[path], want[path])
			}
		}
	}
}

func TestAnImageWithoutListsGetsThem(t *testing.T) {
	e, image := withEtc(t, map[string]string{"etc/os-release": "ID=none\n"})
	files, err := e.userFiles(t.Context(), image, "0:0")
	if err != nil || len(files) != 2 || string(files[0].Data) != "root:x:0:0::/home/agent:/bin/sh\n" ||
		string(files[1].Data) != "root:x:0:\n" {
		t.Errorf("userFiles = %+v, %v", files, err)
	}
}

func TestOnlyUser0OfAnImageWithAptGetsItsSettings(t *testing.T) {
	lists := map[string]string{"etc/passwd": "root:x:0:0::/root:/bin/sh\n", "etc/group": "root:x:0:\n"}
	for _, c := range []struct {
		apt  bool
		user string
		want int
	}{{true, "0:0", 3}, {true, "0:7", 3}, {true, "7:0", 0}, {false, "0:0", 0}} {
		delete(lists, "etc/apt/apt.conf.d/10")
		if c.apt {
			lists["etc/apt/apt.conf.d/10"] = "// none\n"
		}
		e, image := withEtc(t, lists)
		files, err := e.userFiles(t.Context(), image, c.user)
		n := 0
		for _, f := range files {
			if strings.Contains(f.Path, "/apt") {
				n++
			}
		}
		if err != nil || n != c.want {
			t.Errorf("apt %v, user %q: %d files of apt, %v; want %d", c.apt, c.user, n, err, c.want)
		}
	}
}
