package dirwatch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// changes are what the kernel reports of a directory and its files.
const changes = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO | unix.IN_MODIFY |
	unix.IN_ATTRIB | unix.IN_DELETE_SELF | unix.IN_MOVE_SELF | unix.IN_ONLYDIR

// moves are what the kernel reports of a directory above.
const moves = unix.IN_MOVE_SELF | unix.IN_DELETE_SELF | unix.IN_ONLYDIR | unix.IN_MASK_ADD

// New returns a Watch that follows nothing yet.
func New(dirs ...Dir) (*Watch, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("watch directories: %w", err)
	}
	w := &Watch{dirs: dirs, file: os.NewFile(uintptr(fd), "inotify"), changes: make(chan struct{}, 1)}
	w.C = w.changes
	go w.read()
	fd, err = unix.Open("/proc/self/mountinfo", unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err == nil {
		w.mounts = os.NewFile(uintptr(fd), "mountinfo")
		go w.readMounts()
	}
	return w, nil
}

// Close ends the watch.
func (w *Watch) Close() {
	_ = w.file.Close()
	if w.mounts != nil {
		_ = w.mounts.Close()
	}
}

// Follow follows all directories that are there now. What changes after it has begun is reported. The error is for a
// change that may not be.
func (w *Watch) Follow() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.names, w.roots = map[int32][]string{}, make([]os.FileInfo, len(w.dirs))
	w.above = true
	for i, dir := range w.dirs {
		w.roots[i], _ = os.Stat(dir.Path) // before: what is mounted over it from now on is another directory
		if err := w.add(dir.Path, dir.Names); err != nil {
			return err
		}
		w.above = w.above && w.addAbove(dir.Path)
		if !dir.Deep {
			continue
		}
		err := filepath.WalkDir(dir.Path, func(path string, d fs.DirEntry, err error) error {
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			if err == nil && d.IsDir() && path != dir.Path {
				return w.add(path, nil)
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("watch %s: %w", dir.Path, err)
		}
	}
	return nil
}

// addAbove follows the moves of the directories above one, unless the next of them is followed itself, and reports
// whether it has a name by which it cannot become another unseen: one without links.
func (w *Watch) addAbove(path string) bool {
	real, err := filepath.EvalSymlinks(path)
	parent := filepath.Dir(path)
	if slices.ContainsFunc(w.dirs, func(d Dir) bool { return d.Path == parent }) {
		return err == nil && real == path || errors.Is(err, fs.ErrNotExist)
	}
	if err != nil || real != path || !filepath.IsAbs(path) {
		return false
	}
	for at := path; at != "/"; {
		at = filepath.Dir(at)
		if _, err := w.follow(at, moves); err != nil || isSeen(at) != nil {
			return false
		}
	}
	return true
}

// follow has the kernel report changes of a directory, and returns the kernel's number of it.
func (w *Watch) follow(path string, changes uint32) (number int, err error) {
	raw, err := w.file.SyscallConn()
	if err != nil {
		return 0, err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { number, failed = unix.InotifyAddWatch(int(fd), path, changes) })
	return number, errors.Join(err, failed)
}

// add follows a directory, if it is there.
func (w *Watch) add(path string, names []string) error {
	mask := uint32(changes)
	if names != nil { // a database beside them is written to all the time
		mask &^= unix.IN_MODIFY
	}
	number, err := w.follow(path, mask)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return nil
	}
	if err == nil {
		err = isSeen(path)
	}
	if err != nil {
		return fmt.Errorf("watch %s: %w", path, err)
	}
	if names != nil {
		w.names[int32(number)] = names //nolint:gosec // the kernel's numbers have 32 bits
	}
	return nil
}

// isSeen returns an error where another machine, or a program that serves the file system, may change a directory.
func isSeen(path string) error {
	var s unix.Statfs_t
	switch err := unix.Statfs(path, &s); {
	case errors.Is(err, fs.ErrNotExist): // what comes into existence is watched then
		return nil
	case err != nil:
		return err
	}
	const zfs, bcachefs = 0x2fc12fc1, 0xca451a4e
	switch uint32(s.Type) { //nolint:gosec // a magic number of 32 bits
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC,
		unix.TMPFS_MAGIC, unix.RAMFS_MAGIC, unix.OVERLAYFS_SUPER_MAGIC, zfs, bcachefs:
		return nil
	}
	return fmt.Errorf("the kernel does not see every change of a file system of type %#x", s.Type)
}

// readMounts waits for changes of the list of mounts until the watch is closed, and reports those that matter.
func (w *Watch) readMounts() {
	raw, err := w.mounts.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Read(func(uintptr) bool { // it is called for each change (proc_pid_mountinfo(5)), and never has enough
		if w.Moved() {
			w.report()
		}
		return false
	})
}

// read reads what the kernel reports until the watch is closed.
func (w *Watch) read() {
	for buf := make([]byte, 16<<10); ; {
		n, err := w.file.Read(buf)
		if err != nil {
			return
		}
		for rest := buf[:n]; len(rest) >= unix.SizeofInotifyEvent; {
			number := int32(binary.NativeEndian.Uint32(rest)) //nolint:gosec // a number with a sign
			size := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(rest[12:]))
			name := strings.TrimRight(string(rest[unix.SizeofInotifyEvent:size]), "\x00")
			w.reported(number, name)
			rest = rest[size:]
		}
	}
}
