// Package imagefs presents the files of a container image as an [io/fs.FS].
//
// An engine shows the files of a container that was created and never started. It
// takes as long for one file as for a directory, so /etc is read at once, with
// [ReadTree]; for everything else a [Source] is asked name by name. [New] joins
// the two:
//
//	etc, err := imagefs.ReadTree(archive) // a tar archive of /etc
//	image := imagefs.New(etc, source)
//	roots, err := image.ReadFile("etc/ssl/certs/ca-certificates.crt")
//
// An image is not to be trusted: the sizes of files, the number of links that a
// name leads through, and the number of its elements are bounded. Links are
// resolved inside the image, as the kernel of a container would: one that leads
// above the root ends at the root. [Resolve] returns where a name leads even if
// nothing is there: a file that is copied into the image ends up at that place.
//
// Open resolve.go first: it follows links. tree.go reads the archive of /etc, and
// keep.go saves what is known of an image.
package imagefs

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"path"
	"sync"
	"time"
)

// Source reads what lies outside of /etc: one call to an engine for each name, in
// the form of io/fs. The error for what the image does not have is
// fs.ErrNotExist; every error is passed on.
type Source struct {
	// Lstat describes a name. The Link of a symbolic link may be the path where
	// it leads in the end: engines do not report its text.
	Lstat func(name string) (Node, error)
	// ReadFile returns the contents of a file.
	ReadFile func(name string) ([]byte, error)
}

// FS is the file system of an image. It follows links inside the image, reads
// no file above 8 MiB, and lists directories in /etc only. It is safe for
// concurrent use.
type FS struct {
	etc    Tree
	source Source

	mu    sync.Mutex
	known map[string]answer // of source: an image does not change
}

type answer struct {
	node Node
	err  error
}

var (
	_ fs.ReadLinkFS = (*FS)(nil)
	_ fs.ReadFileFS = (*FS)(nil)
	_ fs.ReadDirFS  = (*FS)(nil)
	_ fs.StatFS     = (*FS)(nil)
)

// New returns the file system of an image. With the zero Source it has nothing
// outside of /etc.
func New(etc Tree, source Source) *FS {
	return &FS{etc: etc, source: source, known: map[string]answer{}}
}

// Open opens a file or a directory. A file is read at once.
func (f *FS) Open(name string) (fs.File, error) {
	place, err := f.resolve("open", name)
	if err != nil {
		return nil, err
	}
	info := place.Info.(fileInfo).as(name)
	if info.IsDir() {
		return &openDir{info: info, list: func() ([]fs.DirEntry, error) { return f.ReadDir(name) }}, nil
	}
	data, err := f.read(place)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: cause(err)}
	}
	return &openFile{Reader: bytes.NewReader(data), info: info}, nil
}

// Stat describes what a name leads to.
func (f *FS) Stat(name string) (fs.FileInfo, error) {
	place, err := f.resolve("stat", name)
	if err != nil {
		return nil, err
	}
	return place.Info.(fileInfo).as(name), nil
}

// Lstat describes a name itself: links are followed in its parents only.
func (f *FS) Lstat(name string) (fs.FileInfo, error) {
	node, err := f.lookUp("lstat", name)
	if err != nil {
		return nil, err
	}
	return fileInfo{name: path.Base(name), node: node}, nil
}

// ReadLink returns the target of a link. Outside of /etc it is the path that
// the link leads to in the end.
func (f *FS) ReadLink(name string) (string, error) {
	node, err := f.lookUp("readlink", name)
	switch {
	case err != nil:
		return "", err
	case node.Mode&fs.ModeSymlink == 0:
		return "", &fs.PathError{Op: "readlink", Path: name, Err: fs.ErrInvalid}
	}
	return node.Link, nil
}

// ReadFile returns the contents of a file of at most 8 MiB.
func (f *FS) ReadFile(name string) ([]byte, error) {
	place, err := f.resolve("read", name)
	if err != nil {
		return nil, err
	}
	data, err := f.read(place)
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: name, Err: cause(err)}
	}
	return bytes.Clone(data), nil
}

// ReadDir lists a directory in /etc. Elsewhere the error is errors.ErrUnsupported:
// an engine lists a directory only by sending everything in it.
func (f *FS) ReadDir(name string) ([]fs.DirEntry, error) {
	place, err := f.resolve("readdir", name)
	if err != nil {
		return nil, err
	}
	switch {
	case !place.Info.IsDir():
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: errors.New("it is not a directory")}
	case !below(place.Path, Etc):
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: errors.ErrUnsupported}
	}
	names := f.etc.children[place.Path]
	entries := make([]fs.DirEntry, len(names))
	for i, base := range names {
		entries[i] = fs.FileInfoToDirEntry(fileInfo{name: base, node: f.etc.nodes[path.Join(place.Path, base)]})
	}
	return entries, nil
}

// Kept returns the contents of a file if the image's Tree has them.
func (f *FS) Kept(place Place) (data []byte, ok bool) {
	n := f.etc.nodes[place.Path]
	return n.data, n.kept
}

func (f *FS) read(place Place) ([]byte, error) {
	if err := readable(place.Info); err != nil {
		return nil, err
	}
	if n := f.etc.nodes[place.Path]; n.kept {
		return n.data, nil
	}
	if f.source.ReadFile == nil {
		return nil, errors.ErrUnsupported
	}
	return f.source.ReadFile(place.Path)
}

// resolve returns where a name leads. The error is fs.ErrNotExist if nothing is
// there.
func (f *FS) resolve(op, name string) (Place, error) {
	fail := func(err error) (Place, error) { return Place{}, &fs.PathError{Op: op, Path: name, Err: cause(err)} }
	if !fs.ValidPath(name) {
		return fail(fs.ErrInvalid)
	}
	place, err := walk(name, f.find)
	if err != nil {
		return fail(err)
	}
	if !place.Exists() {
		return fail(fs.ErrNotExist)
	}
	return place, nil
}

// lookUp returns the node of a name, of which only the parents may be links.
func (f *FS) lookUp(op, name string) (Node, error) {
	fail := func(err error) (Node, error) { return Node{}, &fs.PathError{Op: op, Path: name, Err: cause(err)} }
	if !fs.ValidPath(name) {
		return fail(fs.ErrInvalid)
	}
	parent, err := f.resolve(op, path.Dir(name))
	if err != nil {
		return fail(err)
	}
	node, err := f.node(path.Join(parent.Path, path.Base(name)))
	if err != nil {
		return fail(err)
	}
	return node, nil
}

func (f *FS) find(name string) (fs.FileInfo, string, error) {
	node, err := f.node(name)
	return fileInfo{name: path.Base(name), node: node}, node.Link, err
}

// node returns what the image has under a name whose parents are no links.
func (f *FS) node(name string) (Node, error) {
	switch {
	case name == ".":
		return Node{Mode: fs.ModeDir | 0o755}, nil
	case below(name, Etc):
		if n, ok := f.etc.nodes[name]; ok {
			return n, nil
		}
		return Node{}, fs.ErrNotExist
	case f.source.Lstat == nil:
		return Node{}, fs.ErrNotExist
	}
	return f.lstatSource(name)
}

// lstatSource returns what the source has under a name, and asks it once for each.
func (f *FS) lstatSource(name string) (Node, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	a, ok := f.known[name]
	if !ok {
		a.node, a.err = f.source.Lstat(name)
		if a.err == nil || errors.Is(a.err, fs.ErrNotExist) {
			f.known[name] = a
		}
	}
	return a.node, a.err
}

// fileInfo describes a node. It has no time: nothing is decided by one.
type fileInfo struct {
	name string
	node Node
}

func (i fileInfo) Name() string       { return i.name }
func (i fileInfo) Size() int64        { return i.node.Size }
func (i fileInfo) Mode() fs.FileMode  { return i.node.Mode }
func (i fileInfo) ModTime() time.Time { return time.Time{} }
func (i fileInfo) IsDir() bool        { return i.node.Mode.IsDir() }
func (i fileInfo) Sys() any           { return nil }

// as returns i under the name that was asked for, which may be a link's.
func (i fileInfo) as(name string) fileInfo {
	i.name = path.Base(name)
	return i
}

type openFile struct {
	*bytes.Reader
	info fileInfo
}

func (f *openFile) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *openFile) Close() error               { return nil }

type openDir struct {
	info   fileInfo
	list   func() ([]fs.DirEntry, error)
	listed bool
	rest   []fs.DirEntry
}

func (d *openDir) Stat() (fs.FileInfo, error) { return d.info, nil }
func (d *openDir) Close() error               { return nil }

func (d *openDir) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.info.name, Err: errNotFile}
}

// ReadDir returns the next n entries, or all that are left if n is not above
// zero.
func (d *openDir) ReadDir(n int) ([]fs.DirEntry, error) {
	if !d.listed {
		var err error
		if d.rest, err = d.list(); err != nil {
			return nil, err
		}
		d.listed = true
	}
	if n <= 0 || n > len(d.rest) {
		if n > 0 && len(d.rest) == 0 {
			return nil, io.EOF
		}
		n = len(d.rest)
	}
	next := d.rest[:n:n]
	d.rest = d.rest[n:]
	return next, nil
}
