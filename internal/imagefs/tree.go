package imagefs

import (
	"archive/tar"
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Etc is the directory that a Tree holds.
const Etc = "etc"

// MaxFile is the size, in bytes, above which no file of an image is read.
const MaxFile = 8 << 20

const (
	maxKept    = 64 << 20  // contents that a Tree keeps
	maxArchive = 512 << 20 // /etc as a whole
)

// bounds are the sizes up to which an archive is read.
type bounds struct{ file, kept, archive int64 }

// A Node is what an image has under one name.
type Node struct {
	Mode fs.FileMode
	Size int64
	Link string // the target, of a symbolic link

	data []byte // of a file in a Tree
	kept bool   // data is the whole file
}

// Tree is the /etc of an image. The zero value is that of an image without one. A
// Tree never changes, and several FS may use it at once.
type Tree struct {
	nodes    map[string]Node
	children map[string][]string // base names in a directory, sorted
}

// ReadTree reads a tar archive of /etc, as an engine returns it. It keeps the
// contents of files up to 8 MiB, and up to 64 MiB of all files; the others are
// left to the Source. An archive above 512 MiB is an error.
func ReadTree(archive io.Reader) (Tree, error) {
	return readTree(archive, bounds{file: MaxFile, kept: maxKept, archive: maxArchive})
}

func readTree(archive io.Reader, limit bounds) (Tree, error) {
	t := Tree{nodes: map[string]Node{}, children: map[string][]string{}}
	bounded := &io.LimitedReader{R: archive, N: limit.archive}
	tr := tar.NewReader(bufio.NewReader(bounded))
	for room := limit.kept; ; {
		h, err := tr.Next()
		switch {
		case err == io.EOF:
			t.list()
			return t, nil
		case err != nil && bounded.N <= 0:
			return Tree{}, fmt.Errorf("/etc is larger than %d MiB", limit.archive>>20)
		case err != nil:
			return Tree{}, fmt.Errorf("read /etc: %w", err)
		}
		n := Node{Mode: h.FileInfo().Mode(), Size: h.Size}
		switch h.Typeflag {
		case tar.TypeSymlink:
			n.Link = h.Linkname
		case tar.TypeLink:
			n = t.nodes[nameOf(h.Linkname)]
		case tar.TypeReg:
			if h.Size <= limit.file && h.Size <= room {
				if n.data, err = io.ReadAll(tr); err != nil {
					return Tree{}, fmt.Errorf("read /etc: %w", err)
				}
				n.kept, room = true, room-h.Size
			}
		}
		t.nodes[nameOf(h.Name)] = n
	}
}

// nameOf returns the name of an archive's entry in the form of io/fs. An entry
// that would lie outside of the archive's root lies inside.
func nameOf(entry string) string {
	if name := strings.TrimPrefix(path.Join("/", entry), "/"); name != "" {
		return name
	}
	return "."
}

func (t Tree) list() {
	for name := range t.nodes {
		dir := path.Dir(name)
		t.children[dir] = append(t.children[dir], path.Base(name))
	}
	for _, names := range t.children {
		slices.Sort(names)
	}
}

// ReadFirst returns the contents of the file that an archive of one file holds,
// as an engine returns it.
func ReadFirst(archive io.Reader) ([]byte, error) {
	tr := tar.NewReader(bufio.NewReader(archive))
	h, err := tr.Next()
	if err == nil {
		err = readable(h.FileInfo())
	}
	if err != nil {
		return nil, err
	}
	return io.ReadAll(tr)
}

var (
	errNotFile  = errors.New("it is not a file")
	errTooLarge = fmt.Errorf("it is larger than %d MiB", MaxFile>>20)
)

// readable returns an error if a file is one that is never read.
func readable(info fs.FileInfo) error {
	switch {
	case !info.Mode().IsRegular():
		return errNotFile
	case info.Size() > MaxFile:
		return errTooLarge
	}
	return nil
}
