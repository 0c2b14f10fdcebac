package scaffold

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/spec"
)

// Write writes the files into dir, which it creates if there is none, with what
// their names lead through. It replaces nothing: if one of the connector's two files exists it writes none,
// and it leaves out a file for the author that exists; those are the skipped
// ones. After an error nothing is there that was not before.
func Write(dir string, files map[string][]byte) (skipped []string, err error) {
	for _, name := range []string{spec.ManifestFile, spec.SpecFile} {
		if _, err := os.Lstat(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
			return nil, exists(filepath.Join(dir, name), err)
		}
	}
	made := missing(dir)
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // its author publishes what is in it
		return nil, fmt.Errorf("create the connector's directory: %w", err)
	}
	var written []string
	defer func() {
		if err == nil {
			return
		}
		for _, name := range written {
			_ = os.Remove(name)
		}
		for _, d := range made {
			_ = os.Remove(d) // empty, or not ours to remove
		}
	}()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		at := filepath.Join(dir, name)
		made = append(missing(filepath.Dir(at)), made...)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil { //nolint:gosec // as above
			return nil, fmt.Errorf("create the directory of %s: %w", name, err)
		}
		err := create(at, files[name])
		if errors.Is(err, fs.ErrExist) && name != spec.ManifestFile && name != spec.SpecFile {
			skipped = append(skipped, name)
			continue
		}
		if errors.Is(err, fs.ErrExist) {
			return nil, exists(at, nil)
		}
		if err != nil {
			return nil, fmt.Errorf("write %s: %w", at, err)
		}
		written = append(written, at)
	}
	return skipped, nil
}

// exists returns the error for a file that would be replaced, or could not be looked at.
func exists(name string, err error) error {
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return hint.New(fmt.Errorf("write %s: it exists already, and nothing is replaced", name),
		"name another directory, or move the file away")
}

// missing returns dir and its parents that do not exist, the innermost first.
func missing(dir string) (dirs []string) {
	for d := filepath.Clean(dir); ; d = filepath.Dir(d) {
		if _, err := os.Lstat(d); !errors.Is(err, fs.ErrNotExist) || d == filepath.Dir(d) {
			return dirs
		}
		dirs = append(dirs, d)
	}
}

// create writes a new file, whole or not at all. It fails with [fs.ErrExist] if there is one of the name.
func create(name string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".aileron-new-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Link(f.Name(), name) // unlike a rename, it replaces nothing
}
