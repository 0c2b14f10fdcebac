package imagefs

import (
	"bytes"
	"io"
	"io/fs"
	"path"
	"time"
)

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
