package livetree

import (
	"fmt"
	"os"
	"path/filepath"
)

// Write writes files below a new directory, which the sandbox's user reads,
// whatever the umask. Most umasks take nothing away, and then no mode is set again.
func Write(dir string, files []File) error {
	if err := os.Mkdir(dir, 0o755); err != nil { //nolint:gosec // read by the sandbox
		return err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	masked := info.Mode().Perm() != 0o755
	made := map[string]bool{}
	mkdir := func(at string) error {
		err := os.MkdirAll(at, 0o755) //nolint:gosec // as above
		for ; err == nil && masked && at != filepath.Dir(dir); at = filepath.Dir(at) {
			err = os.Chmod(at, 0o755) //nolint:gosec // as above
		}
		return err
	}
	for _, f := range files {
		if !filepath.IsLocal(f.Path) {
			return fmt.Errorf("write %s: it is not below its directory", f.Path)
		}
		at := filepath.Join(dir, f.Path)
		if parent := filepath.Dir(at); !made[parent] {
			if err := mkdir(parent); err != nil {
				return err
			}
			made[parent] = true
		}
		switch {
		case f.Mode.IsDir():
			err = mkdir(at)
		case masked:
			err = WritePublic(at, f.Data, f.Mode.Perm())
		default:
			err = os.WriteFile(at, f.Data, f.Mode.Perm())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// WritePublic writes a file that the sandbox's user reads, whatever the umask.
func WritePublic(path string, data []byte, mode os.FileMode) error {
	if err := os.WriteFile(path, data, mode); err != nil {
		return err
	}
	return os.Chmod(path, mode)
}
