package engine

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// Lacks reports whether a container has nothing at an absolute path, as far as this process can read the layers of its
// image: its directory is in one of them, and none has the name. True is certain, and false is not: a name that some
// layer has may be removed by another one, and where a layer is not plain directories, the engine has to be asked.
func (l Layer) Lacks(file string) bool {
	if l.dir == "" || len(l.lower) == 0 || !path.IsAbs(file) || file == "/" || file != path.Clean(file) {
		return false
	}
	if slices.ContainsFunc(l.covered, func(at string) bool { return under(file, path.Clean(at)) }) {
		return false
	}
	inside := false // the directory of the file is in some layer
	for _, dir := range append([]string{l.dir}, l.lower...) {
		lacks, hasParent := layerLacks(dir, file[1:])
		if !lacks {
			return false
		}
		inside = inside || hasParent
	}
	return inside
}

// layerLacks reports whether one layer certainly has nothing at a path, and whether it has the directory of it.
func layerLacks(dir, file string) (lacks, hasParent bool) {
	// With composefs, the layer's directory holds files by their digests.
	_, err := os.Lstat(filepath.Join(filepath.Dir(dir), "composefs-data"))
	if !filepath.IsAbs(dir) || !errors.Is(err, fs.ErrNotExist) {
		return false, false
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return false, false
	}
	defer root.Close()
	for i, c := range file {
		if c != '/' {
			continue
		}
		info, err := root.Lstat(file[:i])
		if errors.Is(err, fs.ErrNotExist) {
			return true, false
		}
		if err != nil || !info.IsDir() || redirected(filepath.Join(dir, file[:i])) {
			return false, false
		}
	}
	_, err = root.Lstat(file)
	return errors.Is(err, fs.ErrNotExist), true
}

// redirected reports whether a directory of a layer may have its entries elsewhere: overlayfs marks one that was
// renamed.
func redirected(dir string) bool {
	for _, name := range []string{"trusted.overlay.redirect", "user.overlay.redirect"} {
		_, err := unix.Lgetxattr(dir, name, nil)
		if !errors.Is(err, unix.ENODATA) && !errors.Is(err, unix.ENOTSUP) {
			return true
		}
	}
	return false
}
