package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/volume"
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
	dir     string
	lower   []string // directories of the image's layers, below dir
	covered []string // where mounts lie over it
}

// layerOf returns the layer of a container of an engine of this host.
func layerOf(c container.InspectResponse) Layer {
	if c.ContainerJSONBase == nil || !strings.HasPrefix(c.GraphDriver.Name, "overlay") {
		return Layer{}
	}
	l := Layer{dir: c.GraphDriver.Data["UpperDir"]}
	if lower := c.GraphDriver.Data["LowerDir"]; lower != "" {
		l.lower = strings.Split(lower, ":")
	}
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

// Has reports whether the layer has a regular file with these bytes at an absolute path, which a process of the
// container sees there: no parent is a link, and no mount lies over it. Where that cannot be known it has not.
func (l Layer) Has(file string, data []byte) bool {
	if !l.shows(file) {
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

// shows reports whether the layer is known, and a clean absolute path is not below a mount over it.
func (l Layer) shows(file string) bool {
	return l.dir != "" && path.IsAbs(file) && file == path.Clean(file) &&
		!slices.ContainsFunc(l.covered, func(at string) bool { return under(file, path.Clean(at)) })
}

// under reports whether a path is dir or in it.
func under(file, dir string) bool {
	return file == dir || strings.HasPrefix(file, strings.TrimSuffix(dir, "/")+"/")
}

// Lacks reports whether a container has nothing at an absolute path, as far as this process can read the layers of its
// image: its directory is in one of them, and none has the name. True is certain, and false is not: a name that some
// layer has may be removed by another one, and where a layer is not plain directories, the engine has to be asked.
func (l Layer) Lacks(file string) bool {
	if len(l.lower) == 0 || file == "/" || !l.shows(file) {
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

// ErrForeign is returned for a volume that has the name of another one.
var ErrForeign = errors.New("it was not made by this aileron")

// EnsureVolume makes a volume with these labels, unless it is there. The error is
// [ErrForeign] if one of that name has other labels, or is more than a directory
// of the engine's own: a driver's options can lead it to any place of the host.
func (e *Engine) EnsureVolume(ctx context.Context, name string, labels map[string]string) error {
	v, err := e.cli.VolumeInspect(ctx, name)
	if errdefs.IsNotFound(err) {
		v, err = e.cli.VolumeCreate(ctx, volume.CreateOptions{Name: name, Driver: "local", Labels: labels})
	}
	switch {
	case err != nil:
		return fmt.Errorf("make the volume %s: %w", name, err)
	case v.Driver != "local" || len(v.Options) > 0 || !maps.Equal(v.Labels, labels):
		return fmt.Errorf("use the volume %s: %w", name, ErrForeign)
	}
	return nil
}

// Volumes returns the names of the volumes that have all of these labels.
func (e *Engine) Volumes(ctx context.Context, labels map[string]string) ([]string, error) {
	f := filters.NewArgs()
	for k, v := range labels {
		f.Add("label", k+"="+v)
	}
	list, err := e.cli.VolumeList(ctx, volume.ListOptions{Filters: f})
	if err != nil {
		return nil, fmt.Errorf("list volumes: %w", err)
	}
	var names []string
	for _, v := range list.Volumes {
		all := true // Podman 4 returns those that have any of them
		for k, want := range labels {
			all = all && v.Labels[k] == want
		}
		if all {
			names = append(names, v.Name)
		}
	}
	return names, nil
}

// RemoveVolume removes a volume. One that a container uses is not removed.
func (e *Engine) RemoveVolume(ctx context.Context, name string) error {
	if err := e.cli.VolumeRemove(ctx, name, false); err != nil && !errdefs.IsNotFound(err) {
		return fmt.Errorf("remove the volume %s: %w", name, err)
	}
	return nil
}
