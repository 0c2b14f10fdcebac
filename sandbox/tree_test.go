package sandbox

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
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
