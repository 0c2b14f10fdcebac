package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/ALRubinger/aileron/internal/imagefs"
)

// An image that was looked into once is not asked for again: the engine of this
// test has no file.
func TestWhatIsKnownOfAnImageNeedsNoEngine(t *testing.T) {
	e, _ := recorder(t, "podman", container.Config{})
	e.cache = filepath.Join(t.TempDir(), "cache")
	there := imagefs.Source{Lstat: func(string) (imagefs.Node, error) { return imagefs.Node{Mode: 0o755}, nil }}
	known := imagefs.New(imagefs.Tree{}, there)
	if _, err := known.Ask("usr/bin/true"); err != nil {
		t.Fatal(err)
	}
	e.keep("sha256:pinned", known)
	e.seen.Clear() // as in the next session

	image, err := e.OpenImage(t.Context(), Image{Ref: "any"})
	if err != nil {
		t.Fatal(err)
	}
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
	if err := os.WriteFile(e.cacheFile("sha256:pinned"), []byte("not what was written"), 0o600); err != nil {
		t.Fatal(err)
	}
	if e.known("sha256:pinned") != nil {
		t.Error("a damaged file was used")
	}
}

func TestOnlySomeImagesAreKept(t *testing.T) {
	e, _ := recorder(t, "docker", container.Config{})
	e.cache = t.TempDir()
	old := filepath.Join(e.cache, "1-old")
	if err := os.WriteFile(old, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(old, time.Time{}, time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
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
		if _, err := known.Ask(name); err != nil {
			t.Fatal(err)
		}
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
	b.covers = []Cover{{Source: "/x", Path: "/usr/bin"}}
	if got := find("/usr/bin/true"); got != "" {
		t.Errorf("below a mount, the image's command is %q", got)
	}
}
