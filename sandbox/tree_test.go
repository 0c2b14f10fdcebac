package sandbox

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/docker/docker/api/types/container"

	"github.com/ALRubinger/aileron/sandbox/engine"
)

// The sandbox's user is another one, and reads what a careful umask would hide.
func TestATreeIsReadableWhateverTheUmask(t *testing.T) {
	for _, umask := range []int{0o022, 0o077} {
		dir := filepath.Join(t.TempDir(), "tree")
		old := syscall.Umask(umask)
		err := writeTree(dir, []File{{Path: "actions", Mode: fs.ModeDir | 0o755},
			{Path: "connectors/hub/a/b@1.0.0/manifest.toml", Mode: 0o644, Data: []byte("x")}})
		syscall.Umask(old)
		if err != nil {
			t.Fatal(err)
		}
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			info, statErr := os.Lstat(path)
			want := fs.FileMode(0o644)
			if d.IsDir() {
				want = 0o755
			}
			if err != nil || statErr != nil || info.Mode().Perm() != want {
				t.Errorf("umask %o: %s has the mode %v, want %v", umask, path, info.Mode(), want)
			}
			return nil
		})
	}
}

func TestATreeHasNoFileOutside(t *testing.T) {
	err := writeTree(filepath.Join(t.TempDir(), "tree"), []File{{Path: "../x", Mode: 0o644}})
	if err == nil || !strings.Contains(err.Error(), "not below its directory") {
		t.Errorf("a file outside: %v", err)
	}
}

// A tree of hundreds of files is in memory, unless another sandbox may see it there, or write to it.
func TestATreeIsInMemory(t *testing.T) {
	b := anyBox(t)
	if dir := b.makeTreesDir(); dir != "" {
		t.Errorf("without a tree there is %s", dir)
	}
	b.trees = []Tree{{Target: "/t", Files: []File{{Path: "x", Mode: 0o644, Data: []byte("x")}}}}
	dir := b.makeTreesDir()
	if dir == "" {
		t.Skip("this host has no /dev/shm with room: trees are on the disk")
	}
	info, err := os.Lstat(dir)
	if err != nil || info.Mode() != fs.ModeDir|0o700 || filepath.Dir(dir) != "/dev/shm" {
		t.Errorf("%s: %v, %v; want a directory of ours in /dev/shm", dir, info, err)
	}
	if err := os.Remove(dir); err != nil {
		t.Error(err)
	}
	if dir := engine.MakeDirInMemory(1 << 60); dir != "" {
		t.Errorf("it has room for everything in %s", dir)
	}
	shared, mounted := b, b
	shared.Dir, mounted.Spec.Mounts = "/dev/shm", []engine.Mount{{Source: "/dev", Target: "/d"}}
	for what, b := range map[string]box{"the project holds it": shared, "a mount does": mounted} {
		if dir := b.makeTreesDir(); dir != "" {
			_ = os.Remove(dir)
			t.Errorf("%s, and there is %s", what, dir)
		}
	}
}

// An engine in a container of its own has another /dev/shm.
func TestATreeIsOnTheDiskWhereTheEngineSeesNoMemory(t *testing.T) {
	memory := t.TempDir()
	e, made := refusing(t, "docker", container.Config{}, func(a asked) string {
		if at := mountAt(a, "/t").Source; strings.HasPrefix(at, memory) {
			return fmt.Sprintf("invalid mount config for type %q: bind source path does not exist: %s", "bind", at)
		}
		return ""
	})
	b := anyBox(t)
	b.treesDir = memory
	b.trees = []Tree{{Target: "/t", Files: []File{{Path: "x", Mode: 0o644, Data: []byte("the tree")}}}}
	var err error
	if b.mounted, err = mountTrees(b); err != nil {
		t.Fatal(err)
	}
	if _, err := e.createBox(t.Context(), b, &engine.Container{ID: "the-gateway"}, "THE PROFILE"); err != nil {
		t.Fatal(err)
	}
	at := mountAt(made("box"), "/t")
	if at.Source != filepath.Join(b.mounts, "tree0") || !at.ReadOnly || !holds(t, at.Source+"/x", "the tree") {
		t.Errorf("the tree is mounted from %+v", at)
	}
}
