package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"
	"golang.org/x/sys/unix"
)

// ReadArchive returns a file or a directory of a container as a tar archive.
// The error is fs.ErrNotExist when it is not there; any other is an [ErrEngine].
func (e *Engine) ReadArchive(ctx context.Context, id, name string) (io.ReadCloser, error) {
	r, _, err := e.cli.CopyFromContainer(ctx, id, name)
	if e.noFile(err) {
		return nil, fs.ErrNotExist
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrEngine, err)
	}
	return r, nil
}

// WriteArchive extracts a tar archive into a directory of a container, which may
// be a volume's. A file of it does not replace a directory.
func (e *Engine) WriteArchive(ctx context.Context, id, dir string, archive io.Reader) error {
	return e.cli.CopyToContainer(ctx, id, dir, archive, container.CopyToContainerOptions{})
}

// FileInfo is what an engine reports of a file in a container.
type FileInfo struct {
	Mode fs.FileMode
	Size int64
	Link string // where a symbolic link leads, with every link followed
}

// Stat looks for a file in a container. The error is fs.ErrNotExist when it is
// not there; any other is an [ErrEngine].
func (e *Engine) Stat(ctx context.Context, id, name string) (FileInfo, error) {
	info, err := e.cli.ContainerStatPath(ctx, id, name)
	if e.noFile(err) {
		return FileInfo{}, fs.ErrNotExist
	}
	if err != nil {
		return FileInfo{}, fmt.Errorf("%w: %w", ErrEngine, err)
	}
	return FileInfo{info.Mode, info.Size, info.LinkTarget}, nil
}

// Layer is what a container has besides the files of its image, as far as this process can read it: with overlay file
// systems, engines keep it in a directory of their host. To ask the engine for a file instead, takes Podman a process
// or two. The zero value has nothing.
type Layer struct {
	dir     string   // of the container; "": this is an image
	lower   []string // directories of the image's layers, the topmost first
	covered []string // where mounts lie over it
	own     bool     // this process has started the engine as root
}

// layerOf returns the layer of a container of an engine of this host.
func layerOf(c container.InspectResponse) Layer {
	if c.ContainerJSONBase == nil || !strings.HasPrefix(c.GraphDriver.Name, "overlay") {
		return Layer{}
	}
	l := Layer{dir: c.GraphDriver.Data["UpperDir"], lower: below(c.GraphDriver.Data)}
	for _, m := range c.Mounts {
		l.covered = append(l.covered, m.Destination)
	}
	if c.HostConfig != nil {
		for at := range c.HostConfig.Tmpfs {
			l.covered = append(l.covered, at)
		}
	}
	return l
}

// layersOf returns the layers of an image of an engine of this host.
func layersOf(i image.InspectResponse) Layer {
	upper := i.GraphDriver.Data["UpperDir"]
	if !strings.HasPrefix(i.GraphDriver.Name, "overlay") || upper == "" {
		return Layer{}
	}
	return Layer{lower: append([]string{upper}, below(i.GraphDriver.Data)...)}
}

// below returns the directories of the layers below the topmost one.
func below(driver map[string]string) []string {
	if driver["LowerDir"] == "" {
		return nil
	}
	return strings.Split(driver["LowerDir"], ":")
}

// Has reports whether the layer has a regular file with these bytes at an absolute path, which a process of the
// container sees there: no parent is a link, and no mount lies over it. Where that cannot be known it has not.
func (l Layer) Has(file string, data []byte) bool {
	if l.dir == "" || !l.shows(file) {
		return false
	}
	root, err := os.OpenRoot(l.dir)
	if err != nil {
		return false
	}
	defer root.Close()
	for i, c := range file[1:] {
		if c != '/' {
			continue
		}
		if info, err := root.Lstat(file[1 : i+1]); err != nil || !info.IsDir() {
			return false
		}
	}
	// A device, or a pipe that would be waited for, is not opened. The size bounds what is read.
	info, err := root.Lstat(file[1:])
	if err != nil || !info.Mode().IsRegular() || info.Size() != int64(len(data)) {
		return false
	}
	is, err := root.ReadFile(file[1:])
	return err == nil && bytes.Equal(is, data)
}

// shows reports whether a clean absolute path is not below a mount over the layer.
func (l Layer) shows(file string) bool {
	return path.IsAbs(file) && file == path.Clean(file) &&
		!slices.ContainsFunc(l.covered, func(at string) bool { return under(file, path.Clean(at)) })
}

// under reports whether a path is dir or in it.
func under(file, dir string) bool {
	return file == dir || strings.HasPrefix(file, strings.TrimSuffix(dir, "/")+"/")
}

// Lstat describes a path as a container sees it, as far as this process can read the layers. The error is
// fs.ErrNotExist where nothing is there. sure is false where the engine has to be asked: behind a link, below a mount,
// and where a layer is not plain directories. The Link of a link is its text.
func (l Layer) Lstat(file string) (info FileInfo, sure bool, err error) {
	found, dir, sure := l.find(file)
	if !sure {
		return FileInfo{}, false, nil
	}
	if found == nil {
		return FileInfo{}, true, fs.ErrNotExist
	}
	info = FileInfo{Mode: found.Mode(), Size: found.Size()}
	if info.Mode&fs.ModeSymlink != 0 {
		info.Link, err = os.Readlink(filepath.Join(dir, file))
	}
	return info, err == nil, nil
}

// ReadFile returns the contents of a regular file of at most max bytes, if they are certain: see [Layer.Lstat].
func (l Layer) ReadFile(file string, most int64) (data []byte, sure bool) {
	info, dir, sure := l.find(file)
	if !sure || info == nil || !info.Mode().IsRegular() || info.Size() > most {
		return nil, false
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, false
	}
	defer root.Close()
	data, err = root.ReadFile(file[1:])
	return data, err == nil && int64(len(data)) == info.Size()
}

// find returns what the topmost layer that has a path has there, and the layer's directory. A path is certain to be
// absent where a layer has its directory, and none has the name.
func (l Layer) find(file string) (info fs.FileInfo, dir string, sure bool) {
	if len(l.lower) == 0 || file == "/" || !l.shows(file) {
		return nil, "", false
	}
	inside := false // the directory of the file is in some layer
	layers := l.lower
	if l.dir != "" {
		layers = append([]string{l.dir}, l.lower...)
	}
	for _, dir := range layers {
		info, hasParent, sure := inLayer(dir, file[1:])
		if isWhiteout(info) {
			return nil, "", true
		}
		if !sure || info != nil {
			return info, dir, sure
		}
		inside = inside || hasParent
	}
	return nil, "", inside
}

// maxNames bounds the names of a directory that are read.
const maxNames = 4096

// names returns the names that the layers have in a directory; nil where those that a container would see are not
// certain, see [Layer.Lstat].
func (l Layer) names(dir string) map[string]bool {
	if dir == "/" || !l.shows(dir) || l.dir != "" {
		return nil
	}
	all := map[string]bool{}
	for _, layer := range l.lower {
		info, _, sure := inLayer(layer, dir[1:])
		if !sure || info != nil && !info.IsDir() {
			return nil
		}
		if info == nil {
			continue
		}
		f, err := os.Open(filepath.Join(layer, dir))
		if err != nil {
			return nil
		}
		names, err := f.Readdirnames(maxNames)
		_ = f.Close()
		if err != nil && err != io.EOF || len(names) == maxNames {
			return nil
		}
		for _, name := range names {
			if strings.HasPrefix(name, ".wh.") { // it hides others, see removed
				return nil
			}
			all[name] = true
		}
	}
	return all
}

// inLayer returns what one layer has at a path, nil for nothing, and whether it has the directory of it.
func inLayer(dir, file string) (info fs.FileInfo, hasParent, sure bool) {
	// With composefs, the layer's directory holds files by their digests.
	_, err := os.Lstat(filepath.Join(filepath.Dir(dir), "composefs-data"))
	if !filepath.IsAbs(dir) || !errors.Is(err, fs.ErrNotExist) {
		return nil, false, false
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, false, false
	}
	defer root.Close()
	for i, c := range file {
		if c != '/' {
			continue
		}
		info, err := root.Lstat(file[:i])
		if errors.Is(err, fs.ErrNotExist) && !removed(root, file[:i]) {
			return nil, false, true
		}
		if err != nil || !info.IsDir() || marked(filepath.Join(dir, file[:i])) {
			return nil, false, false
		}
	}
	info, err = root.Lstat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, true, !removed(root, file)
	}
	link := err == nil && info.Mode()&fs.ModeSymlink != 0 // which overlayfs does not mark
	plain := err == nil && (info.IsDir() || info.Mode().IsRegular()) && !marked(filepath.Join(dir, file))
	return info, true, link || plain
}

// isWhiteout reports whether overlayfs hides a name of the layers below by what one has in its place.
func isWhiteout(info fs.FileInfo) bool {
	if info == nil || info.Mode()&fs.ModeCharDevice == 0 {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Rdev == 0
}

// removed reports whether a layer hides a name of those below it by a file beside it, as fuse-overlayfs can.
func removed(root *os.Root, file string) bool {
	parent, name := path.Split(file)
	for _, hides := range []string{".wh." + name, ".wh..wh..opq"} {
		if _, err := root.Lstat(parent + hides); !errors.Is(err, fs.ErrNotExist) {
			return true
		}
	}
	return false
}

// marked reports whether a file or a directory of a layer is not what it seems: overlayfs marks a directory that was
// renamed or hides those below it, and a file that was removed or whose bytes are elsewhere, and engines without root
// keep an owner and a mode beside it.
func marked(name string) bool {
	for _, space := range []string{"trusted.overlay.", "user.overlay."} {
		for _, mark := range []string{"redirect", "opaque", "whiteout", "metacopy"} {
			if hasAttribute(name, space+mark) {
				return true
			}
		}
	}
	return hasAttribute(name, "user.fuseoverlayfs.opaque") || hasAttribute(name, "user.containers.override_stat")
}

// hasAttribute reports whether a file may have an extended attribute.
func hasAttribute(name, attribute string) bool {
	_, err := unix.Lgetxattr(name, attribute, nil)
	return !errors.Is(err, unix.ENODATA) && !errors.Is(err, unix.ENOTSUP)
}
