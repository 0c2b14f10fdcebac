package engine

import (
	"bytes"
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

// like reports whether a file is one that was put already, but for its name.
func (p Put) like(other Put) bool {
	return other.Path != "" && p.Mode == other.Mode && p.UID == other.UID && p.GID == other.GID &&
		bytes.Equal(p.Data, other.Data)
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
	w := layerWriter{lower: Layer{lower: l.lower, covered: l.covered}, dirs: map[string]*layerDir{"/": {root: root}}}
	defer w.close()
	for _, p := range puts {
		if p.Path == "/" || !l.shows(p.Path) || !w.put(p) {
			return false
		}
	}
	return true
}

// layerWriter writes to a container's layer. It has each directory open that it writes to: hundreds of files may be put
// into one, and a path that is resolved from the top costs a call for each of its parts.
type layerWriter struct {
	lower Layer                // of the image
	dirs  map[string]*layerDir // that the layer has
}

// layerDir is a directory of the layer.
type layerDir struct {
	root  *os.Root
	lacks bool            // the image has no such directory, and nothing below it
	names map[string]bool // what the image has in it, read when it is needed; nil after that: it is not certain
	read  bool
	last  Put // the file that was written last: one that is the same gets a link to it, which costs a fifth
}

func (w *layerWriter) close() {
	for _, d := range w.dirs {
		_ = d.root.Close()
	}
}

func (w *layerWriter) put(p Put) bool {
	if !p.Mode.IsDir() {
		return w.file(p)
	}
	d := w.dir(p.Path)
	return d != nil && give(w.dirs[path.Dir(p.Path)].root, path.Base(p.Path), p.Mode, p.UID, p.GID)
}

// file writes a regular file.
func (w *layerWriter) file(p Put) bool {
	d := w.dir(path.Dir(p.Path))
	if d == nil || !p.Mode.IsRegular() {
		return false
	}
	name := path.Base(p.Path)
	switch info, err := d.root.Lstat(name); {
	case err == nil && info.Mode().IsRegular():
		if d.root.Remove(name) != nil {
			return false
		}
	case !errors.Is(err, fs.ErrNotExist):
		return false
	case !d.lacks && !w.isAbsent(d, p.Path):
		if below, _, sure := w.lower.find(p.Path); !sure || below != nil && below.IsDir() {
			return false
		}
	}
	if p.like(d.last) && d.root.Link(path.Base(d.last.Path), name) == nil {
		return true
	}
	f, err := d.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return false
	}
	d.last = p
	_, err = f.Write(p.Data)
	if err == nil {
		err = f.Chown(p.UID, p.GID)
	}
	if err == nil { // after the owner, which takes bits of the mode away
		err = f.Chmod(permissions(p.Mode))
	}
	return errors.Join(err, f.Close()) == nil
}

// isAbsent reports whether it is certain that the image has nothing at a path in a directory.
func (w *layerWriter) isAbsent(d *layerDir, at string) bool {
	if !d.read {
		d.names, d.read = w.lower.names(path.Dir(at)), true
	}
	return d.names != nil && !d.names[path.Base(at)]
}

// dir makes a directory in the layer, with the mode and the owner that it has in the image. It returns nil where the
// result is not certain.
func (w *layerWriter) dir(at string) *layerDir {
	if d := w.dirs[at]; d != nil {
		return d
	}
	parent := w.dir(path.Dir(at))
	if parent == nil {
		return nil
	}
	d, name := &layerDir{lacks: parent.lacks}, path.Base(at)
	var below fs.FileInfo
	if !d.lacks {
		var dir string
		var sure bool
		below, dir, sure = w.lower.find(at)
		if !sure || below != nil && !plainDirectory(filepath.Join(dir, at), below) {
			return nil
		}
		d.lacks = below == nil
	}
	switch info, err := parent.root.Lstat(name); {
	case err == nil && !info.IsDir(), err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		mode, uid, gid := fs.FileMode(0o755), 0, 0
		if below != nil {
			mode = below.Mode()
			uid, gid = owner(below)
		}
		if parent.root.Mkdir(name, 0o700) != nil || !give(parent.root, name, mode, uid, gid) {
			return nil
		}
	}
	root, err := parent.root.OpenRoot(name)
	if err != nil {
		return nil
	}
	d.root = root
	w.dirs[at] = d
	return d
}

// give sets the owner and the mode of what was made in a directory, in this order: another owner takes bits of a mode
// away.
func give(in *os.Root, name string, mode fs.FileMode, uid, gid int) bool {
	return in.Lchown(name, uid, gid) == nil && in.Chmod(name, permissions(mode)) == nil
}

// permissions returns the bits of a mode that chmod sets.
func permissions(mode fs.FileMode) fs.FileMode {
	return mode & (fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky)
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
