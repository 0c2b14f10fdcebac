package engine

import (
	"bytes"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"
)

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
	if l.dir == "" || !path.IsAbs(file) || file != path.Clean(file) {
		return false
	}
	if slices.ContainsFunc(l.covered, func(at string) bool { return under(file, path.Clean(at)) }) {
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

// under reports whether a path is dir or in it.
func under(file, dir string) bool {
	return file == dir || strings.HasPrefix(file, strings.TrimSuffix(dir, "/")+"/")
}
