package engine

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// Put is a regular file or a directory that is put into a container. A directory may be there already: it gets the mode
// and the owner, and keeps what is in it.
type Put struct {
	Path     string // absolute
	Mode     fs.FileMode
	Data     []byte
	UID, GID int
}

// Write puts files into a container that was made and has never been started, where its layer is a plain directory of a
// Podman that this process has started as root. Podman takes two processes for the same, and a mount. The result is
// what it would be: a directory that the layer lacks is copied from the image's, with its owner and mode, and a link at
// the place of a file is replaced. It reports false where that is not certain. The engine has to be asked for all of it
// then, which replaces what was written.
func (l Layer) Write(puts []Put) bool {
	info, err := os.Lstat(l.dir)
	if !l.own || err != nil || !plainDirectory(l.dir, info) {
		return false
	}
	if uid, gid := owner(info); uid != 0 || gid != 0 { // root of the container is another user here
		return false
	}
	root, err := os.OpenRoot(l.dir)
	if err != nil {
		return false
	}
	defer root.Close()
	w := layerWriter{root: root, lower: Layer{lower: l.lower, covered: l.covered}, dirs: map[string]bool{"/": false}}
	for _, p := range puts {
		if p.Path == "/" || !l.shows(p.Path) || !w.put(p) {
			return false
		}
	}
	return true
}

// layerWriter writes to a container's layer.
type layerWriter struct {
	root  *os.Root        // of the layer
	lower Layer           // of the image
	dirs  map[string]bool // directories that the layer has, and whether the image lacks them
}

func (w *layerWriter) put(p Put) bool {
	if !p.Mode.IsDir() {
		return w.file(p)
	}
	_, ok := w.dir(p.Path)
	return ok && w.give(p.Path, p.Mode, p.UID, p.GID)
}

// file writes a regular file.
func (w *layerWriter) file(p Put) bool {
	lacks, ok := w.dir(path.Dir(p.Path))
	if !ok || !p.Mode.IsRegular() {
		return false
	}
	name := p.Path[1:]
	switch info, err := w.root.Lstat(name); {
	case err == nil && info.Mode().IsRegular():
		if w.root.Remove(name) != nil {
			return false
		}
	case !errors.Is(err, fs.ErrNotExist):
		return false
	case !lacks:
		if below, _, sure := w.lower.find(p.Path); !sure || below != nil && below.IsDir() {
			return false
		}
	}
	f, err := w.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return false
	}
	_, err = f.Write(p.Data)
	return errors.Join(err, f.Close()) == nil && w.give(p.Path, p.Mode, p.UID, p.GID)
}

// dir makes a directory in the layer, with the mode and the owner that it has in the image. lacks reports whether the
// image has no such directory, and nothing below it.
func (w *layerWriter) dir(at string) (lacks, ok bool) {
	if lacks, known := w.dirs[at]; known {
		return lacks, true
	}
	lacks, ok = w.dir(path.Dir(at))
	if !ok {
		return false, false
	}
	var below fs.FileInfo
	if !lacks {
		var dir string
		var sure bool
		below, dir, sure = w.lower.find(at)
		if !sure || below != nil && !plainDirectory(filepath.Join(dir, at), below) {
			return false, false
		}
		lacks = below == nil
	}
	w.dirs[at] = lacks
	switch info, err := w.root.Lstat(at[1:]); {
	case err == nil:
		return lacks, info.IsDir()
	case !errors.Is(err, fs.ErrNotExist) || w.root.Mkdir(at[1:], 0o700) != nil:
		return false, false
	case lacks:
		return true, w.give(at, 0o755, 0, 0)
	}
	uid, gid := owner(below)
	return false, w.give(at, below.Mode(), uid, gid)
}

// give sets the owner and the mode of what was written, in this order: another owner takes bits of a mode away.
func (w *layerWriter) give(at string, mode fs.FileMode, uid, gid int) bool {
	mode &= fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky
	return w.root.Lchown(at[1:], uid, gid) == nil && w.root.Chmod(at[1:], mode) == nil
}

// plainDirectory reports whether a directory is all that its owner and mode say: it has no attributes that its copy
// would lack.
func plainDirectory(name string, info fs.FileInfo) bool {
	size, err := unix.Llistxattr(name, nil)
	return info.IsDir() && (err == nil && size == 0 || errors.Is(err, unix.ENOTSUP))
}

// owner returns the owner of a file.
func owner(info fs.FileInfo) (uid, gid int) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid), int(st.Gid)
	}
	return -1, -1
}
