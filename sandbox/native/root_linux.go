package native

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// The sandbox's root is in memory, and read-only at the end. All that comes from this host is opened before its root is
// left, and all else is done after: no link leads to anything of the host's.

// staging is where the new root is mounted while the old one is there.
const staging = "/tmp"

// Places in the new root while it is made: the host's /usr, and what lies over it.
const (
	hostUsr  = "/.host"
	layerDir = "/.session"
)

// makeRoot makes the root of the sandbox, and changes to it.
func makeRoot(l *launch) error {
	r := &root{}
	defer r.close()
	r.open(l)
	r.enter()
	r.populate(l)
	r.mountUsr()
	r.mount(l)
	if r.err != nil {
		return fmt.Errorf("make the sandbox's files: %w", r.err)
	}
	return nil
}

// root is the new root while it is made. After the first error its methods do nothing.
type root struct {
	err   error
	trees []tree      // of this host, detached
	links [][2]string // of this host: where they lead, and their paths
}

// tree is a detached mount with its place.
type tree struct {
	fd     int
	target string
	isDir  bool
}

func (r *root) close() {
	for _, t := range r.trees {
		_ = unix.Close(t.fd)
	}
}

func (r *root) do(step string, f func() error) {
	if r.err != nil {
		return
	}
	if err := f(); err != nil {
		r.err = fmt.Errorf("%s: %w", step, err)
	}
}

// open opens all that the sandbox has of this host.
func (r *root) open(l *launch) {
	for _, dir := range systemDirs[1:] {
		switch info, err := os.Lstat(dir); {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			r.do("look at "+dir, func() error { return err })
		case info.Mode()&fs.ModeSymlink != 0:
			r.do("read the link "+dir, func() error {
				to, err := os.Readlink(dir)
				r.links = append(r.links, [2]string{to, dir})
				return err
			})
		default:
			r.take(dir, dir, true)
		}
	}
	r.take("/usr", hostUsr, true)
	for _, m := range l.Mounts {
		r.take(m.Source, m.Target, m.ReadOnly)
	}
	for _, name := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		r.device("/dev/" + name)
	}
}

// take opens a file or a directory of this host for the sandbox.
func (r *root) take(source, target string, readOnly bool) {
	r.do("open "+source, func() error {
		info, err := os.Lstat(source)
		if err != nil {
			return err
		}
		if !info.IsDir() && !info.Mode().IsRegular() {
			return errors.New("it is neither a directory nor a file")
		}
		fd, err := openTree(source)
		if err != nil {
			return err
		}
		r.trees = append(r.trees, tree{fd, target, info.IsDir()})
		return restrict(fd, readOnly)
	})
}

// device opens a device that every sandbox has.
func (r *root) device(at string) {
	r.do("open "+at, func() error {
		fd, err := openTree(at)
		if err != nil {
			return err
		}
		r.trees = append(r.trees, tree{fd, at, false})
		// A device can be written to through a mount that is read-only; its mode and owner, which are this host's, can
		// not be changed: user 0 of the sandbox is the device's owner where root runs it.
		return unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH,
			&unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NOEXEC | unix.MOUNT_ATTR_RDONLY})
	})
}

// openTree returns a mount of its own of a path, with what is mounted below it. A link anywhere on the way is an error:
// another sandbox may have put it there since the path was resolved.
func openTree(at string) (int, error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, at,
		&unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
	if err != nil {
		return -1, err
	}
	defer closeFD(fd)
	return unix.OpenTree(fd, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|unix.AT_EMPTY_PATH)
}

// readOnlyTree is openTree of what can only be read.
func readOnlyTree(at string) (int, error) {
	fd, err := openTree(at)
	if err != nil {
		return -1, err
	}
	if err := restrict(fd, true); err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// restrict takes devices and set-user-id programs from a detached mount and those below it, and writing if readOnly.
func restrict(fd int, readOnly bool) error {
	attr := &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
	if readOnly {
		attr.Attr_set |= unix.MOUNT_ATTR_RDONLY
	}
	return unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, attr)
}

// quiet are the flags of what the sandbox may write to.
const quiet = unix.MS_NOSUID | unix.MS_NODEV

// enter mounts the new root, with a /proc, and leaves the old one.
func (r *root) enter() {
	r.do("mount a root in memory", func() error {
		return unix.Mount("aileron", staging, "tmpfs", quiet, "mode=755,size=128m")
	})
	r.do("enter it", func() error { return unix.Chdir(staging) })
	r.do("make /proc", func() error { return os.Mkdir("proc", 0o555) }) //nolint:gosec // a mount point
	// The kernel allows it only where a whole /proc is there already: not in most containers.
	r.do("mount /proc", func() error { return unix.Mount("proc", "proc", "proc", quiet|unix.MS_NOEXEC, "") })
	r.do("leave the host's root", func() error { return unix.PivotRoot(".", ".") })
	r.do("unmount the host's root", func() error { return unix.Unmount(".", unix.MNT_DETACH) })
	r.do("enter the new root", func() error { return unix.Chdir("/") })
}

// populate puts all of the sandbox's own into the new root.
func (r *root) populate(l *launch) {
	for _, dir := range []string{"/etc", "/dev", "/dev/pts", "/dev/shm", "/run", "/tmp", "/var", "/var/tmp",
		"/var/lib", "/var/cache", "/home", Home, "/usr", "/opt", "/root", hostUsr, layerDir + "/usr"} {
		r.mkdir(dir)
	}
	for _, link := range append(r.links, [][2]string{{"/run", "/var/run"}, {"/proc/self/fd", "/dev/fd"},
		{"/proc/self/fd/0", "/dev/stdin"}, {"/proc/self/fd/1", "/dev/stdout"}, {"/proc/self/fd/2", "/dev/stderr"},
		{"pts/ptmx", "/dev/ptmx"}, {"/proc/self/mounts", "/etc/mtab"}}...) {
		r.do("link "+link[1], func() error { return os.Symlink(link[0], link[1]) })
	}
	r.extract(l.Etc)
	for _, f := range l.Files {
		r.put(f)
	}
}

func (r *root) mkdir(at string) {
	r.do("make "+at, func() error { return os.MkdirAll(at, 0o755) }) //nolint:gosec // the sandbox's user reads it
}

// extract writes what the sandbox has of this host's /etc.
func (r *root) extract(archive []byte) {
	tr := tar.NewReader(bytes.NewReader(archive))
	for r.err == nil {
		h, err := tr.Next()
		if err == io.EOF {
			return
		}
		if err != nil || !filepath.IsLocal(h.Name) {
			r.do("read /etc", func() error { return errors.Join(err, fs.ErrInvalid) })
			return
		}
		switch h.Typeflag {
		case tar.TypeDir:
			r.mkdir("/" + h.Name)
		case tar.TypeSymlink:
			r.do("link /"+h.Name, func() error { return os.Symlink(h.Linkname, "/"+h.Name) })
		case tar.TypeReg:
			r.do("write /"+h.Name, func() error {
				data, err := io.ReadAll(tr)
				if err != nil {
					return err
				}
				return os.WriteFile("/"+h.Name, data, h.FileInfo().Mode().Perm())
			})
		}
	}
}

// put writes a file of the session's. One of /usr goes into what lies over it.
func (r *root) put(f File) {
	at := path.Clean("/" + f.Path)
	for _, link := range r.links { // such as /lib, which leads into /usr
		if strings.HasPrefix(at, link[1]+"/") {
			at = path.Join("/", link[0], strings.TrimPrefix(at, link[1]))
		}
	}
	if strings.HasPrefix(at, "/usr/") {
		at = layerDir + at
	}
	if f.Mode.IsDir() {
		r.mkdir(at)
		return
	}
	r.mkdir(path.Dir(at))
	r.do("put "+f.Path, func() error {
		// An earlier file, or a link of this host's, is replaced, and never followed.
		if err := os.Remove(at); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		mode := f.Mode.Perm()
		if mode == 0 {
			mode = 0o644
		}
		return os.WriteFile(at, f.Data, mode)
	})
}

// mountUsr mounts the host's /usr with the session's files over it. An overlay has no directory to write to, so it is
// read-only by its kind.
func (r *root) mountUsr() {
	at := slices.IndexFunc(r.trees, func(t tree) bool { return t.target == hostUsr })
	if at < 0 {
		return
	}
	r.attach(r.trees[at])
	r.trees = slices.Delete(r.trees, at, at+1)
	r.do("mount /usr with the session's files over it", func() error {
		err := mountOver("")
		if errors.Is(err, unix.EINVAL) { // the host has other mounts below its /usr
			return mountOverParts()
		}
		return err
	})
	r.do("unmount the host's /usr", func() error {
		return errors.Join(unix.Unmount(hostUsr, unix.MNT_DETACH), os.Remove(hostUsr))
	})
}

// mountOver mounts an overlay of a directory of /usr, by its path in it.
func mountOver(dir string) error {
	return unix.Mount("overlay", path.Join("/usr", dir), "overlay", quiet|unix.MS_RDONLY,
		"lowerdir="+path.Join(layerDir, "usr", dir)+":"+path.Join(hostUsr, dir))
}

// mountOverParts mounts the host's /usr with what is mounted below it, and overlays of those directories alone into
// which the session puts something. The kernel takes no directory for an overlay below which something is mounted that
// this user namespace cannot unmount: that could show what lies under the mount.
func mountOverParts() error {
	fd, err := readOnlyTree(hostUsr)
	if err != nil {
		return err
	}
	defer closeFD(fd)
	if err := unix.MoveMount(fd, "", unix.AT_FDCWD, "/usr", unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return err
	}
	dirs, err := parts(layerDir+"/usr", hostUsr)
	for _, dir := range dirs {
		if err == nil {
			err = mountOver(dir)
		}
	}
	return err
}

// parts returns the directories of the host, by their paths in it, into which something of the layer goes: the topmost
// ones that get a file, or a directory that they lack.
func parts(layer, host string) (dirs []string, err error) {
	err = filepath.WalkDir(layer, func(at string, d fs.DirEntry, err error) error {
		rel := strings.TrimPrefix(strings.TrimPrefix(at, layer), "/")
		if err != nil || rel == "" {
			return err
		}
		if info, err := os.Stat(filepath.Join(host, rel)); d.IsDir() && err == nil && info.IsDir() {
			return nil
		}
		if dir := path.Dir(rel); !slices.ContainsFunc(dirs, func(o string) bool { return within(dir, o) }) {
			dirs = append(slices.DeleteFunc(dirs, func(o string) bool { return within(o, dir) }), dir)
		}
		if d.IsDir() {
			return fs.SkipDir
		}
		return nil
	})
	return dirs, err
}

// within reports whether a path is a directory or in it.
func within(at, dir string) bool { return dir == "." || at == dir || strings.HasPrefix(at, dir+"/") }

// mount mounts all else.
func (r *root) mount(l *launch) {
	r.writable(l.Memory)
	r.do("mount /dev/pts", func() error {
		const own = "newinstance,ptmxmode=0666,mode=0620"
		return unix.Mount("devpts", "/dev/pts", "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, own)
	})
	r.maskProc()
	for _, t := range r.trees {
		r.attach(t)
	}
	for _, at := range l.Masks {
		r.do("hide "+at, func() error { return unix.Mount("none", at, "tmpfs", quiet|unix.MS_RDONLY, "size=4k") })
	}
	r.do("make the root read-only", func() error {
		return unix.MountSetattr(unix.AT_FDCWD, "/", 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
	})
}

// writablePlaces are those of the sandbox's own that it may write to. All users may write to the first three.
func writablePlaces() []string { return []string{"/tmp", "/var/tmp", "/dev/shm", "/run", Home} }

// writable mounts what the sandbox may write to: one file system in memory, of at most half of the sandbox's memory.
func (r *root) writable(memory int64) {
	const at = "/.writable"
	options := "mode=755"
	if memory > 0 {
		options += ",size=" + strconv.FormatInt(memory/2, 10)
	}
	r.mkdir(at)
	r.tmpfs(at, quiet, options)
	for i, place := range writablePlaces() {
		mode := fs.FileMode(0o1777)
		if i >= 3 {
			mode = 0o755
		}
		dir := path.Join(at, strconv.Itoa(i))
		r.do("make "+place, func() error {
			return errors.Join(os.Mkdir(dir, 0o755), unix.Chmod(dir, uint32(mode)), //nolint:gosec // as on all hosts
				unix.Mount(dir, place, "", unix.MS_BIND, ""))
		})
	}
	r.do("hide "+at, func() error { return errors.Join(unix.Unmount(at, unix.MNT_DETACH), os.Remove(at)) })
}

func (r *root) tmpfs(at string, flags uintptr, options string) {
	r.do("mount "+at, func() error { return unix.Mount("tmpfs", at, "tmpfs", flags, options) })
}

// maskProc takes from /proc what is not a sandbox's: a user 0 without capabilities could write to some of it.
func (r *root) maskProc() {
	for _, at := range []string{"/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs",
		"/proc/driver", "/proc/dynamic_debug", "/proc/mtrr", "/proc/tty"} {
		if !exists(at) {
			continue
		}
		r.do("make "+at+" read-only", func() error {
			fd, err := readOnlyTree(at)
			if err != nil {
				return err
			}
			defer closeFD(fd)
			return unix.MoveMount(fd, "", unix.AT_FDCWD, at, unix.MOVE_MOUNT_F_EMPTY_PATH)
		})
	}
	for _, at := range []string{"/proc/acpi", "/proc/asound", "/proc/interrupts", "/proc/kallsyms", "/proc/kcore",
		"/proc/keys", "/proc/key-users", "/proc/kpagecount", "/proc/kpageflags", "/proc/latency_stats",
		"/proc/modules", "/proc/sched_debug", "/proc/scsi", "/proc/slabinfo", "/proc/timer_list", "/proc/timer_stats",
		"/proc/vmallocinfo", "/proc/config.gz"} {
		info, err := os.Lstat(at)
		switch {
		case err != nil:
		case info.IsDir():
			r.tmpfs(at, unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC|unix.MS_RDONLY, "size=4k")
		default:
			r.hideFile(at)
		}
	}
}

// hideFile puts an empty file over another.
func (r *root) hideFile(at string) {
	const empty = "/.empty"
	r.do("hide "+at, func() error {
		if err := os.WriteFile(empty, nil, 0o444); err != nil && !exists(empty) { //nolint:gosec // it is empty
			return err
		}
		fd, err := readOnlyTree(empty)
		if err != nil {
			return err
		}
		defer closeFD(fd)
		return unix.MoveMount(fd, "", unix.AT_FDCWD, at, unix.MOVE_MOUNT_F_EMPTY_PATH)
	})
}

// attach mounts a tree of this host. Its place is made where there is none.
func (r *root) attach(t tree) {
	r.do("mount "+t.target, func() error {
		if !exists(t.target) {
			if err := makePlace(t); err != nil {
				return err
			}
		}
		// A link on the way would lead into another tree of this host, and is not followed.
		dir, err := unix.Openat2(unix.AT_FDCWD, t.target,
			&unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
		if err != nil {
			return err
		}
		defer closeFD(dir)
		return unix.MoveMount(t.fd, "", dir, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
	})
}

func closeFD(fd int) { _ = unix.Close(fd) }

func makePlace(t tree) error {
	if t.isDir {
		return os.MkdirAll(t.target, 0o755) //nolint:gosec // the sandbox's user reads it
	}
	if err := os.MkdirAll(path.Dir(t.target), 0o755); err != nil { //nolint:gosec // as above
		return err
	}
	return os.WriteFile(t.target, nil, 0o444) //nolint:gosec // the place of a mount
}
