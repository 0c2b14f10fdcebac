// Package unixsocket listens on and dials unix sockets whose path may be longer
// than the kernel's address of a socket holds.
//
//	l, err := unixsocket.Listen(filepath.Join(dir, "control.sock"), 0o600)
//
// [CheckPeer] tells the processes of this user from others, and from those of a
// container.
package unixsocket

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/system"
)

// Listen listens on a new unix socket at path with the given mode. Closing the
// listener removes the socket.
func Listen(path string, mode os.FileMode) (net.Listener, error) {
	short, release, err := shorten(path)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("unix", short)
	if err != nil {
		release()
		return nil, err
	}
	if err := os.Chmod(path, mode); err != nil {
		_ = l.Close()
		release()
		return nil, err
	}
	return &listener{Listener: l, release: release}, nil
}

// Dial connects to the unix socket at path.
func Dial(ctx context.Context, path string) (net.Conn, error) {
	short, release, err := shorten(path)
	if err != nil {
		return nil, err
	}
	defer release()
	return (&net.Dialer{}).DialContext(ctx, "unix", short)
}

// shorten returns a path of the same file that fits into sockaddr_un: a long
// directory is named by a descriptor of it. release closes the descriptor and
// must be called when the path is no longer needed.
func shorten(path string) (short string, release func(), err error) {
	if len(path) <= system.MaxSocketPath {
		return path, func() {}, nil
	}
	if runtime.GOOS != "linux" { // there is no /proc
		return "", nil, hint.New(fmt.Errorf("use the socket %s: its path has %d bytes, and this system takes %d",
			path, len(path), system.MaxSocketPath), "name a shorter home with --home")
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path)), func() { _ = dir.Close() }, nil
}

// listener keeps the descriptor behind a shortened path until it is closed:
// net removes the socket by that path.
type listener struct {
	net.Listener
	release func()
}

func (l *listener) Close() error {
	err := l.Listener.Close()
	l.release()
	return err
}

// ErrForeign is returned for a peer that is not a process of this user, or that is in a container.
var ErrForeign = errors.New("the peer is not a process of this user, or it is in a container")

// CheckPeer returns the process at the other end of conn. The error is [ErrForeign] unless
// it is of this user and, with sameNamespace, not in a PID namespace below this one.
func CheckPeer(conn net.Conn, sameNamespace bool) (pid int, err error) {
	c, ok := conn.(*net.UnixConn)
	if !ok {
		return 0, ErrForeign
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var uid int
	controlErr := raw.Control(func(fd uintptr) { uid, pid, err = system.PeerOf(int(fd)) })
	if controlErr != nil || err != nil {
		return 0, errors.Join(controlErr, err)
	}
	if uid != os.Geteuid() {
		return 0, ErrForeign
	}
	if sameNamespace && !beside(pid) {
		return 0, ErrForeign
	}
	return pid, nil
}

// beside reports whether a process is in the PID namespace of this one. The processes of
// a container have the user's own uid where the engine runs without a user namespace,
// or maps it, so that the uid does not tell them from the user's. A process that has
// ended cannot be judged, and is not.
func beside(pid int) bool {
	if runtime.GOOS != "linux" { // a container's are another kernel's
		return true
	}
	own, peer := namespaces(os.Getpid()), namespaces(pid)
	return own > 0 && own == peer
}

// namespaces returns how many PID namespaces, from that of /proc on, number a process. It
// is read from a descriptor of the process (pidfd_open(2)): aileron's processes are
// not dumpable, and where /proc is mounted with hidepid their own files are not there.
func namespaces(pid int) int {
	fd, err := system.OpenProcess(pid)
	if err != nil {
		return 0
	}
	defer func() { _ = unix.Close(fd) }()
	info, err := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", fd))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(info)) {
		numbers, ok := strings.CutPrefix(line, "NSpid:")
		if fields := strings.Fields(numbers); ok && len(fields) > 0 && fields[0] != "0" && fields[0] != "-1" {
			return len(fields)
		}
	}
	return 0
}
