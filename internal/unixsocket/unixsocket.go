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
	"fmt"
	"net"
	"os"
	"path/filepath"
)

// maxPath is the longest path that fits into sockaddr_un with its final NUL.
const maxPath = 107

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
	if len(path) <= maxPath {
		return path, func() {}, nil
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
