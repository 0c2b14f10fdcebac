// Package regular reads regular files that a stranger may have put there: a repository, or an agent that goes on
// writing meanwhile. Call [Read], or [ReadIn] for a path below a directory that is the stranger's too:
//
//	data, err := regular.Read(filepath.Join(project, ".aileron.toml"), 16<<10)
//
// A link may lead to any file of the user, a named pipe keeps its reader waiting, and a file may grow while it is read.
// So what is opened is what is checked, a link is refused, and no more than the limit is read.
package regular

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

const flags = os.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK

// Read reads a regular file of at most limit bytes. The last element of path is not a link. The error has no path, and
// [fs.ErrNotExist] in it means that there is no file.
func Read(path string, limit int64) ([]byte, error) {
	f, err := os.OpenFile(path, flags, 0)
	return read(f, err, limit)
}

// ReadIn is [Read] for a name below root, on whose way no link leads out of root.
func ReadIn(root *os.Root, name string, limit int64) ([]byte, error) {
	f, err := root.OpenFile(name, flags, 0)
	return read(f, err, limit)
}

func read(f *os.File, err error, limit int64) ([]byte, error) {
	if errors.Is(err, unix.ELOOP) {
		return nil, errors.New("it is a symbolic link")
	}
	if pathErr := (*fs.PathError)(nil); errors.As(err, &pathErr) {
		return nil, pathErr.Err
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		return nil, fmt.Errorf("it is larger than %d bytes", limit)
	}
	return data, err
}
