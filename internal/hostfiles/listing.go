package hostfiles

import (
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// lookAhead is how many further directories of one are read while a walk is in it: a project may have hundreds of
// thousands of files, each of which takes a call of the kernel. Of a directory that is read ahead, at most mostAhead
// entries are: the walk may reach a bound before it gets there.
const (
	lookAhead = 3
	mostAhead = 1024
)

// dirFlags are those with which a directory is opened, and nothing that has taken its place.
const dirFlags = os.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW

// listing is an open directory, as far as it was read.
type listing struct {
	f        *os.File // nil: it could not be opened
	entries  []fs.DirEntry
	programs map[string]bool // the regular files among them that can be executed
	err      error           // why there are no more; io.EOF: these are all
}

// ahead begins to read a directory of l, and returns what waits for it. It has to be called before l is closed. By its
// path, every directory above it would be opened again.
func (l *listing) ahead(root, at string, built bool) func() *listing {
	read := make(chan *listing, 1)
	go func() {
		fd, err := unix.Openat(int(l.f.Fd()), path.Base(at), dirFlags|unix.O_CLOEXEC, 0)
		if err != nil {
			read <- &listing{err: err}
			return
		}
		// Where the file system reports no types, ReadDir looks for them by this path.
		sub := &listing{f: os.NewFile(uintptr(fd), filepath.Join(root, at))}
		sub.read(mostAhead, built)
		read <- sub
	}()
	return func() *listing { return <-read }
}

// read reads up to n further entries. built is whether it does not matter which of them can be executed.
func (l *listing) read(n int, built bool) {
	more, err := l.f.ReadDir(n)
	if l.err = err; err == nil && len(more) < n {
		l.err = io.EOF
	}
	l.entries = append(l.entries, more...)
	for _, e := range more {
		var st unix.Stat_t
		if built || !e.Type().IsRegular() ||
			unix.Fstatat(int(l.f.Fd()), e.Name(), &st, unix.AT_SYMLINK_NOFOLLOW) != nil || st.Mode&0o111 == 0 {
			continue
		}
		if l.programs == nil {
			l.programs = map[string]bool{}
		}
		l.programs[e.Name()] = true
	}
}

func (l *listing) close() {
	if l.f != nil {
		_ = l.f.Close()
	}
}
